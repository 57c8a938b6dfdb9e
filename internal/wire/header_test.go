package wire

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// frame is one line of testdata/frames.jsonl: a request and its response as real clients and brokers sent
// them, without the length prefix. There is one of every key and version that was seen.
type frame struct {
	Key           int16   `json:"key"`
	Version       int16   `json:"version"`
	Name          string  `json:"name"`
	CorrelationID int32   `json:"correlationId"`
	ClientID      *string `json:"clientId"`
	HeaderVersion int     `json:"headerVersion"`
	Request       string  `json:"request"`
	Response      string  `json:"response"`
}

func frames(t testing.TB) []frame {
	t.Helper()
	file, err := os.Open("testdata/frames.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []frame
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var f frame
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	if err := lines.Err(); err != nil || len(all) < 50 {
		t.Fatalf("%d frames: %v", len(all), err)
	}
	return all
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGoldenRequests(t *testing.T) {
	for _, f := range frames(t) {
		raw := unhex(t, f.Request)
		h, body, err := ParseRequestHeader(raw)
		if err != nil {
			t.Fatalf("%s %d: %v", f.Name, f.Version, err)
		}
		clientID := ""
		if f.ClientID != nil {
			clientID = *f.ClientID
		}
		if want := (RequestHeader{f.Key, f.Version, f.CorrelationID, clientID}); h != want {
			t.Errorf("%s %d: header %+v, want %+v", f.Name, f.Version, h, want)
		}
		if Flexible(h.Key, h.Version) != (f.HeaderVersion == 2) {
			t.Errorf("%s %d: flexible is wrong", f.Name, f.Version)
		}
		if again := append(AppendRequestHeader(nil, h), body...); !bytes.Equal(again, raw) {
			t.Errorf("%s %d: header encodes to other bytes", f.Name, f.Version)
		}
		request := kmsg.RequestForKey(f.Key)
		request.SetVersion(f.Version)
		if err := request.ReadFrom(body); err != nil {
			t.Errorf("%s %d: body does not begin where the header ends: %v", f.Name, f.Version, err)
		}
	}
}

func TestGoldenResponses(t *testing.T) {
	for _, f := range frames(t) {
		if f.Response == "" {
			continue
		}
		raw := unhex(t, f.Response)
		id, body, err := ParseResponseHeader(raw, f.Key, f.Version)
		if err != nil || id != f.CorrelationID {
			t.Fatalf("%s %d: correlation id %d, %v", f.Name, f.Version, id, err)
		}
		header := AppendResponseHeader(nil, f.Key, f.Version, id)
		if len(header) != ResponseHeaderSize(f.Key, f.Version) || !bytes.Equal(append(header, body...), raw) {
			t.Errorf("%s %d: header encodes to other bytes", f.Name, f.Version)
		}
		response := kmsg.ResponseForKey(f.Key)
		response.SetVersion(f.Version)
		if err := response.ReadFrom(body); err != nil {
			t.Errorf("%s %d: body does not begin where the header ends: %v", f.Name, f.Version, err)
		}
	}
}

func TestFlexibleIsWhatMessagesSay(t *testing.T) {
	if Keys != kmsg.MaxKey+1 {
		t.Fatalf("%d keys, kmsg knows %d", Keys, kmsg.MaxKey+1)
	}
	for key := range Keys {
		request := kmsg.RequestForKey(key)
		for version := range request.MaxVersion() + 2 {
			request.SetVersion(version)
			if got, want := Flexible(key, version), request.IsFlexible(); got != want {
				t.Errorf("%s %d: %v, want %v", kmsg.NameForKey(key), version, got, want)
			}
		}
	}
	for _, key := range []int16{-1, math.MinInt16, Keys, math.MaxInt16} {
		if Flexible(key, 9) {
			t.Errorf("unknown key %d is flexible", key)
		}
	}
	if Flexible(0, -1) || Flexible(45, -1) {
		t.Error("a negative version is flexible")
	}
}

func TestHeaderExceptions(t *testing.T) {
	h, body, err := ParseRequestHeader([]byte{0, 7, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1})
	if err != nil || h != (RequestHeader{7, 0, 5, ""}) || !bytes.Equal(body, []byte{0, 0, 0, 1}) {
		t.Errorf("ControlledShutdown 0: %+v, %x, %v", h, body, err)
	}
	if got := AppendRequestHeader(nil, h); len(got) != 8 {
		t.Errorf("ControlledShutdown 0 has a header of %d bytes", len(got))
	}
	for version := range int16(6) {
		if got := AppendResponseHeader(nil, 18, version, 1); len(got) != 4 {
			t.Errorf("ApiVersions %d answers with a header of %d bytes", version, len(got))
		}
	}
	if got := AppendResponseHeader(nil, 3, 9, 1); !bytes.Equal(got, []byte{0, 0, 0, 1, 0}) {
		t.Errorf("Metadata 9: %x", got)
	}
}

func TestBadRequestHeaders(t *testing.T) {
	for name, raw := range map[string][]byte{
		"empty":               {},
		"seven bytes":         {0, 0, 0, 9, 0, 0, 0},
		"no client id":        {0, 0, 0, 9, 0, 0, 0, 1},
		"client id too long":  {0, 0, 0, 9, 0, 0, 0, 1, 0x7f, 0xff, 'a'},
		"no tags":             {0, 0, 0, 9, 0, 0, 0, 1, 0, 0},
		"tags without an end": {0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0},
		"tag too long":        {0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f},
		"tag count too long":  {0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1},
	} {
		if _, _, err := ParseRequestHeader(raw); protocol.CodeOf(err) != protocol.InvalidRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	tags := []byte{0, 0, 0, 9, 0, 0, 0, 1, 0, 1, 'c', 2, 0, 1, 'x', 5, 0, 'b', 'o', 'd', 'y'}
	h, body, err := ParseRequestHeader(tags)
	if err != nil || h.ClientID != "c" || string(body) != "body" {
		t.Errorf("unknown tags: %+v, %q, %v", h, body, err)
	}
}

func TestFrameLength(t *testing.T) {
	for prefix, want := range map[string]int{
		"00000000": 0, "00000064": 100, "00000065": -1, "7fffffff": -1, "80000000": -1, "ffffffff": -1,
		hex.EncodeToString([]byte("GET ")): -1, "16030100": -1,
	} {
		got, err := FrameLength(unhex(t, prefix), 100)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%s: %d, %v", prefix, got, err)
		}
	}
}

func TestParseRequestHeaderAllocatesNothing(t *testing.T) {
	raw := AppendRequestHeader(nil, RequestHeader{0, 9, 1, "client"})
	var h RequestHeader
	if n := testing.AllocsPerRun(100, func() {
		if _, err := h.Parse(raw); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations for the same client id", n)
	}
}

func FuzzParseRequestHeader(f *testing.F) {
	for _, frame := range frames(f) {
		f.Add(unhex(f, frame.Request))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, body, err := ParseRequestHeader(raw)
		if err != nil {
			return
		}
		if len(body) > len(raw)-fixedHeaderSize || !bytes.HasSuffix(raw, body) {
			t.Fatalf("body of %d bytes in a frame of %d", len(body), len(raw))
		}
		again, rest, err := ParseRequestHeader(append(AppendRequestHeader(nil, h), body...))
		if err != nil || again != h || !bytes.Equal(rest, body) {
			t.Fatalf("%+v became %+v, %v", h, again, err)
		}
	})
}
