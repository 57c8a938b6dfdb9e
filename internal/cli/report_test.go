package cli

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

func sampleReport() *report {
	r := &report{}
	r.object("thing").set("id", "x").set("count", 3).set("nothing", nil)
	list := r.list("rows", "name", "numbers", "own", "never", "at")
	list.add("first", []int32{1, 2}, map[string]string{"b": "2", "a": "1"}, nil, time.UnixMilli(1700000000123))
	list.add("", []int32(nil), map[string]string{}, nil, nil)
	r.list("empty", "name")
	return r
}

func TestReportForms(t *testing.T) {
	for format, want := range map[string]string{
		formatText: "id       x\ncount    3\nnothing  -\n\n" +
			"NAME   NUMBERS  OWN      AT\nfirst  1,2      a=1,b=2  2023-11-14T22:13:20.123Z\n-               -        -\n",
		formatTSV:  "id\tx\ncount\t3\nnothing\t-\nfirst\t1,2\ta=1,b=2\t-\t2023-11-14T22:13:20.123Z\n-\t\t-\t-\t-\n",
		formatJSON: `{"thing":{"id":"x","count":3,"nothing":null},"rows":[{"name":"first","numbers":[1,2],"own":{"a":"1","b":"2"},"never":null,"at":"2023-11-14T22:13:20.123Z"},{"name":"","numbers":[],"own":{},"never":null,"at":null}],"empty":[]}` + "\n",
	} {
		var out bytes.Buffer
		if err := sampleReport().write(&out, format); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("%s is\n%s\nexpected\n%s", format, out.String(), want)
		}
	}
}

func TestReportIsOneObject(t *testing.T) {
	var out bytes.Buffer
	if err := sampleReport().write(&out, formatJSON); err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(out.Bytes(), &object); err != nil || len(object) != 3 {
		t.Errorf("%v: %s", err, out.Bytes())
	}
}
