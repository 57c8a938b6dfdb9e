package main

import (
	"fmt"
	"math"
	"reflect"
	"strings"
)

// mutation is one change of one field of a request.
//
// apply changes the request that it was made from, undo takes it back. Names are paths,
// Topics[0].Partitions[0].Offset=-2, and are what testdata goes by: they stay as long as kmsg's field names do.
type mutation struct {
	name        string
	apply, undo func()
}

// unchanged are fields that no mutation touches.
var unchanged = map[string]bool{"Version": true, "UnknownTags": true, "ClientSoftwareVersion": true}

// mutations lists the changes that can be made to a request. Each must be applied to a request of its own.
func mutations(request any) []mutation {
	var all []mutation
	collect("", reflect.ValueOf(request).Elem(), &all)
	return all
}

func collect(path string, v reflect.Value, all *[]mutation) {
	add := func(label string, value reflect.Value) {
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		*all = append(*all, mutation{strings.TrimPrefix(path, ".") + "=" + label, func() { v.Set(value) }, func() { v.Set(old) }})
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; !unchanged[name] {
				collect(path+"."+name, v.Field(i), all)
			}
		}
	case reflect.Bool:
		add("flipped", reflect.ValueOf(!v.Bool()).Convert(v.Type()))
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		collectNumber(path, v, add)
	case reflect.String:
		for _, s := range oddNames {
			add(s.label, reflect.ValueOf(s.name).Convert(v.Type()))
		}
	case reflect.Pointer:
		add("null", reflect.Zero(v.Type()))
		if v.Type().Elem().Kind() == reflect.String {
			for _, s := range oddNames {
				add(s.label, reflect.ValueOf(&s.name))
			}
		} else if !v.IsNil() {
			collect(path, v.Elem(), all)
		}
	case reflect.Array:
		add("zero", reflect.Zero(v.Type()))
		other := reflect.New(v.Type()).Elem()
		reflect.Copy(other, reflect.ValueOf([]byte("0123456789abcdef")))
		add("unknown", other)
	case reflect.Slice:
		collectSlice(path, v, add, all)
	}
}

// oddNames are strings that are no name of anything, or not a good one.
var oddNames = []struct{ label, name string }{
	{"empty", ""}, {"missing", "missing"}, {"bad", "no name!"}, {"dots", ".."}, {"slash", "a/b"},
	{"longest", strings.Repeat("x", 249)}, {"toolong", strings.Repeat("x", 250)},
}

func collectNumber(path string, v reflect.Value, add func(string, reflect.Value)) {
	limits := map[reflect.Kind]int64{reflect.Int8: math.MaxInt8, reflect.Int16: math.MaxInt16, reflect.Int32: math.MaxInt32, reflect.Int64: math.MaxInt64}
	for _, n := range []int64{-2, -1, 0, 1, 2, 3, limits[v.Kind()]} {
		if strings.HasSuffix(path, "WaitMillis") && n > 3 || strings.HasSuffix(path, ".TimeoutMillis") && n > 0 && n < 4 {
			continue // only slow, or a race
		}
		if n != v.Int() {
			add(fmt.Sprint(n), reflect.ValueOf(n).Convert(v.Type()))
		}
	}
}

func collectSlice(path string, v reflect.Value, add func(string, reflect.Value), all *[]mutation) {
	add("null", reflect.Zero(v.Type()))
	add("none", reflect.MakeSlice(v.Type(), 0, 0))
	if v.Type().Elem().Kind() == reflect.Uint8 {
		add("garbage", reflect.ValueOf([]byte("garbage")).Convert(v.Type()))
		return
	}
	if v.Len() == 0 {
		return
	}
	twice := reflect.MakeSlice(v.Type(), 0, 2)
	add("twice", reflect.Append(twice, v.Index(0), v.Index(0)))
	for i := range v.Len() {
		collect(fmt.Sprintf("%s[%d]", path, i), v.Index(i), all)
	}
}
