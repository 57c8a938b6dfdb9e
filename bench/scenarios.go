package main

import (
	"fmt"
	"slices"
	"strings"
)

// scenario is something to compare, with a name.
type scenario struct {
	name, what string
	core       bool // among what runs where nothing else is said
	run        func(*comparison, *scenario) error
}

// scenarios are all, in the order in which "all" runs them.
func scenarios() []*scenario {
	return slices.Concat(produceScenarios(), consumeScenarios(), endToEndScenarios(), growthScenarios(), compactionScenarios(), processScenarios(), clusterScenarios())
}

// choose finds scenarios by their names.
func choose(names string) ([]*scenario, error) {
	all := scenarios()
	switch names {
	case "all":
		return all, nil
	case "core":
		return slices.DeleteFunc(all, func(s *scenario) bool { return !s.core }), nil
	}
	var chosen []*scenario
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(s *scenario) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no scenario %q; -list tells what there is", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
