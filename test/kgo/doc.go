// Package kgo pins franz-go's own test suite, which test/run aims at a running broker.
package kgo

import _ "github.com/twmb/franz-go/pkg/kgo"
