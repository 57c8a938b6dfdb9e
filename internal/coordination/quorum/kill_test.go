package quorum

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// childDir tells a process of this test that it is the one to be killed.
const childDir = "QUORUM_TEST_KILL_DIR"

// TestKill kills a process that writes, again and again, and looks for what it was told.
func TestKill(t *testing.T) {
	if dir := os.Getenv(childDir); dir != "" {
		writeUntilKilled(dir)
		return
	}
	dir := t.TempDir()
	answered := 0
	for round := range 6 {
		answered = killAfter(t, dir, answered+20+round*37)
		s := open(t, Options{FS: vfs.OS(), Dir: dir, NodeID: 1, SnapshotBytes: 2000, segmentBytes: 1500})
		session := session(t, s)
		data, _, err := session.Get(ctx, "/counter")
		check(t, err)
		counter, err := strconv.Atoi(string(data))
		check(t, err)
		if counter < answered || counter > answered+1 {
			t.Fatalf("round %d: the counter is %d, %d was answered", round, counter, answered)
		}
		if _, there, err := session.Exists(ctx, "/e"); there || err != nil {
			t.Fatalf("round %d: the ephemeral node outlived its process (%v)", round, err)
		}
		answered = counter
		check(t, s.Close())
	}
}

// killAfter starts a process that counts up, and kills it when it has said a number.
func killAfter(t *testing.T, dir string, stop int) (answered int) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestKill$")
	child.Env = append(os.Environ(), childDir+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	check(t, err)
	check(t, child.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if n, err := strconv.Atoi(lines.Text()); err == nil {
			answered = n
		}
		if answered == stop {
			child.Process.Kill() // what it has said meanwhile is still read
		}
	}
	child.Wait()
	if answered < stop {
		t.Fatalf("the process ended after %d, before it was killed", answered)
	}
	return answered
}

// writeUntilKilled counts up and says every number that was answered.
func writeUntilKilled(dir string) {
	err := func() error {
		s, err := Open(Options{FS: vfs.OS(), Dir: dir, NodeID: 1, SnapshotBytes: 2000, segmentBytes: 1500})
		if err != nil {
			return err
		}
		session, err := s.Open(ctx, coordination.SessionOptions{})
		if err != nil {
			return err
		}
		if _, _, err := session.Create(ctx, "/e", nil, coordination.CreateOptions{Ephemeral: true}); err != nil {
			return err
		}
		if err := coordination.EnsurePath(ctx, session, "/counter"); err != nil {
			return err
		}
		data, _, err := session.Get(ctx, "/counter")
		if err != nil {
			return err
		}
		for n, _ := strconv.Atoi(string(data)); ; {
			n++
			if _, err := session.Set(ctx, "/counter", []byte(strconv.Itoa(n)), coordination.AnyVersion); err != nil {
				return err
			}
			fmt.Println(n)
		}
	}()
	fmt.Fprintln(os.Stderr, err)
}
