package znode

import (
	"slices"
	"strconv"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// State is the content of /brokers/topics/T/partitions/P/state, whose data version is the partition's
// epoch. The recovery state is left out unless it is 1, and leader is -1 where no replica may lead:
//
//	{"controller_epoch":1,"leader":3,"version":1,"leader_recovery_state":1,"leader_epoch":3,"isr":[3]}
//
// Barnabas adds "barnabas_doubtful":[1,2] to a state without a leader where members of the in-sync set have
// restarted in a way that may have cost them records, and "barnabas_eligible":[3] where replicas outside of
// the in-sync set have all that was committed (KIP-966), and "barnabas_unclean_epoch":7 ever after an unclean election
// in leader epoch 7. A state that somebody else writes has none of them.
type State struct {
	// ControllerEpoch is that of the controller that wrote the state.
	ControllerEpoch P.ControllerEpoch
	// Leader is NoBroker where no eligible replica is alive.
	Leader P.BrokerID
	// LeaderEpoch rises with every new leader, and with every replica that the controller takes out.
	LeaderEpoch P.LeaderEpoch
	// ISR is the in-sync set.
	ISR []P.BrokerID
	// Recovering is true after an unclean election, until the leader has cleaned up.
	Recovering bool
	// Doubtful lists members of the ISR that may have lost records by a restart.
	Doubtful []P.BrokerID
	// Eligible lists replicas outside of the ISR that have all that was committed.
	Eligible []P.BrokerID
	// UncleanEpoch is the leader epoch of the last unclean election; 0 where there was none.
	UncleanEpoch P.LeaderEpoch
}

// PartitionsPath is the parent of a topic's partitions; it has no data.
func PartitionsPath(topic string) string { return TopicPath(topic) + "/partitions" }

// PartitionPath is the parent of a partition's state; it has no data.
func PartitionPath(tp P.TopicPartition) string {
	return PartitionsPath(tp.Topic) + "/" + strconv.Itoa(int(tp.Partition))
}

// StatePath is the state of one partition.
func StatePath(tp P.TopicPartition) string { return PartitionPath(tp) + "/state" }

// StateOf is the part of a partition that its state znode holds.
func StateOf(p *metadata.Partition) State {
	return State{
		ControllerEpoch: p.ControllerEpoch, Leader: p.Leader, LeaderEpoch: p.LeaderEpoch,
		ISR: p.ISR, Recovering: p.Recovering, Doubtful: p.Doubtful, Eligible: p.Eligible, UncleanEpoch: p.UncleanEpoch,
	}
}

// EncodeState writes the znode.
func EncodeState(s State) []byte {
	dst := make([]byte, 0, 112)
	dst = strconv.AppendInt(append(dst, `{"controller_epoch":`...), int64(s.ControllerEpoch), 10)
	dst = strconv.AppendInt(append(dst, `,"leader":`...), int64(s.Leader), 10)
	dst = append(dst, `,"version":1`...)
	if s.Recovering {
		dst = append(dst, `,"leader_recovery_state":1`...)
	}
	dst = strconv.AppendInt(append(dst, `,"leader_epoch":`...), int64(s.LeaderEpoch), 10)
	dst = appendIDs(append(dst, `,"isr":`...), s.ISR)
	if len(s.Doubtful) > 0 {
		dst = appendIDs(append(dst, `,"barnabas_doubtful":`...), s.Doubtful)
	}
	if len(s.Eligible) > 0 {
		dst = appendIDs(append(dst, `,"barnabas_eligible":`...), s.Eligible)
	}
	if s.UncleanEpoch > 0 {
		dst = strconv.AppendInt(append(dst, `,"barnabas_unclean_epoch":`...), int64(s.UncleanEpoch), 10)
	}
	return append(dst, '}')
}

// Equal reports whether two states say the same.
func (s State) Equal(o State) bool {
	return s.ControllerEpoch == o.ControllerEpoch && s.Leader == o.Leader && s.LeaderEpoch == o.LeaderEpoch &&
		s.Recovering == o.Recovering && s.UncleanEpoch == o.UncleanEpoch && slices.Equal(s.ISR, o.ISR) && slices.Equal(s.Doubtful, o.Doubtful) && slices.Equal(s.Eligible, o.Eligible)
}

// DecodeState reads the znode of one partition.
func DecodeState(tp P.TopicPartition, data []byte) (State, error) {
	if s, ok := scanState(data); ok {
		return s, nil
	}
	return decodeState(tp, data)
}

// decodeState reads any JSON.
func decodeState(tp P.TopicPartition, data []byte) (State, error) {
	v := struct {
		ControllerEpoch P.ControllerEpoch `json:"controller_epoch"`
		Leader          P.BrokerID        `json:"leader"`
		LeaderEpoch     P.LeaderEpoch     `json:"leader_epoch"`
		ISR             []P.BrokerID      `json:"isr"`
		Recovery        int8              `json:"leader_recovery_state"`
		Doubtful        []P.BrokerID      `json:"barnabas_doubtful"`
		Eligible        []P.BrokerID      `json:"barnabas_eligible"`
		UncleanEpoch    P.LeaderEpoch     `json:"barnabas_unclean_epoch"`
	}{Leader: P.NoBroker}
	if err := decode(StatePath(tp), data, &v); err != nil {
		return State{}, err
	}
	return State{v.ControllerEpoch, v.Leader, v.LeaderEpoch, v.ISR, v.Recovery == 1, v.Doubtful, v.Eligible, max(v.UncleanEpoch, 0)}, nil
}
