package protocol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestCodeOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Code
	}{
		{nil, None},
		{OffsetOutOfRange, OffsetOutOfRange},
		{fmt.Errorf("reading: %w", CorruptMessage), CorruptMessage},
		{Errorf(InvalidConfig, "no: %w", io.EOF), InvalidConfig},
		{fmt.Errorf("outer: %w", Errorf(InvalidTopic, "bad")), InvalidTopic},
		{context.DeadlineExceeded, RequestTimedOut},
		{io.EOF, UnknownServerError},
	} {
		if got := CodeOf(c.err); got != c.want {
			t.Errorf("CodeOf(%v) = %s, want %s", c.err, got.Name(), c.want.Name())
		}
	}
	err := Errorf(InvalidConfig, "no: %w", io.EOF)
	if !errors.Is(err, io.EOF) || !errors.Is(err, InvalidConfig) {
		t.Errorf("%v: neither cause nor code may be lost", err)
	}
}

func TestMessageOfHidesUncodedErrors(t *testing.T) {
	if m := MessageOf(errors.New("open /secret: denied")); strings.Contains(*m, "secret") {
		t.Errorf("message %q shows an internal error", *m)
	}
	if MessageOf(nil) != nil {
		t.Error("no error must have no message")
	}
}

func TestTopicIDText(t *testing.T) {
	id := NewTopicID()
	back, err := ParseTopicID(id.String())
	if err != nil || back != id {
		t.Fatalf("ParseTopicID(%s) = %s, %v", id, back, err)
	}
	for _, bad := range []string{"", "short", strings.Repeat("!", 22), strings.Repeat("A", 23)} {
		if _, err := ParseTopicID(bad); err == nil {
			t.Errorf("ParseTopicID(%q) succeeded", bad)
		}
	}
}

func TestValidateTopicName(t *testing.T) {
	for _, good := range []string{"a", "Dots.and_under-scores", "...", strings.Repeat("x", TopicNameMax)} {
		if err := ValidateTopicName(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "a b", "a/b", "../x", "ä", "a\x00", strings.Repeat("x", TopicNameMax+1)} {
		if err := ValidateTopicName(bad); CodeOf(err) != InvalidTopic {
			t.Errorf("%q: %v, want INVALID_TOPIC_EXCEPTION", bad, err)
		}
	}
	if !TopicNamesCollide("a.b", "a_b") || TopicNamesCollide("a.b", "a.b") || TopicNamesCollide("a", "b") {
		t.Error("TopicNamesCollide is wrong")
	}
}

func TestPartitionOfDir(t *testing.T) {
	tp, err := PartitionOfDir("my-topic-12")
	if err != nil || tp != (TopicPartition{"my-topic", 12}) || tp.String() != "my-topic-12" {
		t.Fatalf("got %v, %v", tp, err)
	}
	for _, bad := range []string{"", "topic", "-1", "topic-", "topic-x", "t-99999999999", "t-4294967296", "lost+found"} {
		if tp, err := PartitionOfDir(bad); err == nil {
			t.Errorf("%q gave %v", bad, tp)
		}
	}
}
