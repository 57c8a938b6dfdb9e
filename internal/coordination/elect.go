package coordination

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// Candidate says what to run for: Kafka's controller is elected with "/controller" and "/controller_epoch".
type Candidate struct {
	// LeaderPath is the ephemeral node that the leader owns, LeaderData what it writes there.
	LeaderPath string
	LeaderData []byte
	// EpochPath is the persistent node whose text is the epoch, in decimal. It is created with 0.
	EpochPath string
}

// Leadership is a won election.
type Leadership struct {
	// Epoch is the epoch's text: it rises with every election.
	Epoch int32
	// Guard holds the data version of the epoch's node, which fences every write of the leader. In old
	// clusters it differs from Epoch.
	Guard Guard
	// Czxid is the transaction of the election.
	Czxid int64
}

// Elect runs for leadership once: in one transaction it creates the leader's node and raises the epoch.
// It returns false if somebody else leads; watch LeaderPath, and run again when it is gone.
//
// If an earlier try may have won (its outcome was unknown, or this session leads already), it reads both
// nodes and returns the leadership that this session holds.
func Elect(ctx context.Context, s Session, c Candidate) (Leadership, bool, error) {
	for {
		now, err := c.read(ctx, s)
		if err != nil || now.taken {
			return now.leadership, now.ours, err
		}
		epoch := now.leadership.Epoch + 1
		results, err := s.Txn(ctx,
			Create(c.LeaderPath, c.LeaderData, CreateOptions{Ephemeral: true}),
			Set(c.EpochPath, strconv.AppendInt(nil, int64(epoch), 10), now.leadership.Guard.Version))
		switch {
		case err == nil:
			return Leadership{
				Epoch: epoch, Czxid: results[0].Stat.Czxid,
				Guard: Guard{Path: c.EpochPath, Version: results[1].Stat.Version},
			}, true, nil
		case errors.Is(err, ErrNodeExists), errors.Is(err, ErrBadVersion), errors.Is(err, ErrUnknownOutcome):
			// Somebody, perhaps this session, was faster: read again who.
		default:
			return Leadership{}, false, fmt.Errorf("electing a leader: %w", err)
		}
	}
}

// standing is how an election stands.
type standing struct {
	taken, ours bool
	leadership  Leadership // epoch and guard as they are; Czxid if taken
}

// read finds out who leads and in which epoch. The two nodes are not read in one picture: that of this
// session is looked at again after the epoch.
func (c Candidate) read(ctx context.Context, s Session) (standing, error) {
	for {
		leader, taken, err := s.Exists(ctx, c.LeaderPath)
		if err != nil {
			return standing{}, err
		}
		epoch, version, err := c.readEpoch(ctx, s)
		if err != nil {
			return standing{}, err
		}
		now := standing{
			taken: taken, ours: taken && leader.EphemeralOwner == s.ID(),
			leadership: Leadership{
				Epoch: epoch, Guard: Guard{Path: c.EpochPath, Version: version}, Czxid: leader.Czxid,
			},
		}
		if !now.ours {
			return now, nil
		}
		again, ok, err := s.Exists(ctx, c.LeaderPath)
		if err != nil || ok && again.Czxid == leader.Czxid {
			return now, err
		}
	}
}

// readEpoch reads the epoch and its node's version, and creates the node if it is missing.
func (c Candidate) readEpoch(ctx context.Context, s Session) (epoch, version int32, err error) {
	data, stat, err := s.Get(ctx, c.EpochPath)
	for errors.Is(err, ErrNoNode) {
		_, _, err = s.Create(ctx, c.EpochPath, []byte("0"), CreateOptions{})
		if err == nil || errors.Is(err, ErrNodeExists) || errors.Is(err, ErrUnknownOutcome) {
			data, stat, err = s.Get(ctx, c.EpochPath)
		}
	}
	if err != nil {
		return 0, 0, err
	}
	parsed, err := strconv.ParseInt(string(data), 10, 32)
	if err != nil {
		return 0, 0, fmt.Errorf("%s holds no epoch: %w", c.EpochPath, err)
	}
	return int32(parsed), stat.Version, nil
}
