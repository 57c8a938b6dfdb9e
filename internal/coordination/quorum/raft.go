package quorum

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/hashicorp/raft"
)

// leaderTimeout is raft's heartbeat and election timeout. One voter has nobody to hear from: it decides
// only how soon raft tries again after the disk was full. No deadline of the broker depends on it.
const leaderTimeout = time.Second

// never is an interval that does not come around.
const never = 10 * 365 * 24 * time.Hour

// maxBatch is how many commands share one sync at most.
const maxBatch = 512

// address is where the one voter is, within its process.
const address raft.ServerAddress = "local"

// configuration is raft's configuration of this store.
//
// What an idle store costs is one timer a second. Raft is here for the day when there
// are several voters.
func (s *Store) configuration() *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = serverID(s.owner.Node)
	// With one voter the lease is checked once in a timeout, which is all that an idle store does.
	c.HeartbeatTimeout = leaderTimeout
	c.ElectionTimeout = leaderTimeout
	c.LeaderLeaseTimeout = leaderTimeout
	c.MaxAppendEntries = maxBatch
	c.BatchApplyCh = false     // whoever waits to hand over a command shares the next sync all the same
	c.TrailingLogs = 0         // nobody else fetches entries that a snapshot holds
	c.SnapshotInterval = never // compactor decides, by bytes
	c.SnapshotThreshold = math.MaxUint64
	c.NoSnapshotRestoreOnStart = true // it was read already, so that damage is told
	c.NoLegacyTelemetry = true
	c.Logger = newRaftLogger(s.options.Logger)
	return c
}

// serverID is what a node is called in raft's configuration.
func serverID(node int32) raft.ServerID { return raft.ServerID("node-" + strconv.Itoa(int(node))) }

// startRaft starts raft on the files, with this node as its voter if they are new.
func (s *Store) startRaft() error {
	c := s.configuration()
	_, s.wire = raft.NewInmemTransport(address)
	log, state := watchedLog{s.files.log, s}, watchedState{s.files.state, s}
	if last, _ := log.LastIndex(); last == 0 && s.files.snapshots.index() == 0 {
		if err := s.bootstrap(c.LocalID); err != nil {
			return err
		}
	}
	r, err := raft.NewRaft(c, s.machine, log, state, s.files.snapshots, s.wire)
	if err != nil {
		return err
	}
	s.raft = r
	s.life.Lock()
	s.life.running = true
	s.life.Unlock()
	return s.checkVoter(c.LocalID)
}

// bootstrap stores a configuration with this node as its only voter, as the first entry. The term that
// belongs to it is in the state file from the start.
func (s *Store) bootstrap(id raft.ServerID) error {
	return s.files.log.StoreLog(&raft.Log{
		Index: 1, Term: 1, Type: raft.LogConfiguration,
		Data: raft.EncodeConfiguration(raft.Configuration{
			Servers: []raft.Server{{Suffrage: raft.Voter, ID: id, Address: address}},
		}),
	})
}

// checkVoter refuses a directory of another node, which would wait for an election for ever.
func (s *Store) checkVoter(id raft.ServerID) error {
	future := s.raft.GetConfiguration()
	if err := future.Error(); err != nil {
		return err
	}
	for _, server := range future.Configuration().Servers {
		if server.ID == id {
			return nil
		}
	}
	return fmt.Errorf("it belongs to %v, and this is %s: node.id or broker.id was changed, or the directory is another broker's",
		future.Configuration().Servers, id)
}

// awaitLeadership makes raft hold its election now, and waits until it is won.
//
// Without the request raft would wait for a heartbeat that nobody sends, one to two timeouts long, at every start.
func (s *Store) awaitLeadership() error {
	s.wire.Connect(address, s.wire)
	request := raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}}
	if err := s.wire.TimeoutNow("", address, &request, &raft.TimeoutNowResponse{}); err != nil {
		return fmt.Errorf("electing the only voter: %w", err)
	}
	for {
		select {
		case leads := <-s.raft.LeaderCh():
			if leads {
				return nil
			}
		case <-s.failed:
			return s.Err()
		}
	}
}

// watchedLog tells the store when the log cannot go on.
type watchedLog struct {
	*logStore
	store *Store
}

// GetLog implements raft.LogStore. Raft panics about an error, except about an index that it asks for to
// see whether it is there.
func (l watchedLog) GetLog(index uint64, to *raft.Log) error {
	err := l.logStore.GetLog(index, to)
	if err != nil && err != raft.ErrLogNotFound {
		l.store.failRaft(err)
	}
	return err
}

// StoreLog implements raft.LogStore.
func (l watchedLog) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs implements raft.LogStore. Where an error is for good, raft would try again for ever.
func (l watchedLog) StoreLogs(entries []*raft.Log) error {
	err := l.logStore.StoreLogs(entries)
	if broken := l.broken(); broken != nil {
		l.store.fail(broken)
	}
	return err
}

// watchedState tells the store when term and vote cannot be stored.
type watchedState struct {
	*stateStore
	store *Store
}

// Set implements raft.StableStore. Raft panics about an error.
func (w watchedState) Set(key, value []byte) error {
	err := w.stateStore.Set(key, value)
	if err != nil {
		w.store.failRaft(err)
	}
	return err
}
