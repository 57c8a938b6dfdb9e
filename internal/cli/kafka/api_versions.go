package kafka

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// apiVersionsTool is kafka-broker-api-versions: one ApiVersions request to every living broker, and for each
//
//	host:9092 (id: 1 rack: null isFenced: false) -> (
//		Produce(0): 0 to 13 [usable: 13],
//		AddRaftVoter(80): UNSUPPORTED,
//		UNKNOWN(200): 0
//	)
//
// usable is the version that a client of Kafka 4.4 would choose. A broker that does not answer has a line with
// its error; the status is 0 all the same.
func apiVersionsTool() *tool {
	return &tool{
		name:    "kafka-broker-api-versions",
		summary: "This tool helps to retrieve broker version information.",
		flags:   []flag{bootstrapFlag(), commandConfigFlag()},
		run: func(ctx context.Context, t *call) error {
			if err := t.require("bootstrap-server"); err != nil {
				return err
			}
			client, err := t.dial()
			if err != nil {
				return err
			}
			defer client.Close()
			return printAPIVersions(ctx, t, client)
		},
	}
}

// printAPIVersions tells for every broker which kinds of requests it takes, and which version of each a
// client of Kafka 4.4 would use.
func printAPIVersions(ctx context.Context, t *call, client *admin.Client) error {
	all, err := client.APIVersions(ctx)
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.Err != nil {
			t.printf("%s -> ERROR: %s\n", nodeName(one.Broker), javaError(one.Err))
			continue
		}
		t.printf("%s -> (\n\t%s\n)\n", nodeName(one.Broker), strings.Join(versionLines(one.Versions), ",\n\t"))
	}
	return nil
}

// nodeName is a broker as Java prints it.
func nodeName(b admin.Broker) string {
	rack := "null"
	if b.Rack != nil {
		rack = *b.Rack
	}
	return fmt.Sprintf("%s:%d (id: %d rack: %s isFenced: false)", b.Host, b.Port, b.ID, rack)
}

// versionLines are the lines of one broker by key, with those that it does not have.
func versionLines(versions []admin.APIVersion) []string {
	known := apis()
	lines := map[int16]string{}
	for _, a := range known {
		lines[a.key] = fmt.Sprintf("%s(%d): UNSUPPORTED", a.name, a.key)
	}
	for _, v := range versions {
		lines[v.Key] = versionLine(known, v)
	}
	keys := make([]int16, 0, len(lines))
	for key := range lines {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	ordered := make([]string, 0, len(keys))
	for _, key := range keys {
		ordered = append(ordered, lines[key])
	}
	return ordered
}

func versionLine(known []api, v admin.APIVersion) string {
	i := slices.IndexFunc(known, func(a api) bool { return a.key == v.Key })
	if i < 0 {
		return fmt.Sprintf("UNKNOWN(%d): %s", v.Key, versionRange(v))
	}
	a := known[i]
	usable := fmt.Sprintf("[usable: %d]", min(a.latest, v.Max))
	switch {
	case a.latest < v.Min:
		usable = "[unusable: node too new]"
	case v.Max < a.oldest:
		usable = "[unusable: node too old]"
	}
	return fmt.Sprintf("%s(%d): %s %s", a.name, a.key, versionRange(v), usable)
}

func versionRange(v admin.APIVersion) string {
	if v.Min == v.Max {
		return fmt.Sprint(v.Min)
	}
	return fmt.Sprintf("%d to %d", v.Min, v.Max)
}
