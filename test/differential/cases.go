package main

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// testCase is one question; answer asks a broker.
type testCase struct {
	name   string
	answer func(s *side, level detail) string
}

// leftOut reports mutations that say nothing: no answer is due, a case would only wait, or it would find what
// an earlier case has left behind.
func leftOut(base, mutation string) bool {
	return base == "Produce" && mutation == "Acks=0" ||
		base == "JoinGroup" && strings.HasPrefix(mutation, "Group=") && mutation != "Group=empty" ||
		(strings.HasSuffix(base, "Configs/group") || strings.HasSuffix(base, "Configs/metrics")) &&
			strings.HasPrefix(mutation, "Resources[0].ResourceName=") && mutation != "Resources[0].ResourceName=empty"
}

// cases lists all of them; s lends its names to find out how requests are encoded.
//
// Which versions are mutated is told by the size of the encoded request: where it is the same as of an earlier
// version, and in the same encoding, no field was added.
func cases(s *side) []testCase {
	var all []testCase
	for _, b := range bases() {
		sizes := map[int]bool{}
		for version := b.min; version <= b.max; version++ {
			request := b.at(s, version)
			all = append(all, b.plain(version))
			size := len(request.AppendTo(nil))
			if request.IsFlexible() {
				size = -size
			}
			if !sizes[size] || version == b.max {
				sizes[size] = true
				all = append(all, b.mutated(request, version)...)
			}
		}
	}
	return append(append(all, malformed()...), special()...)
}

func (b base) at(s *side, version int16) kmsg.Request {
	request := b.build(s, version)
	request.SetVersion(version)
	return request
}

func (b base) plain(version int16) testCase {
	return testCase{fmt.Sprintf("%s v%d", b.name, version), func(s *side, level detail) string {
		return once(s, b.at(s, version), level)
	}}
}

// mutated lists the requests that differ from the base by one field, where the version has that field.
func (b base) mutated(request kmsg.Request, version int16) []testCase {
	var all []testCase
	for i, m := range mutations(request) {
		if leftOut(b.name, m.name) || !encodes(request, m) {
			continue
		}
		all = append(all, testCase{fmt.Sprintf("%s v%d %s", b.name, version, m.name), func(s *side, level detail) string {
			changed := b.at(s, version)
			mutations(changed)[i].apply()
			return once(s, changed, level)
		}})
	}
	return all
}

// encodes reports whether a change of a request changes its bytes.
func encodes(request kmsg.Request, m mutation) bool {
	before := string(request.AppendTo(nil))
	m.apply()
	defer m.undo()
	return string(request.AppendTo(nil)) != before
}

// once asks over a connection of its own.
func once(s *side, q kmsg.Request, level detail) string {
	return onceBody(s, q, q.AppendTo(nil), level)
}

func onceBody(s *side, q kmsg.Request, body []byte, level detail) string {
	c, err := dial(s.address)
	if err != nil {
		return "no connection"
	}
	defer c.Close()
	response, err := c.body(q, body)
	return outcome(response, err, level)
}

func outcome(response kmsg.Response, err error, level detail) string {
	switch {
	case errors.Is(err, errClosed), errors.Is(err, errSilent):
		return err.Error()
	case err != nil:
		return "unreadable: " + err.Error()
	}
	return render(reflect.ValueOf(response), level)
}
