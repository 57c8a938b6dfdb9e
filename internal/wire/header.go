package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// LengthSize is the size of a frame's length prefix in bytes.
const LengthSize = 4

// FrameLength reads the length prefix of a frame, without the prefix itself. It fails where the length is
// negative or above limit, both in bytes: the connection cannot be used any further.
func FrameLength(prefix []byte, limit int) (int, error) {
	length := int(int32(binary.BigEndian.Uint32(prefix)))
	if length < 0 || length > limit {
		return 0, fmt.Errorf("frame of %d bytes, at most %d are allowed", length, limit)
	}
	return length, nil
}

// RequestHeader is the header of a request.
type RequestHeader struct {
	// Key and Version name the message that follows; both may be ones that we do not know.
	Key     int16
	Version int16
	// CorrelationID is the client's, the response repeats it.
	CorrelationID int32
	// ClientID is what the client calls itself; null is the empty string.
	ClientID string
}

// fixedHeaderSize is the size of key, version and correlation id.
const fixedHeaderSize = 8

// ParseRequestHeader reads the header of a request from its frame, and returns the body behind it, which
// aliases frame. It fails with INVALID_REQUEST where the frame is too short for what it claims; then the
// connection must be closed, since not even the form of an error response is known.
func ParseRequestHeader(frame []byte) (RequestHeader, []byte, error) {
	var h RequestHeader
	body, err := h.Parse(frame)
	return h, body, err
}

// Parse is ParseRequestHeader into h. It keeps h.ClientID where the frame has the same, so that the requests
// of one connection share one string.
// The body aliases frame and lives as long as the frame's buffer does; the client id is a copy. The client id
// stays a string with two bytes of length in flexible versions as well (KIP-482), so that a broker can read it
// from requests whose version it does not know.
func (h *RequestHeader) Parse(frame []byte) (body []byte, err error) {
	if len(frame) < fixedHeaderSize {
		return nil, protocol.Errorf(protocol.InvalidRequest, "request of %d bytes has no header", len(frame))
	}
	h.Key = int16(binary.BigEndian.Uint16(frame))
	h.Version = int16(binary.BigEndian.Uint16(frame[2:]))
	h.CorrelationID = int32(binary.BigEndian.Uint32(frame[4:]))
	body = frame[fixedHeaderSize:]
	if h.Key == keyControlledShutdown && h.Version == 0 {
		h.ClientID = ""
		return body, nil
	}
	r := Reader{rest: body}
	clientID := r.NullableBytes16()
	if h.ClientID != string(clientID) {
		h.ClientID = string(clientID)
	}
	if Flexible(h.Key, h.Version) {
		r.SkipTags()
	}
	if r.bad {
		return nil, protocol.Errorf(protocol.InvalidRequest,
			"header of request with key %d, version %d does not fit into %d bytes", h.Key, h.Version, len(frame))
	}
	return r.rest, nil
}

// AppendRequestHeader appends the header of a request, with an empty client id as null.
func AppendRequestHeader(dst []byte, h RequestHeader) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(h.Key))
	dst = binary.BigEndian.AppendUint16(dst, uint16(h.Version))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.CorrelationID))
	if h.Key == keyControlledShutdown && h.Version == 0 {
		return dst
	}
	if h.ClientID == "" {
		dst = AppendNullableString(dst, nil)
	} else {
		dst = AppendString(dst, h.ClientID)
	}
	if Flexible(h.Key, h.Version) {
		dst = AppendNoTags(dst)
	}
	return dst
}

// AppendResponseHeader appends the header of the response to a request of that key and version.
func AppendResponseHeader(dst []byte, key, version int16, correlationID int32) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(correlationID))
	if responseHeaderHasTags(key, version) {
		dst = AppendNoTags(dst)
	}
	return dst
}

// ResponseHeaderSize is what AppendResponseHeader appends, in bytes.
func ResponseHeaderSize(key, version int16) int {
	if responseHeaderHasTags(key, version) {
		return 5
	}
	return 4
}

// ParseResponseHeader reads the header of the response to a request of that key and version from its frame,
// and returns the body behind it, which aliases frame.
func ParseResponseHeader(frame []byte, key, version int16) (correlationID int32, body []byte, err error) {
	r := Reader{rest: frame}
	correlationID = r.Int32()
	if responseHeaderHasTags(key, version) {
		r.SkipTags()
	}
	if r.bad {
		return 0, nil, fmt.Errorf("header of response to key %d, version %d does not fit into %d bytes", key, version, len(frame))
	}
	return correlationID, r.rest, nil
}

// A tag section in the header of an ApiVersions answer is read as part of the body by every client.
func responseHeaderHasTags(key, version int16) bool {
	return key != keyApiVersions && Flexible(key, version)
}
