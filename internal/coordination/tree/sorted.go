package tree

import "cmp"

// sorted is a persistent map in the order of its keys: a weight-balanced binary tree whose nodes are never
// changed, so that an old version stays as it was and a new one shares all but log n nodes with it. nil is
// the empty map. Every node keeps the size of its subtree, which is what the balance goes by.
//
//	m                       m.with(4, v)
//	      5                       5'          new: 5', 3', 4
//	    /   \                   /   \         shared: 1 and 8
//	   3     8                 3'    8
//	  /                       / \
//	 1                       1   4
//
// get, with and without are O(log n), each of them O(n); with and without allocate as many nodes as they pass.
//
// Balance (delta = 3, ratio = 2, proven for insertion and deletion by Hirai and Yamamoto): neither side
// weighs more than three times the other, where weight = size + 1.
type sorted[K cmp.Ordered, V any] struct {
	key         K
	value       V
	size        int
	left, right *sorted[K, V]
}

// len is the number of keys.
func (m *sorted[K, V]) len() int {
	if m == nil {
		return 0
	}
	return m.size
}

// get finds a key.
func (m *sorted[K, V]) get(key K) (value V, ok bool) {
	for m != nil {
		switch c := cmp.Compare(key, m.key); {
		case c < 0:
			m = m.left
		case c > 0:
			m = m.right
		default:
			return m.value, true
		}
	}
	return value, false
}

// with returns the map in which key has value.
func (m *sorted[K, V]) with(key K, value V) *sorted[K, V] {
	if m == nil {
		return &sorted[K, V]{key: key, value: value, size: 1}
	}
	switch c := cmp.Compare(key, m.key); {
	case c < 0:
		return balanced(m.key, m.value, m.left.with(key, value), m.right)
	case c > 0:
		return balanced(m.key, m.value, m.left, m.right.with(key, value))
	}
	return &sorted[K, V]{key: key, value: value, size: m.size, left: m.left, right: m.right}
}

// without returns the map that lacks key.
func (m *sorted[K, V]) without(key K) *sorted[K, V] {
	if m == nil {
		return nil
	}
	switch c := cmp.Compare(key, m.key); {
	case c < 0:
		return balanced(m.key, m.value, m.left.without(key), m.right)
	case c > 0:
		return balanced(m.key, m.value, m.left, m.right.without(key))
	}
	switch {
	case m.left == nil:
		return m.right
	case m.right == nil:
		return m.left
	}
	next := m.right
	for next.left != nil {
		next = next.left
	}
	return balanced(next.key, next.value, m.left, m.right.without(next.key))
}

// sortedOf makes a map of keys that rise, and their values, without a step for each.
func sortedOf[K cmp.Ordered, V any](keys []K, values []V) *sorted[K, V] {
	if len(keys) == 0 {
		return nil
	}
	middle := len(keys) / 2
	return joined(keys[middle], values[middle],
		sortedOf(keys[:middle], values[:middle]), sortedOf(keys[middle+1:], values[middle+1:]))
}

// each calls yield with all keys in order until it returns false, and tells whether it never did. It has
// the form of an iterator: for key, value := range m.all.
func (m *sorted[K, V]) each(yield func(K, V) bool) bool {
	return m == nil || m.left.each(yield) && yield(m.key, m.value) && m.right.each(yield)
}

// all ranges over the keys in order.
func (m *sorted[K, V]) all(yield func(K, V) bool) { m.each(yield) }

const (
	balanceDelta = 3 // how many times heavier one side may be
	balanceRatio = 2 // a single rotation does if the inner grandchild weighs less than this many outer ones
)

// balanced makes a node of two sides of which one has just gained or lost one key.
//
//	single: right.left is light           double: right.left is heavy
//
//	  k                  r                  k                    m
//	 / \                / \                / \                 /   \
//	a   r      ▶       k   c              a   r      ▶        k     r
//	   / \            / \                    / \             / \   / \
//	  b   c          a   b                  m   c           a   b b'  c
//	                                       / \
//	                                      b   b'
func balanced[K cmp.Ordered, V any](key K, value V, left, right *sorted[K, V]) *sorted[K, V] {
	switch l, r := left.len()+1, right.len()+1; {
	case r > balanceDelta*l:
		if right.left.len()+1 < balanceRatio*(right.right.len()+1) {
			return joined(right.key, right.value, joined(key, value, left, right.left), right.right)
		}
		middle := right.left
		return joined(middle.key, middle.value, joined(key, value, left, middle.left),
			joined(right.key, right.value, middle.right, right.right))
	case l > balanceDelta*r:
		if left.right.len()+1 < balanceRatio*(left.left.len()+1) {
			return joined(left.key, left.value, left.left, joined(key, value, left.right, right))
		}
		middle := left.right
		return joined(middle.key, middle.value, joined(left.key, left.value, left.left, middle.left),
			joined(key, value, middle.right, right))
	}
	return joined(key, value, left, right)
}

// joined makes a node of two sides that are in balance.
func joined[K cmp.Ordered, V any](key K, value V, left, right *sorted[K, V]) *sorted[K, V] {
	return &sorted[K, V]{key: key, value: value, size: left.len() + right.len() + 1, left: left, right: right}
}
