package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"
)

func main() {
	var o options
	level := flag.String("detail", "codes", "what is compared: codes, messages or all")
	flag.StringVar(&o.kafka, "kafka", "", "address of Apache Kafka")
	flag.StringVar(&o.barnabas, "barnabas", "", "address of Barnabas")
	flag.StringVar(&o.record, "record", "", "write Kafka's answers to this `file`")
	flag.StringVar(&o.intended, "intended", "test/differential/testdata/intended.txt", "the `file` of differences that are meant")
	run := flag.String("run", "", "only cases whose name matches this regular expression")
	flag.Parse()
	var ok bool
	if o.level, ok = map[string]detail{"codes": codes, "messages": messages, "all": everything}[*level]; !ok || o.kafka == "" || o.barnabas == "" && o.record == "" {
		flag.Usage()
		os.Exit(2)
	}
	o.only = regexp.MustCompile(*run)
	different, err := o.compare()
	if err != nil {
		fmt.Fprintln(os.Stderr, "differential:", err)
		os.Exit(2)
	}
	if different > 0 {
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	kafka, barnabas, record, intended string
	level                             detail
	only                              *regexp.Regexp
}

// compare asks both brokers and prints where they differ, as -Kafka +Barnabas; it returns how often they do.
func (o *options) compare() (different int, err error) {
	run := "d" + strconv.FormatInt(time.Now().Unix()%1_000_000, 36)
	kafka, err := newSide(o.kafka, run)
	if err != nil {
		return 0, err
	}
	if o.record != "" {
		return 0, recordAnswers(kafka, o.record)
	}
	barnabas, err := newSide(o.barnabas, run)
	if err != nil {
		return 0, err
	}
	meant, err := readIntended(o.intended)
	if err != nil {
		return 0, err
	}
	asked := 0
	for _, c := range cases(kafka) {
		if !o.only.MatchString(c.name) {
			continue
		}
		barnabas.next = max(kafka.next, barnabas.next)
		kafka.next = barnabas.next
		asked++
		want, got := c.answer(kafka, o.level), c.answer(barnabas, o.level)
		if want == got {
			continue
		}
		if _, ok := meant.find(c.name, want, got); !ok {
			different++
			fmt.Printf("%s\n  -%s\n  +%s\n", c.name, want, got)
		}
	}
	fmt.Printf("%d cases, %d differ\n", asked, different)
	return different, nil
}
