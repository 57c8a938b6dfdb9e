package perf

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestBuckets holds the histogram to its promise: a bucket contains what falls into it, and is at most a
// 64th of that wide.
func TestBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(200*time.Hour)).Draw(t, "d"))
		bucket := bucketOf(d)
		top := upper(bucket)
		if top < d {
			t.Fatalf("%d falls into bucket %d, which ends at %d", d, bucket, top)
		}
		if top-d > d/subBuckets+1 {
			t.Fatalf("%d falls into bucket %d, which goes up to %d", d, bucket, top)
		}
		if bucket > 0 && upper(bucket-1) >= d {
			t.Fatalf("%d belongs into bucket %d, not %d", d, bucket-1, bucket)
		}
	})
}

func TestQuantiles(t *testing.T) {
	m := &Measured{Records: 1000, Bytes: 2 << 20, Elapsed: 2 * time.Second}
	for i := 1; i <= 1000; i++ {
		m.latency.add(time.Duration(i) * time.Millisecond)
	}
	for q, want := range map[float64]float64{0.5: 501, 0.99: 991, 0.999: 1000} {
		if got := m.Quantile(q); got < want || got > want*1.02 {
			t.Errorf("quantile %v is %v ms, expected about %v", q, got, want)
		}
	}
	if m.Mean() != 500.5 || m.Max() != 1000 || m.RecordsPerSecond() != 500 || m.MegabytesPerSecond() != 1 {
		t.Errorf("mean %v, max %v, %v records, %v MB a second", m.Mean(), m.Max(), m.RecordsPerSecond(), m.MegabytesPerSecond())
	}
	if empty := (&Measured{}); empty.Quantile(0.5) != 0 || empty.Mean() != 0 || empty.RecordsPerSecond() != 0 {
		t.Error("nothing has a quantile")
	}
}

func TestLetters(t *testing.T) {
	value, again := Letters(10, 1), Letters(10, 1)
	for i := range int64(1000) {
		v := value(i)
		if len(v) != 10 || string(v) != string(again(i)) {
			t.Fatalf("value %d is %q", i, v)
		}
		for _, b := range v {
			if b < 'A' || b > 'Z' {
				t.Fatalf("value %d is %q", i, v)
			}
		}
	}
}

func TestMerge(t *testing.T) {
	var a, b, both Measured
	for i := 1; i <= 100; i++ {
		one := &a
		if i > 30 {
			one = &b
		}
		one.Add(time.Duration(i)*time.Millisecond, i)
		both.Add(time.Duration(i)*time.Millisecond, i)
	}
	a.Merge(&b)
	if a != both {
		t.Errorf("%d records, %d bytes, median %v, max %v", a.Records, a.Bytes, a.Quantile(0.5), a.Max())
	}
}
