//go:build invariants

package invariant

// Enabled guards assertions that cost more than a comparison; see the build tag "invariants".
const Enabled = true
