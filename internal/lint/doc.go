// Package lint holds the rules of the house as tests: which package may import which, how long functions
// and files may become, that everything exported is documented, which calls have a better replacement,
// and that unsafe stays in one file.
// A rule that no program checks does not hold.
package lint
