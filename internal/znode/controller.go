package znode

import (
	"fmt"
	"strconv"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// ControllerPath names the active controller. It is ephemeral; up to Kafka 3.3 its version is 1 and the
// last key is missing:
//
//	{"version":2,"brokerid":1,"timestamp":"1795981340892","kraftControllerEpoch":-1}
const ControllerPath = "/controller"

// ControllerEpochPath counts the controllers. It holds the epoch in decimal. Its data version is the guard
// that every write of the controller checks; the two are equal in clusters that started with it, and may
// differ in old ones:
//
//	1
const ControllerEpochPath = "/controller_epoch"

// Controller is the content of /controller.
type Controller struct {
	// BrokerID is the broker that is controller.
	BrokerID P.BrokerID
	// Timestamp is when it was elected, in milliseconds since 1970.
	Timestamp int64
}

// EncodeController writes /controller.
func EncodeController(c Controller) []byte {
	return fmt.Appendf(nil, `{"version":2,"brokerid":%d,"timestamp":"%d","kraftControllerEpoch":-1}`, c.BrokerID, c.Timestamp)
}

// DecodeController reads /controller.
func DecodeController(data []byte) (Controller, error) {
	v := struct {
		BrokerID  P.BrokerID `json:"brokerid"`
		Timestamp string     `json:"timestamp"`
	}{BrokerID: P.NoBroker}
	if err := decode(ControllerPath, data, &v); err != nil {
		return Controller{}, err
	}
	ms, err := strconv.ParseInt(v.Timestamp, 10, 64)
	if err != nil {
		ms = -1 // people read it, nothing else does
	}
	return Controller{BrokerID: v.BrokerID, Timestamp: ms}, nil
}

// EncodeControllerEpoch writes /controller_epoch.
func EncodeControllerEpoch(epoch P.ControllerEpoch) []byte {
	return strconv.AppendInt(nil, int64(epoch), 10)
}

// DecodeControllerEpoch reads /controller_epoch.
func DecodeControllerEpoch(data []byte) (P.ControllerEpoch, error) {
	n, err := strconv.ParseInt(string(data), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", ControllerEpochPath, err)
	}
	return P.ControllerEpoch(n), nil
}
