package kafka

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

//	Dynamic configs for topic t are:
//	  retention.ms=1000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1000}
//
// Without a name all resources of the kind are shown, with --all every property, defaults included. What was
// never there and has no properties is told in a sentence, with status 0.
func describeConfigs(ctx context.Context, t *call, client *admin.Client, s subject) error {
	kind, ok := resourceType(s.kinds[0])
	if !ok {
		return describeQuotas(ctx, t, client, s)
	}
	names := s.names
	if len(names) == 0 {
		var err error
		if names, err = resourceNames(ctx, client, kind); err != nil {
			return err
		}
	} else if !t.has("all") {
		exists, err := resourceExists(ctx, client, kind, names[0])
		if err != nil {
			return err
		}
		if !exists {
			t.printf("The %s '%s' doesn't exist and doesn't have dynamic config.\n", singular(s.kinds[0]), names[0])
			return nil
		}
	}
	if len(names) == 0 {
		return nil
	}
	resources, err := client.Configs(ctx, kind, names...)
	if err != nil {
		return err
	}
	for _, r := range resources {
		if err := t.printResource(s.kinds[0], r); err != nil {
			return err
		}
	}
	return nil
}

// singular is one of a kind.
func singular(kind string) string { return kind[:len(kind)-1] }

// resourceNames are all resources of a kind; for brokers also the defaults, whose name is empty.
func resourceNames(ctx context.Context, client *admin.Client, kind kmsg.ConfigResourceType) ([]string, error) {
	var names []string
	switch kind {
	case kmsg.ConfigResourceTypeTopic:
		topics, err := client.Topics(ctx)
		for _, t := range topics {
			names = append(names, t.Name)
		}
		return names, err
	case kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeBrokerLogger:
		cluster, err := client.Cluster(ctx)
		for _, b := range cluster.Brokers {
			names = append(names, strconv.Itoa(int(b.ID)))
		}
		return append(names, ""), err
	case kmsg.ConfigResourceTypeGroupConfig:
		groups, err := client.Groups(ctx, admin.GroupFilter{})
		if err != nil {
			return nil, err
		}
		for _, g := range groups {
			names = append(names, g.Name)
		}
	}
	listed, err := client.ConfigResources(ctx, kind)
	if err != nil {
		// Older brokers do not list them; then only those are known that exist otherwise.
		listed = nil
	}
	for _, name := range listed {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// resourceExists reports whether there is such a resource; the defaults of brokers always are.
func resourceExists(ctx context.Context, client *admin.Client, kind kmsg.ConfigResourceType, name string) (bool, error) {
	if kind == kmsg.ConfigResourceTypeTopic {
		topics, err := client.Topics(ctx, name)
		if err != nil {
			return false, err
		}
		switch code := admin.CodeName(topics[0].Err); code {
		case "INVALID_TOPIC_EXCEPTION":
			return false, topics[0].Err
		default:
			return code == "", nil
		}
	}
	names, err := resourceNames(ctx, client, kind)
	return slices.Contains(names, name), err
}

func (t *call) printResource(kind string, r admin.Resource) error {
	if r.Err != nil {
		return r.Err
	}
	which := "Dynamic"
	if t.has("all") {
		which = "All"
	}
	if r.Name == "" {
		t.printf("Default configs for %s in the cluster are:\n", kind)
	} else {
		t.printf("%s configs for %s %s are:\n", which, singular(kind), r.Name)
	}
	own := r.Own()
	for _, e := range r.Entries {
		if _, set := own[e.Name]; !set && !t.has("all") {
			continue
		}
		var synonyms []string
		for _, s := range e.Synonyms {
			synonyms = append(synonyms, admin.SourceName(s.Source)+":"+s.Name+"="+textOrNull(s.Value))
		}
		t.printf("  %s=%s sensitive=%t synonyms={%s}\n", e.Name, textOrNull(e.Value), e.Sensitive, strings.Join(synonyms, ", "))
	}
	return nil
}

func textOrNull(value *string) string {
	if value == nil {
		return "null"
	}
	return *value
}
