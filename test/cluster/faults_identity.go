package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/test/process"
)

// stranger is a fourth broker, in a folder of its own.
func (t *trial) stranger(name string, id int) *broker {
	like := t.brokers[0]
	b := &broker{id: id, Broker: process.Broker{Program: like.Program, Dir: filepath.Join(t.dir, name), StartLimit: like.StartLimit}}
	b.Overrides = append(slices.Clone(like.Overrides), fmt.Sprintf("broker.id=%d", id), "http.listener=")
	if t.network != nil {
		b.Address = t.network.clients.ip + ":9092"
	}
	return b
}

// refusedStart starts a broker that must not start, and returns what it said.
func refusedStart(b *broker) (string, error) {
	if err := b.Start(); err == nil {
		b.Kill()
		return "", errors.New("the broker started")
	}
	b.Kill()
	return b.Said()
}

// twoWithOneID is a round in which a second broker starts with the id of one that serves.
func twoWithOneID(ctx context.Context, t *trial, round int) error {
	before, err := t.registrations(ctx)
	if err != nil {
		return err
	}
	id := round % 3
	b := t.stranger(fmt.Sprintf("twin-%d", round), id)
	t.fault("second broker with an id")
	said, err := refusedStart(b)
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("broker id %d is taken", id); !strings.Contains(said, want) {
		return fmt.Errorf("the second broker does not say %q: %s", want, said)
	}
	after, err := t.registrations(ctx)
	if err == nil && before[id] != after[id] {
		err = fmt.Errorf("broker %d was registered again", id)
	}
	return err
}

// otherCluster is a round in which a data directory of another cluster is refused, and repaired by the command that is
// named.
func otherCluster(ctx context.Context, t *trial, round int) error {
	b := t.stranger(fmt.Sprintf("astray-%d", round), 10+round)
	data := filepath.Join(b.Dir, "data")
	meta := fmt.Sprintf("version=0\nbroker.id=%d\ncluster.id=AnotherClusterXXXXXXXX\n", b.id)
	if err := errors.Join(os.MkdirAll(data, 0o755), os.WriteFile(filepath.Join(data, "meta.properties"), []byte(meta), 0o644)); err != nil {
		return err
	}
	t.fault("directory of another cluster")
	said, err := refusedStart(b)
	if err != nil {
		return err
	}
	_, command, found := strings.Cut(said, "Only where the records do belong into that cluster: ")
	if !found {
		return fmt.Errorf("the broker names no command: %s", said)
	}
	command, _, _ = strings.Cut(command, "meta.properties")
	command = strings.ReplaceAll(command, `\"`, `"`) + "meta.properties"
	if output, err := exec.CommandContext(ctx, "sh", "-c", command).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, output)
	}
	if err := b.Start(); err != nil {
		return fmt.Errorf("after %s: %w", command, err)
	}
	return b.Stop()
}
