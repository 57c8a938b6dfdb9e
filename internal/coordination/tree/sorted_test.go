package tree

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m *sorted[int, int]
		want := map[int]int{}
		for i, key := range rapid.SliceOfN(rapid.IntRange(-100, 100), 0, 400).Draw(t, "keys") {
			before := m
			if key < -50 || i%3 == 0 {
				m = m.without(key)
				delete(want, key)
			} else {
				m = m.with(key, i)
				want[key] = i
			}
			checkBalance(t, m)
			if m.len() != len(want) {
				t.Fatalf("%d keys, want %d", m.len(), len(want))
			}
			checkBalance(t, before)
		}
		var keys []int
		for key, value := range m.all {
			keys = append(keys, key)
			if value != want[key] {
				t.Fatalf("key %d has %d, want %d", key, value, want[key])
			}
		}
		if !slices.Equal(keys, slices.Sorted(maps.Keys(want))) {
			t.Fatalf("keys %v", keys)
		}
		again := sortedOf(keys, keys)
		checkBalance(t, again)
		if again.len() != len(keys) {
			t.Fatalf("%d keys made of %d", again.len(), len(keys))
		}
		for key := -101; key <= 101; key++ {
			got, ok := m.get(key)
			if value, there := want[key]; ok != there || got != value {
				t.Fatalf("get %d: %d %v", key, got, ok)
			}
		}
	})
}

// checkBalance checks sizes and balance of every node.
func checkBalance(t *rapid.T, m *sorted[int, int]) {
	if m == nil {
		return
	}
	l, r := m.left.len()+1, m.right.len()+1
	if m.size != l+r-1 || l > balanceDelta*r || r > balanceDelta*l {
		t.Fatalf("node %d: size %d, weights %d and %d", m.key, m.size, l, r)
	}
	checkBalance(t, m.left)
	checkBalance(t, m.right)
}

func TestSortedInOrder(t *testing.T) {
	var m *sorted[int, int]
	for i := range 100_000 {
		m = m.with(i, i)
	}
	depth := 0
	for n := m; n != nil; n = n.left {
		depth++
	}
	if m.len() != 100_000 || depth > 30 {
		t.Fatalf("%d keys, depth %d", m.len(), depth)
	}
}
