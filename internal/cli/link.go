package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/cli/kafka"
)

// It may be repeated: links that are right stay. A file of another kind is never replaced without --force,
// since it may be Kafka's own script.
func linkCommand(c *common) *cobra.Command {
	var force bool
	command := &cobra.Command{
		Use:   "link DIR",
		Short: "Link this program under the names of Kafka's tools, such as kafka-topics.sh",
		Args:  exactly(1, "one directory"),
		RunE: func(_ *cobra.Command, args []string) error {
			return runLink(c, args[0], force)
		},
	}
	command.Flags().BoolVar(&force, "force", false, "replace files that are there")
	return command
}

func runLink(c *common, dir string, force bool) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	r := &report{}
	list := r.list("links", "name", "result", "message")
	failed := 0
	for _, name := range kafka.Names() {
		file := name + ".sh"
		result, err := linkOne(self, filepath.Join(dir, file), force)
		if err != nil {
			failed++
			list.add(file, "failed", err.Error())
			continue
		}
		list.add(file, result, nil)
	}
	if err := c.print(r); err != nil {
		return err
	}
	if failed > 0 {
		return failure{failed, len(kafka.Names())}
	}
	return nil
}

// linkOne makes one link; a link that is there already and is ours is left.
func linkOne(self, path string, force bool) (string, error) {
	if target, err := os.Readlink(path); err == nil && target == self {
		return "exists", nil
	}
	err := os.Symlink(self, path)
	if !errors.Is(err, fs.ErrExist) {
		return "linked", err
	}
	if !force {
		return "", fmt.Errorf("%s exists already: --force replaces it", path)
	}
	if err := os.Remove(path); err != nil {
		return "", err
	}
	return "replaced", os.Symlink(self, path)
}
