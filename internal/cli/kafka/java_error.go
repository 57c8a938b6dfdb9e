package kafka

import (
	"strings"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// irregularClasses are the Java exceptions whose names do not follow from the names of their codes.
func irregularClasses() map[string]string {
	return map[string]string{
		"CORRUPT_MESSAGE":                "CorruptRecord",
		"DELEGATION_TOKEN_AUTH_DISABLED": "DelegationTokenDisabled",
		"GROUP_ID_NOT_FOUND":             "GroupIdNotFound",
		"GROUP_SUBSCRIBED_TO_TOPIC":      "GroupSubscribedToTopic",
		"INVALID_CONFIG":                 "InvalidConfiguration",
		"INVALID_TOPIC_EXCEPTION":        "InvalidTopic",
		"KAFKA_STORAGE_ERROR":            "KafkaStorage",
		"MESSAGE_TOO_LARGE":              "RecordTooLarge",
		"NON_EMPTY_GROUP":                "GroupNotEmpty",
		"OFFSET_METADATA_TOO_LARGE":      "OffsetMetadataTooLarge",
		"REBALANCE_IN_PROGRESS":          "RebalanceInProgress",
		"REQUEST_TIMED_OUT":              "Timeout",
		"TOPIC_ALREADY_EXISTS":           "TopicExists",
		"UNKNOWN_SERVER_ERROR":           "UnknownServer",
	}
}

// javaClass is the Java exception of an error code.
//
// Scripts search for these class names in what the tools print. The rule covers most codes; a code that it gets
// wrong belongs into irregularClasses.
func javaClass(code string) string {
	if irregular, ok := irregularClasses()[code]; ok {
		return "org.apache.kafka.common.errors." + irregular + "Exception"
	}
	var b strings.Builder
	for _, word := range strings.Split(strings.TrimSuffix(strings.ToLower(code), "_failed"), "_") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return "org.apache.kafka.common.errors." + b.String() + "Exception"
}

// javaError is how Java prints an error that a broker answered with; others stay as they are.
func javaError(err error) string {
	code := admin.CodeName(err)
	if code == "" {
		return admin.Message(err)
	}
	return javaClass(code) + ": " + admin.Message(err)
}
