package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is what the linker puts in for a release; otherwise the commit is told.
var version = "development"

// It connects to nothing. The first line begins with the name and the version, for scripts that cut words.
func versionCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			if c.format != formatText {
				r := &report{}
				r.object("version").set("version", version).set("commit", orNothing(commit())).
					set("go", runtime.Version()).set("os", runtime.GOOS).set("arch", runtime.GOARCH)
				return c.print(r)
			}
			built := ""
			if revision := commit(); revision != "" {
				built = " (" + revision + ")"
			}
			_, err := fmt.Fprintf(c.out, "barnabas %s%s %s %s/%s\n", version, built, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// commit is the commit that the program was built from, where the build knows.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && len(setting.Value) >= 12 {
			return setting.Value[:12]
		}
	}
	return ""
}
