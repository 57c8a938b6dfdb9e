package controller

import (
	"strconv"
	"strings"
)

// join lists names as Kafka's sentences do.
func join(names []string) string { return strings.Join(names, ",") }

func text(n int64) string { return strconv.FormatInt(n, 10) }

// metricName is a topic's name in Kafka's metrics, where '.' and '_' are one.
func metricName(topic string) string { return strings.ReplaceAll(topic, ".", "_") }

// ambiguous reports whether another topic could have the same name in metrics.
func ambiguous(topic string) bool { return strings.ContainsAny(topic, "._") }
