package znode

import P "github.com/barnabas-mq/barnabas/internal/protocol"

// SeqIDPath is the counter behind generated broker ids. It holds no data: whoever wants an id sets it, and
// takes the data version that comes back.
const SeqIDPath = "/brokers/seqid"

// GeneratedBrokerID is the id for a data version of /brokers/seqid; reserved is reserved.broker.max.id,
// the highest id that people may give by hand.
func GeneratedBrokerID(version, reserved int32) P.BrokerID { return P.BrokerID(version + reserved) }
