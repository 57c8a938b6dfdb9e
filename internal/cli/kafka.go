package cli

import (
	"slices"
)

// kafkaNames are the names of Kafka's tools that the program answers to, without ".sh".
func kafkaNames() []string { return slices.Sorted(slices.Values([]string{"kafka-topics"})) }
