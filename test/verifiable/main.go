// Command verifiable compares what Kafka's VerifiableProducer and VerifiableConsumer have printed: nothing that was
// acknowledged may be missing, moved or there twice, and neither of them may have seen an error.
//
//	go run ./test/verifiable -producer FILE... -consumer FILE...
//
// Both print a JSON object a line; the consumer wants --verbose, so that it names every record.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
)

// line is what is used of an object, whatever it tells of.
type line struct {
	Name      string `json:"name"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Value     string `json:"value"`
	// Success and Error are those of a commit of offsets, Exception and Message those of a record that failed.
	Success   bool   `json:"success"`
	Error     string `json:"error"`
	Exception string `json:"exception"`
	Message   string `json:"message"`
}

// place is where a record stands.
type place struct {
	topic     string
	partition int32
	offset    int64
}

// history is what all producers and consumers have said.
type history struct {
	acknowledged, consumed map[place]string
	// again counts records that a consumer was given more than once, as happens where groups change.
	again, commits int
	errs           []error
}

func main() {
	h := history{acknowledged: map[place]string{}, consumed: map[place]string{}}
	read := func(path string) error { return h.read(path) }
	flag.Func("producer", "what a producer printed; may be repeated", read)
	flag.Func("consumer", "what a consumer printed; may be repeated", read)
	flag.Parse()
	h.compare()
	fmt.Printf("%d records acknowledged, %d consumed (%d of them again), %d commits\n", len(h.acknowledged), len(h.consumed), h.again, h.commits)
	if len(h.errs) > 0 {
		fmt.Fprintln(os.Stderr, errors.Join(h.errs[:min(len(h.errs), 20)]...))
		fmt.Fprintf(os.Stderr, "verifiable: %d errors\n", len(h.errs))
		os.Exit(1)
	}
}

func (h *history) fail(format string, args ...any) {
	h.errs = append(h.errs, fmt.Errorf(format, args...))
}

// read takes over what one program printed. Lines that are no objects are messages of Java's.
func (h *history) read(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 || lines.Bytes()[0] != '{' {
			continue
		}
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return fmt.Errorf("%s: %w: %s", path, err, lines.Text())
		}
		h.take(&l)
	}
	return lines.Err()
}

// take is one object.
func (h *history) take(l *line) {
	at := place{l.Topic, l.Partition, l.Offset}
	switch l.Name {
	case "producer_send_success":
		if other, twice := h.acknowledged[at]; twice {
			h.fail("records %s and %s were both acknowledged at %v", other, l.Value, at)
		}
		h.acknowledged[at] = l.Value
	case "producer_send_error":
		h.fail("record %s of %s was not written: %s: %s", l.Value, l.Topic, l.Exception, l.Message)
	case "record_data":
		if other, again := h.consumed[at]; again {
			h.again++
			if other != l.Value {
				h.fail("at %v stood %s, and then %s", at, other, l.Value)
			}
		}
		h.consumed[at] = l.Value
	case "offsets_committed":
		h.commits++
		if !l.Success {
			h.fail("a commit of offsets failed: %s", l.Error)
		}
	}
}

// compare looks for what is missing, and for what is there twice.
func (h *history) compare() {
	if len(h.acknowledged) == 0 {
		h.fail("nothing was acknowledged")
	}
	for at, value := range h.acknowledged {
		if found, ok := h.consumed[at]; !ok {
			h.fail("record %s, acknowledged at %v, is lost", value, at)
		} else if found != value {
			h.fail("record %s was acknowledged at %v, where %s stands", value, at, found)
		}
	}
	first := map[string]place{}
	for at, value := range h.consumed {
		if other, twice := first[at.topic+"/"+value]; twice {
			h.fail("record %s stands at %v and at %v", value, other, at)
		}
		first[at.topic+"/"+value] = at
	}
}
