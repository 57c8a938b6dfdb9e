package quorum

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

const (
	errIO   = syscall.EIO
	errFull = syscall.ENOSPC
)

var ctx = context.Background()

func create(s coordination.Session, path string) error {
	_, _, err := s.Create(ctx, path, []byte("x"), coordination.CreateOptions{})
	return err
}

// TestFullDisk refuses writes with an error that says they may be tried again, goes on reading, and goes
// on writing once there is space.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := vfs.NewMemory()
		s := open(t, Options{FS: memory, segmentBytes: 4096})
		session := session(t, s)
		if err := create(session, "/before"); err != nil {
			t.Fatal(err)
		}
		memory.SetLimit(memory.Used())
		page := make([]byte, 16<<10) // does not fit what is left of the last page
		for i := range 5 {
			_, _, err := session.Create(ctx, "/full"+strconv.Itoa(i), page, coordination.CreateOptions{})
			if !errors.Is(err, coordination.ErrNotSent) || i == 0 && !errors.Is(err, errFull) {
				t.Fatalf("error %v", err)
			}
			if _, _, err := session.Get(ctx, "/before"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
		}
		memory.SetLimit(memory.Used() + 1<<20)
		time.Sleep(3 * time.Second) // raft tries again by itself
		if err := create(session, "/after"); err != nil {
			t.Fatal(err)
		}
		if names, _, _ := session.Children(ctx, "/"); len(names) != 2 {
			t.Fatalf("nodes %v", names)
		}
		if s.Err() != nil {
			t.Fatal(s.Err())
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestDiskFails ends sessions and store when a write, a sync or the making of a segment fails, without taking the
// process with it.
func TestDiskFails(t *testing.T) {
	for _, fault := range []vfs.Fault{
		{Op: vfs.OpWrite, Path: logPrefix + "*"},
		{Op: vfs.OpSync, Path: logPrefix + "*"},
		{Op: vfs.OpCreate, Path: logPrefix + "*"},
		{Op: vfs.OpSync, Path: stateName},
	} {
		t.Run(string(fault.Op)+" "+fault.Path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				faulty := vfs.NewFaulty(vfs.NewMemory())
				s := open(t, Options{FS: faulty, segmentBytes: 4096})
				session := session(t, s)
				fault.Err = errIO
				faulty.Inject(fault)
				if fault.Path == stateName { // the state is written at the next election
					faulty.Inject(vfs.Fault{Op: vfs.OpWrite, Path: logPrefix + "*", Err: errFull, Times: 1})
				}
				var err error
				for i := 0; err == nil; i++ { // until a segment is full, where that is what fails
					if err = create(session, "/a"+strconv.Itoa(i)); err == nil && (fault.Op != vfs.OpCreate || i > 1000) {
						t.Fatal("written")
					}
				}
				<-s.Failed()
				<-session.Done()
				if !errors.Is(s.Err(), errIO) || !errors.Is(session.Err(), coordination.ErrSessionLost) {
					t.Fatalf("errors %v, %v", s.Err(), session.Err())
				}
				if err := create(session, "/b"); !errors.Is(err, coordination.ErrSessionLost) {
					t.Fatalf("error %v", err)
				}
				if _, err := s.Open(ctx, coordination.SessionOptions{}); !errors.Is(err, coordination.ErrNotSent) {
					t.Fatalf("error %v", err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// TestWritersShareSyncs holds one sync back: all who come meanwhile share the next.
func TestWritersShareSyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faulty := vfs.NewFaulty(vfs.NewVolatile())
		s := open(t, Options{FS: faulty})
		session := session(t, s)
		syncs, gate := 0, make(chan struct{})
		faulty.Inject(vfs.Fault{Op: vfs.OpSync, Hook: func(vfs.Op, string) {
			syncs++
			<-gate
		}})
		var writers sync.WaitGroup
		for i := range 300 {
			writers.Go(func() {
				if err := create(session, "/n"+strconv.Itoa(i)); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(gate)
		writers.Wait()
		if syncs > 3 {
			t.Fatalf("%d syncs for 300 writes", syncs)
		}
	})
}

// TestCallerGivesUp lets the context of a write end while its sync is under way.
func TestCallerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faulty := vfs.NewFaulty(vfs.NewVolatile())
		s := open(t, Options{FS: faulty})
		session := session(t, s)
		gate := make(chan struct{})
		remove := faulty.Inject(vfs.Fault{Op: vfs.OpSync, Hook: func(vfs.Op, string) { <-gate }})
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, _, err := session.Create(short, "/a", nil, coordination.CreateOptions{})
		if !errors.Is(err, coordination.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error %v", err)
		}
		remove()
		close(gate)
		if err := create(session, "/a"); !errors.Is(err, coordination.ErrNodeExists) {
			t.Fatalf("error %v: it happened after all", err)
		}
	})
}

// TestCloseUnderLoad leaves no caller without an answer, and no goroutine.
func TestCloseUnderLoad(t *testing.T) {
	s := open(t, Options{FS: vfs.NewVolatile()})
	session := session(t, s)
	var writers sync.WaitGroup
	started := make(chan struct{}, 50)
	for i := range 50 {
		writers.Go(func() {
			for n := 0; ; n++ {
				if err := create(session, "/n"+strconv.Itoa(i)+"-"+strconv.Itoa(n)); err != nil {
					return
				}
				if n == 3 {
					started <- struct{}{}
				}
			}
		})
	}
	for range 50 {
		<-started
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	writers.Wait()
}
