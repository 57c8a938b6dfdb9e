//go:build planted

package planted

import "os"

// chosen is the one bug of this process.
var chosen = Bug(os.Getenv("BARNABAS_PLANTED"))

// In reports whether a bug is planted in this process.
func In(b Bug) bool { return b == chosen }
