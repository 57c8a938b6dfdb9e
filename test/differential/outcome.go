package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// detail is how much of an answer a comparison looks at.
type detail int

const (
	codes    detail = iota // error codes and the lengths of arrays
	messages               // and error messages
	everything
)

// arrayMax is the longest array whose elements are compared one by one.
const arrayMax = 12

// varying are fields whose values differ between brokers, clusters or runs.
var varying = map[string]bool{
	"ThrottleMillis": true, "Host": true, "Port": true, "ClusterID": true, "TopicID": true, "Dir": true, "ProducerID": true,
	"MemberID": true, "LeaderID": true, "Size": true, "TotalBytes": true, "UsableBytes": true, "SessionID": true, "Records": true,
	"RecordBatches": true, "LogAppendTime": true, "Timestamp": true, "LastTimestamp": true, "FinalizedFeaturesEpoch": true,
}

// render writes an answer as one line. Elements of arrays are sorted, since brokers keep some of them in maps.
//
//	codes        {ErrorCode Topics[{ErrorCode Partitions[2]}]}     names of errors, lengths of arrays
//	messages     and what is said in words
//	everything   and all values that do not vary from broker to broker
func render(v reflect.Value, level detail) string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return "null"
		}
		return render(v.Elem(), level)
	case reflect.Struct:
		return renderStruct(v, level)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return fmt.Sprintf("%d bytes", v.Len())
		}
		return renderSlice(v, level)
	case reflect.String:
		return fmt.Sprintf("%q", v.String())
	default:
		return fmt.Sprint(v.Interface())
	}
}

func renderSlice(v reflect.Value, level detail) string {
	if v.Len() > arrayMax {
		return "[many]"
	}
	var elements []string
	for i := range v.Len() {
		if s := render(v.Index(i), level); s != "" {
			elements = append(elements, s)
		}
	}
	slices.Sort(elements)
	if level == codes && len(elements) > 0 && elements[0] == elements[len(elements)-1] && (len(elements) > 1 || isScalar(v.Type().Elem())) {
		return fmt.Sprintf("[%d]", len(elements))
	}
	return "[" + strings.Join(elements, " ") + "]"
}

func isScalar(t reflect.Type) bool {
	return t.Kind() != reflect.Struct && t.Kind() != reflect.Pointer
}

func renderStruct(v reflect.Value, level detail) string {
	var fields []string
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if name == "Version" || name == "UnknownTags" || name == "CurrentLeader" || varying[name] {
			continue
		}
		if s := renderField(name, v.Field(i), level); s != "" {
			fields = append(fields, s)
		}
	}
	return "{" + strings.Join(fields, " ") + "}"
}

func renderField(name string, v reflect.Value, level detail) string {
	switch {
	case strings.HasSuffix(name, "ErrorCode"):
		return errorName(int16(v.Int()))
	case name == "ErrorMessage":
		if level < messages {
			return ""
		}
		return render(v, level)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		return name + render(v, level)
	case v.Kind() == reflect.Struct:
		return name + render(v, level)
	case level < everything:
		return ""
	}
	return name + ":" + render(v, level)
}

func errorName(code int16) string {
	if code == 0 {
		return "NONE"
	}
	if known := kerr.TypedErrorForCode(code); known != nil {
		return known.Message
	}
	return fmt.Sprintf("code %d", code)
}
