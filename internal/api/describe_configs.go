package api

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// The types of resources that have properties.
const (
	topicResource         = int8(kmsg.ConfigResourceTypeTopic)
	brokerResource        = int8(kmsg.ConfigResourceTypeBroker)
	brokerLoggerResource  = int8(kmsg.ConfigResourceTypeBrokerLogger)
	clientMetricsResource = int8(16)
	groupResource         = int8(32)
)

// rootLogger names the only logger that this broker has.
const rootLogger = "root"

// describeConfigs lists the properties of topics, groups and this broker, with where each value comes from
// (versions 0 to 4; version 0 knows no sources, synonyms from 1, documentation from 3 on). A null or empty
// list of names means all.
//
// Names that are not known are left out without an error, and two or more names are all looked at
// (KAFKA-12235). A broker answers for itself only: another one's file is not known here, and the client has to
// ask that one.
func (a *API) describeConfigs(r *Request, q *kmsg.DescribeConfigsRequest) *kmsg.DescribeConfigsResponse {
	response := respondTo(r, kmsg.NewPtrDescribeConfigsResponse())
	for i := range q.Resources {
		asked := &q.Resources[i]
		resource := kmsg.NewDescribeConfigsResponseResource()
		resource.ResourceType, resource.ResourceName = asked.ResourceType, asked.ResourceName
		entries, err := a.describeResource(int8(asked.ResourceType), asked.ResourceName, asked.ConfigNames)
		resource.ErrorCode, resource.ErrorMessage = int16(protocol.CodeOf(err)), new(string) // Kafka says "", not null
		if err != nil {
			resource.ErrorMessage = protocol.MessageOf(err)
		}
		for j := range entries {
			resource.Configs = append(resource.Configs, describedConfig(q, &entries[j]))
		}
		response.Resources = append(response.Resources, resource)
	}
	return response
}

func (a *API) describeResource(kind int8, name string, names []string) ([]config.Entry, error) {
	switch kind {
	case topicResource:
		if err := protocol.ValidateTopicName(name); err != nil {
			return nil, err
		}
		image := a.View.Image()
		if image.Topic(name) == nil {
			return nil, protocol.UnknownTopicOrPartition
		}
		return a.Config().DescribeTopic(image.TopicConfig(name), names), nil
	case brokerResource:
		id, err := a.brokerOf(name)
		if err != nil {
			return nil, err
		}
		if id == protocol.NoBroker {
			return a.Config().DescribeBrokerDefault(names), nil
		}
		return a.Config().DescribeBroker(names), nil
	case groupResource:
		entity, err := a.entityOf(kind, name)
		if err != nil {
			return nil, err
		}
		return a.Config().DescribeGroup(a.View.Image().Config(entity), names), nil
	case brokerLoggerResource:
		if id, err := a.brokerOf(name); err != nil || id == protocol.NoBroker {
			return nil, cmp.Or(err, protocol.Errorf(protocol.InvalidRequest, "Broker id must not be empty"))
		}
		return a.describeLoggers(names), nil
	}
	return nil, protocol.Errorf(protocol.InvalidRequest, "Unsupported resource type: %d", kind)
}

// describeLoggers lists the only logger that there is, with the level that it was started with.
func (a *API) describeLoggers(names []string) []config.Entry {
	if len(names) > 0 && !slices.Contains(names, rootLogger) {
		return nil
	}
	level := strings.ToUpper(a.Config().String("logging.level"))
	return []config.Entry{{Name: rootLogger, Value: &level, Source: config.SourceDynamicBrokerLogger, ReadOnly: true, Type: config.String}}
}

// brokerOf reads a broker's resource name: empty for the defaults of all brokers, otherwise this broker's
// id, since only it knows its own properties.
func (a *API) brokerOf(name string) (protocol.BrokerID, error) {
	if name == "" {
		return protocol.NoBroker, nil
	}
	id, err := strconv.ParseInt(name, 10, 32)
	if err != nil {
		return protocol.NoBroker, protocol.Errorf(protocol.InvalidRequest, "Broker id must be an integer, but it is: %s", name)
	}
	if protocol.BrokerID(id) != a.Self {
		return protocol.NoBroker, protocol.Errorf(protocol.InvalidRequest, "Unexpected broker id, expected %d or empty string, but received %s", a.Self, name)
	}
	return a.Self, nil
}

// describedConfig is one property in the form of the request's version.
func describedConfig(q *kmsg.DescribeConfigsRequest, entry *config.Entry) kmsg.DescribeConfigsResponseResourceConfig {
	c := kmsg.NewDescribeConfigsResponseResourceConfig()
	c.Name, c.Value, c.ReadOnly, c.IsSensitive = entry.Name, entry.Value, entry.ReadOnly, entry.Sensitive
	c.Source, c.ConfigType = kmsg.ConfigSource(entry.Source), kmsg.ConfigType(entry.Type)
	c.IsDefault = entry.Source == config.SourceDefault
	if q.IncludeDocumentation && entry.Doc != "" {
		c.Documentation = &entry.Doc
	}
	if !q.IncludeSynonyms {
		return c
	}
	for _, s := range entry.Synonyms {
		synonym := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
		synonym.Name, synonym.Value, synonym.Source = s.Name, s.Value, kmsg.ConfigSource(s.Source)
		c.ConfigSynonyms = append(c.ConfigSynonyms, synonym)
	}
	return c
}

// entityOf is where the properties of a resource are kept.
func (a *API) entityOf(kind int8, name string) (metadata.Entity, error) {
	switch kind {
	case topicResource:
		if name == "" {
			return "", protocol.Errorf(protocol.InvalidRequest, "Default topic resources are not allowed.")
		}
		if err := protocol.ValidateTopicName(name); err != nil {
			return "", err
		}
		if a.View.Image().Topic(name) == nil {
			return "", protocol.Errorf(protocol.UnknownTopicOrPartition, "The topic '%s' does not exist.", name)
		}
		return metadata.TopicEntity(name), nil
	case brokerResource:
		id, err := a.brokerOf(name)
		return metadata.BrokerEntity(id), err
	case groupResource:
		if name == "" {
			return "", protocol.Errorf(protocol.InvalidRequest, "Default group resources are not allowed.")
		}
		return metadata.Entity(metadata.GroupEntities + "/" + znode.Sanitize(name)), nil
	case brokerLoggerResource:
		return "", protocol.Errorf(protocol.InvalidRequest, "The level of the log is set by logging.level when the broker starts.")
	}
	return "", protocol.Errorf(protocol.InvalidRequest, "Unknown resource type %d", kind)
}
