package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// Prepare makes the permanent znodes that are missing, and returns the cluster's id: the stored one, else
// wanted, else a new one. A wanted id that differs from the stored one is an error: the broker belongs to
// another cluster.
func Prepare(ctx context.Context, session coordination.Session, wanted string) (string, error) {
	for {
		id, err := prepare(ctx, session, wanted)
		switch {
		case errors.Is(err, coordination.ErrNodeExists), errors.Is(err, coordination.ErrUnknownOutcome) && ctx.Err() == nil:
			continue // another broker is preparing, or this one has
		case err != nil:
			return "", fmt.Errorf("preparing the coordination store: %w", err)
		case wanted != "" && wanted != id:
			return "", P.Errorf(P.InconsistentClusterID,
				"the coordination store belongs to cluster %s, and this broker to cluster %s", id, wanted)
		}
		return id, nil
	}
}

// prepare creates all that is missing in one transaction.
func prepare(ctx context.Context, session coordination.Session, id string) (string, error) {
	var ops []coordination.Op
	missing := func(path string, data []byte) error {
		_, ok, err := session.Exists(ctx, path)
		if err == nil && !ok {
			ops = append(ops, coordination.Create(path, data, coordination.CreateOptions{}))
		}
		return err
	}
	for _, path := range znode.Permanent() {
		if err := missing(path, nil); err != nil {
			return "", err
		}
	}
	if err := missing(znode.ControllerEpochPath, []byte("0")); err != nil {
		return "", err
	}
	if err := missing(znode.FeaturePath, znode.EncodeFeature()); err != nil {
		return "", err
	}
	data, _, err := session.Get(ctx, znode.ClusterIDPath)
	switch {
	case err == nil:
		if id, err = znode.DecodeClusterID(data); err != nil {
			return "", err
		}
	case errors.Is(err, coordination.ErrNoNode):
		if id == "" {
			id = znode.NewClusterID()
		}
		ops = append(ops, coordination.Create(znode.ClusterIDPath, znode.EncodeClusterID(id), coordination.CreateOptions{}))
	default:
		return "", err
	}
	if len(ops) == 0 {
		return id, nil
	}
	_, err = session.Txn(ctx, ops...)
	return id, err
}

// Register makes the broker known to the cluster for as long as the session lives, and returns the epoch of
// this life of it. Where an earlier session still holds the registration it waits for its end until ctx
// ends: another broker with the same id may be alive.
func Register(ctx context.Context, session coordination.Session, r znode.Registration) (P.BrokerEpoch, error) {
	// The version of the parent tells a controller, in the transaction of its next write, that it has not heard
	// of this life yet (see [term.premise]).
	stat, err := coordination.CreateEphemeralChecked(ctx, session, znode.BrokerPath(r.ID), znode.EncodeRegistration(r),
		coordination.Set(znode.BrokersPath, nil, coordination.AnyVersion))
	if err != nil {
		return P.NoBrokerEpoch, fmt.Errorf("registering broker %d: %w", r.ID, err)
	}
	return P.BrokerEpoch(stat.Czxid), nil
}

// NewBrokerID draws a broker id that no other broker of the cluster has: one above reserved, which is
// reserved.broker.max.id.
func NewBrokerID(ctx context.Context, session coordination.Session, reserved int32) (P.BrokerID, error) {
	if err := coordination.EnsurePath(ctx, session, znode.SeqIDPath); err != nil {
		return P.NoBroker, err
	}
	stat, err := session.Set(ctx, znode.SeqIDPath, nil, coordination.AnyVersion)
	if err != nil {
		return P.NoBroker, fmt.Errorf("drawing a broker id: %w", err)
	}
	return znode.GeneratedBrokerID(stat.Version, reserved), nil
}

// announceAgain is how long AnnounceLogDirFailure waits before it tries again what the store did not answer.
const announceAgain = time.Second

// AnnounceLogDirFailure tells the controller that a log directory of a broker has failed. Where the store does
// not answer it tries until ctx or the session ends: an announcement that is made twice does no harm.
func AnnounceLogDirFailure(ctx context.Context, session coordination.Session, id P.BrokerID) error {
	for {
		_, _, err := session.Create(ctx, znode.LogDirEventPrefix, znode.EncodeLogDirEvent(id), coordination.CreateOptions{Sequential: true})
		if !errors.Is(err, coordination.ErrNotSent) && !errors.Is(err, coordination.ErrUnknownOutcome) {
			return err
		}
		select {
		case <-time.After(announceAgain):
		case <-session.Done():
			return session.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
