package adopt

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// crashWorld is a directory with topics of several sizes, one of which takes several transactions.
func crashWorld(t *testing.T) *vfs.Memory {
	t.Helper()
	files := kafkaDir(t)
	folder(t, files, "/data", "large-25", "AAAAAAAAAAAAAAAAAAAAZg", 2, 10)
	for i := range 4 {
		folder(t, files, "/data", fmt.Sprintf("a-%d", i), topicA, 4, 10)
	}
	folder(t, files, "/data", "z-0", "AAAAAAAAAAAAAAAAAAAAZw", 0, 8000)
	return files
}

func small(o *Options) { o.transactionBytes = 4000 }

// kafkaFiles are the contents of the files that are not ours.
func kafkaFiles(t *testing.T, files vfs.FS) map[string]string {
	t.Helper()
	contents := map[string]string{}
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := files.ReadDir(dir)
		must(t, err)
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			switch {
			case e.IsDir():
				walk(name)
			case e.Name()[0] != '.':
				text, err := readFile(files, name)
				must(t, err)
				contents[name] = string(text)
			}
		}
	}
	walk("/data")
	return contents
}

// A crash at any operation on a file, of the process or of the machine, leaves what a second adoption
// finishes, and Kafka's own files as they were.
func TestCrashAnywhere(t *testing.T) {
	ctx := context.Background()
	reference := crashWorld(t)
	before := kafkaFiles(t, reference)
	a := open(t, reference, small)
	must(t, a.CarryOut(ctx))
	must(t, a.Close())
	want := stored(t, reference, "/data", 7)

	type crash struct {
		operation string
		files     *vfs.Memory
	}
	var crashes []crash
	memory := crashWorld(t)
	faulty := vfs.NewFaulty(memory)
	rng := rand.New(rand.NewPCG(1, 2))
	faulty.BeforeMutation(func(n int64, op vfs.Op, name string) {
		for _, keep := range []float64{0, 0.5, 1} {
			crashes = append(crashes, crash{fmt.Sprintf("%d: %v %s, keeping %v", n, op, name, keep), memory.CrashClone(rng, keep)})
		}
	})
	b := open(t, faulty, small)
	must(t, b.CarryOut(ctx))
	must(t, b.Close())
	if len(crashes) < 60 {
		t.Fatalf("only %d crashes", len(crashes))
	}
	unfinished := 0
	for _, c := range crashes {
		again, err := tryOpen(c.files, small)
		if err != nil {
			t.Fatalf("%s: %v", c.operation, err)
		}
		if slices.ContainsFunc(again.Plan().Topics, func(topic Topic) bool { return topic.unfinished }) {
			unfinished++
		}
		must(t, again.CarryOut(ctx))
		must(t, again.Close())
		if diff := cmp.Diff(want, stored(t, c.files, "/data", 7)); diff != "" {
			t.Fatalf("%s: %s", c.operation, diff)
		}
		if diff := cmp.Diff(before, kafkaFiles(t, c.files)); diff != "" {
			t.Fatalf("%s: Kafka's files: %s", c.operation, diff)
		}
	}
	if unfinished == 0 {
		t.Error("no crash came in the middle of the large topic")
	}
}

// An error of the disk is told, and the next adoption finishes.
func TestDiskFails(t *testing.T) {
	memory := crashWorld(t)
	faulty := vfs.NewFaulty(memory)
	a, err := tryOpen(faulty, small)
	must(t, err)
	heal := faulty.Inject(vfs.Fault{Op: vfs.OpSync, Err: os.ErrPermission})
	if err := a.CarryOut(context.Background()); err == nil {
		t.Error("it was carried out on a disk that fails")
	}
	_ = a.Close() // the store has failed
	heal()
	again := open(t, memory, small)
	must(t, again.CarryOut(context.Background()))
}
