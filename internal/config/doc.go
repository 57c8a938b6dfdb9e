// Package config is one table of every property, and what follows from it: parsing, loading, the effective
// values of a broker and of a topic, what DescribeConfigs shows and what the Alter requests may change.
//
// The table has every broker, topic and group property of Apache Kafka 4.4, those that only 3.9 knows, and
// a few of our own. Each [Key] says its type, default, rule, whether it can change while the broker runs,
// and what it means. A property file of either version therefore loads; what a version does not know is
// shown by DescribeConfigs only where somebody has set it.
//
// # Where a value comes from
//
// For a broker, the first of these that has the key:
//
//	DYNAMIC_BROKER_CONFIG          the store, for this broker
//	DYNAMIC_DEFAULT_BROKER_CONFIG  the store, for all brokers
//	STATIC_BROKER_CONFIG           command line, else environment, else server.properties
//	DEFAULT_CONFIG                 the table
//
// A topic property has its own value (DYNAMIC_TOPIC_CONFIG) before those of the broker property that it
// falls back to, and a group property likewise (GROUP_CONFIG). Some broker properties are families in which
// the finer unit wins: log.retention.ms, then log.retention.minutes, then log.retention.hours.
//
// # The environment
//
// As in Kafka's container images, a variable is a property with the prefix KAFKA_, in upper case:
//
//	KAFKA_LOG_DIRS            log.dirs            one underscore: a dot
//	KAFKA_A__B                a_b                 two: an underscore
//	KAFKA_A___B               a-b                 three: a dash
//	KAFKA_CFG_LOG_DIRS        log.dirs            Bitnami's prefix, where KAFKA_LOG_DIRS is not set
//	CLUSTER_ID                cluster.id
//	KAFKA_LOG4J_ROOT_LOGLEVEL logging.level
//
// Everything here is immutable: a change makes a new [Broker].
package config
