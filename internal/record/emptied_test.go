package record

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestGoldenEmptiedBatches compares with the batches that Kafka's cleaner emptied.
func TestGoldenEmptiedBatches(t *testing.T) {
	files, err := filepath.Glob("testdata/segments/*/compact*.log")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range Batches(raw) {
			if err != nil {
				t.Fatal(err)
			}
			if b.Count() > 0 {
				continue
			}
			found++
			full := NewBuilder(b.Options())
			full.Append(b.MaxTimestamp(), []byte("key"), []byte("value"))
			full.SetLastOffset(b.LastOffset())
			if got := full.Build().Emptied(); !bytes.Equal(got, b) {
				t.Errorf("%s, offset %d:\n%x, want\n%x", file, b.BaseOffset(), []byte(got), []byte(b))
			}
		}
	}
	if found == 0 {
		t.Fatal("the golden segments have no emptied batch")
	}
}

// TestOptionsBuildTheSameBatch builds golden batches again from their options and records. Compressed ones
// differ in the compressed bytes only.
func TestOptionsBuildTheSameBatch(t *testing.T) {
	for _, name := range []string{
		"3.9.2/codec-none-0", "3.9.2/codec-lz4-0", "3.9.2/txn-a-0", "3.9.2/compact.drop-tombstones-0", "4.4.0/compact.gzip-0",
	} {
		raw, err := os.ReadFile("testdata/segments/" + name + ".log")
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range Batches(raw) {
			if err != nil {
				t.Fatal(err)
			}
			w := NewBuilder(b.Options())
			for r, err := range b.Records(nil) {
				if err != nil {
					t.Fatal(err)
				}
				w.AppendRecord(r)
			}
			w.SetLastOffset(b.LastOffset())
			got := w.Build()
			if b.Count() == 0 {
				got = got.Emptied()
				got.setMaxTimestamp(b.MaxTimestamp())
				got.sealCRC()
			}
			if b.Codec() == None && !bytes.Equal(got, b) || !bytes.Equal(got[attributesAt:HeaderSize], b[attributesAt:HeaderSize]) {
				t.Errorf("%s, offset %d:\n%x, want\n%x", name, b.BaseOffset(), []byte(got), []byte(b))
			}
		}
	}
}
