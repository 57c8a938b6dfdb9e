package admin

import (
	"cmp"
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Resource is something that has properties: a topic, a broker, a group.
type Resource struct {
	Type kmsg.ConfigResourceType
	Name string
	// Entries are sorted by name.
	Entries []ConfigEntry
	Err     error
}

// Own are the properties that were set for the resource itself.
func (r Resource) Own() map[string]string {
	own := map[string]string{}
	for _, e := range r.Entries {
		if e.Source == ownSource(r) {
			own[e.Name] = e.Text()
		}
	}
	return own
}

// ownSource is the source of what was set for the resource itself.
//
// The sources are Kafka's (KIP-226): a property that was set for a resource stands beside those that it
// inherits, and only its source tells them apart.
func ownSource(r Resource) kmsg.ConfigSource {
	switch {
	case r.Type == kmsg.ConfigResourceTypeTopic:
		return kmsg.ConfigSourceDynamicTopicConfig
	case r.Type == kmsg.ConfigResourceTypeBroker && r.Name == "":
		return kmsg.ConfigSourceDynamicDefaultBrokerConfig
	case r.Type == kmsg.ConfigResourceTypeBroker:
		return kmsg.ConfigSourceDynamicBrokerConfig
	case r.Type == kmsg.ConfigResourceTypeBrokerLogger:
		return kmsg.ConfigSourceDynamicBrokerLoggerConfig
	case r.Type == kmsg.ConfigResourceTypeGroupConfig:
		return kmsg.ConfigSourceGroupConfig
	}
	return kmsg.ConfigSourceClientMetricsConfig
}

// ConfigEntry is one property.
type ConfigEntry struct {
	Name string
	// Value is nil for null and for secrets.
	Value     *string
	Source    kmsg.ConfigSource
	ReadOnly  bool
	Sensitive bool
	Synonyms  []kmsg.DescribeConfigsResponseResourceConfigConfigSynonym
	Doc       string
}

// Text is the value in words.
func (e ConfigEntry) Text() string {
	if e.Value == nil {
		return "null"
	}
	return *e.Value
}

// TopicConfigs are the properties of topics.
func (c *Client) TopicConfigs(ctx context.Context, names ...string) ([]Resource, error) {
	return c.Configs(ctx, kmsg.ConfigResourceTypeTopic, names...)
}

// Configs are the properties of resources of one type, in the order of the names. A broker's name is its
// id, and the empty name stands for the defaults of all brokers.
func (c *Client) Configs(ctx context.Context, kind kmsg.ConfigResourceType, names ...string) ([]Resource, error) {
	return c.describeConfigs(ctx, kind, names, nil)
}

// describeConfigs asks for some properties, those that the brokers know, or with nil keys for all. Those of topics are the
// newest, so that nobody decides by what has been changed already.
func (c *Client) describeConfigs(ctx context.Context, kind kmsg.ConfigResourceType, names, keys []string) ([]Resource, error) {
	r := kmsg.NewPtrDescribeConfigsRequest()
	r.IncludeSynonyms, r.IncludeDocumentation = keys == nil, false
	for _, name := range names {
		resource := kmsg.NewDescribeConfigsRequestResource()
		resource.ResourceType, resource.ResourceName, resource.ConfigNames = kind, name, keys
		r.Resources = append(r.Resources, resource)
	}
	ask := request[*kmsg.DescribeConfigsResponse]
	if kind == kmsg.ConfigResourceTypeTopic {
		ask = newest[*kmsg.DescribeConfigsResponse]
	}
	response, err := ask(ctx, c, r)
	if err != nil {
		return nil, err
	}
	answers := map[string][]*kmsg.DescribeConfigsResponseResource{}
	for i := range response.Resources {
		answer := &response.Resources[i]
		answers[answer.ResourceName] = append(answers[answer.ResourceName], answer)
	}
	resources := make([]Resource, 0, len(names))
	for _, name := range names {
		resources = append(resources, resourceOf(kind, name, answers[name]))
	}
	return resources, nil
}

func resourceOf(kind kmsg.ConfigResourceType, name string, answers []*kmsg.DescribeConfigsResponseResource) Resource {
	resource := Resource{Type: kind, Name: name, Err: errNoAnswer}
	for _, answer := range answers {
		resource.Err = codeError(answer.ErrorCode, answer.ErrorMessage)
		for _, e := range answer.Configs {
			entry := ConfigEntry{
				Name: e.Name, Value: e.Value, Source: e.Source, ReadOnly: e.ReadOnly, Sensitive: e.IsSensitive, Synonyms: e.ConfigSynonyms,
			}
			if e.Documentation != nil {
				entry.Doc = *e.Documentation
			}
			resource.Entries = append(resource.Entries, entry)
		}
	}
	slices.SortFunc(resource.Entries, func(a, b ConfigEntry) int { return cmp.Compare(a.Name, b.Name) })
	return resource
}

// SourceName is Kafka's name for where a value comes from.
func SourceName(source kmsg.ConfigSource) string {
	switch source {
	case kmsg.ConfigSourceGroupConfig:
		return "DYNAMIC_GROUP_CONFIG"
	case kmsg.ConfigSourceClientMetricsConfig:
		return "DYNAMIC_CLIENT_METRICS_CONFIG"
	}
	return source.String()
}

// ConfigResources lists the names of the resources of a kind that have properties of their own.
func (c *Client) ConfigResources(ctx context.Context, kind kmsg.ConfigResourceType) ([]string, error) {
	r := kmsg.NewPtrListConfigResourcesRequest()
	r.ResourceTypes = []int8{int8(kind)}
	response, err := request[*kmsg.ListConfigResourcesResponse](ctx, c, r)
	if err != nil {
		return nil, err
	}
	if err := codeError(response.ErrorCode, nil); err != nil {
		return nil, err
	}
	var names []string
	for _, resource := range response.ConfigResources {
		names = append(names, resource.Name)
	}
	slices.Sort(names)
	return names, nil
}
