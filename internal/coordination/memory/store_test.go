package memory

import (
	"context"
	"errors"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/coordtest"
	"github.com/barnabas-mq/barnabas/internal/leaktest"
)

func TestConformance(t *testing.T) {
	defer leaktest.Verify(t)
	store := New(Options{})
	coordtest.Run(t, coordtest.Harness{
		Store:  store,
		Expire: func(_ *testing.T, s coordination.Session) { store.Expire(s.ID()) },
	})
	store.Close()
}

func TestFirstSteps(t *testing.T) {
	ctx := context.Background()
	store := New(Options{})
	defer store.Close()
	s, err := store.Open(ctx, coordination.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Watch(ctx, "/a", coordination.Subtree)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = s.Create(ctx, "/a/b", nil, coordination.CreateOptions{})
	if !errors.Is(err, coordination.ErrNoNode) {
		t.Fatalf("create without a parent: %v", err)
	}
	if _, _, err := s.Create(ctx, "/a", []byte("x"), coordination.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if e := <-w.Events(); e != (coordination.Event{Path: "/a", Kind: coordination.Created}) {
		t.Fatalf("event %v", e)
	}
	store.Expire(s.ID())
	<-s.Done()
	if !errors.Is(s.Err(), coordination.ErrSessionLost) {
		t.Fatalf("err %v", s.Err())
	}
	if _, _, err := s.Get(ctx, "/a"); !errors.Is(err, coordination.ErrSessionLost) {
		t.Fatalf("get after the end: %v", err)
	}
}
