//go:build !unix

package broker

// descriptorLimit is how many descriptors the process may have; 0 where that is not known.
func descriptorLimit() int { return 0 }
