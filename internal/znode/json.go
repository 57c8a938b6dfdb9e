package znode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// appendText appends text as a JSON string. Unlike Go's default it leaves <, > and & as they are, since
// Kafka does.
func appendText(dst []byte, text string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // strings always encode
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

// appendKey appends a key and its colon, and a comma before all but the first.
func appendKey(dst []byte, key string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(appendText(dst, key), ':')
}

// appendIDs appends broker ids as a JSON array.
func appendIDs(dst []byte, ids []P.BrokerID) []byte {
	dst = append(dst, '[')
	for i, id := range ids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(id), 10)
	}
	return append(dst, ']')
}

// decode reads JSON into a struct; the error names what was read.
func decode(what string, data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
