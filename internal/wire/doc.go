// Package wire knows the frames of Kafka's protocol and their headers, with the exceptions that grew over the
// years, and the primitives for the few messages that are framed by hand; the others are franz-go's kmsg.
//
// A frame is a length, a header and a body:
//
//	length         int32   of what follows; [FrameLength] bounds it before anything is allocated
//
//	request header v0          v1               v2
//	key            int16       int16            int16
//	version        int16       int16            int16
//	correlation id int32       int32            int32
//	client id                  nullable string  nullable string, not compact
//	tags                                        tagged fields
//
//	response header v0         v1
//	correlation id int32       int32
//	tags                       tagged fields
//
// Flexible versions of a request ([Flexible], KIP-482) have request header v2 and response header v1. The
// exceptions: ControlledShutdown 0 has request header v0; ApiVersions always has response header v0, since a
// client that does not know the version of the answer must be able to read its error.
package wire
