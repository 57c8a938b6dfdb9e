package znode

import (
	"bytes"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// scanState reads a state that consists of nothing but the known keys, without spaces: what Kafka and
// Barnabas write. A controller reads one for every partition of the cluster when it starts, which is why
// this exists: it takes a tenth of the time of a JSON decoder. Anything else gives false, and is left to
// one.
func scanState(data []byte) (State, bool) {
	s, rest, ok := State{Leader: P.NoBroker}, data, false
	if len(data) == 0 || data[0] != '{' {
		return s, false
	}
	for opening := byte('{'); len(rest) > 0 && rest[0] == opening; opening = ',' {
		if rest, ok = scanField(&s, rest[1:]); !ok {
			return State{}, false
		}
	}
	return s, len(rest) == 1 && rest[0] == '}'
}

// scanField reads one key and its value.
func scanField(s *State, b []byte) (rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, false
	}
	end := bytes.IndexByte(b[1:], '"') + 1
	if end == 0 || end+1 >= len(b) || b[end+1] != ':' {
		return nil, false
	}
	key, value := b[1:end], b[end+2:]
	if string(key) == "isr" {
		s.ISR, rest, ok = scanIDs(value)
		return rest, ok
	}
	n, rest, ok := scanInt(value)
	switch string(key) {
	case "controller_epoch":
		s.ControllerEpoch = P.ControllerEpoch(n)
	case "leader":
		s.Leader = P.BrokerID(n)
	case "leader_epoch":
		s.LeaderEpoch = P.LeaderEpoch(n)
	case "leader_recovery_state":
		s.Recovering = n == 1
	case "barnabas_unclean_epoch":
		s.UncleanEpoch = P.LeaderEpoch(max(n, 0))
	case "version":
	default:
		return nil, false
	}
	return rest, ok
}

// scanIDs reads an array of numbers.
func scanIDs(b []byte) (ids []P.BrokerID, rest []byte, ok bool) {
	if len(b) < 2 || b[0] != '[' {
		return nil, nil, false
	}
	if b[1] == ']' {
		return []P.BrokerID{}, b[2:], true
	}
	ids = make([]P.BrokerID, 0, 1+bytes.Count(b, []byte(",")))
	for rest = b; len(rest) > 0 && (rest[0] == ',' || len(ids) == 0); {
		n, after, ok := scanInt(rest[1:])
		if !ok {
			return nil, nil, false
		}
		ids, rest = append(ids, P.BrokerID(n)), after
	}
	if len(rest) == 0 || rest[0] != ']' {
		return nil, nil, false
	}
	return ids, rest[1:], true
}

// scanInt reads a number of at most nine digits, which always fits an int32.
func scanInt(b []byte) (n int32, rest []byte, ok bool) {
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	i := 0
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		if i == 9 {
			return 0, nil, false
		}
		n = n*10 + int32(b[i]-'0')
	}
	if i == 0 || i > 1 && b[0] == '0' {
		return 0, nil, false
	}
	if negative {
		n = -n
	}
	return n, b[i:], true
}
