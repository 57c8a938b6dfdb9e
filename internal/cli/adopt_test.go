package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// adoptee is a log directory of Kafka 3.9 with one empty partition.
func adoptee(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"meta.properties":             "broker.id=3\nversion=0\ncluster.id=0Xdv8gocR0SHlnUz4LPb7w\n",
		"orders-0/partition.metadata": "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAZA", "orders-0/00000000000000000000.log": "",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// runAdoption runs the command and returns its exit code, output and errors.
func runAdoption(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = Main(append([]string{"barnabas", "adopt"}, args...), strings.NewReader("y\n"), &o, &e)
	return code, o.String(), e.String()
}

func TestAdopt(t *testing.T) {
	dir := adoptee(t)
	result := func(out string) string {
		var report struct {
			Adoption struct {
				Result string `json:"result"`
				Broker int    `json:"broker"`
				Start  string `json:"start"`
			} `json:"adoption"`
		}
		if err := json.Unmarshal([]byte(out), &report); err != nil || report.Adoption.Broker != 3 || report.Adoption.Start != "barnabas start --data-dir "+dir {
			t.Errorf("%v: %s", err, out)
		}
		return report.Adoption.Result
	}
	code, out, errs := runAdoption(dir)
	if code != exitOK || !strings.Contains(out, "orders") || !strings.Contains(out, "cleanup.policy=") || !strings.Contains(errs, "Nothing has been changed: add --yes") {
		t.Errorf("in a pipe: %d\n%s%s", code, out, errs)
	}
	for _, step := range []struct {
		args []string
		want string
	}{{nil, "planned"}, {[]string{"--yes"}, "adopted"}, {[]string{"--yes"}, "adopted before"}, {nil, "adopted before"}} {
		code, out, errs := runAdoption(append([]string{dir, "--format", "json"}, step.args...)...)
		if got := result(out); code != exitOK || got != step.want || errs != "" {
			t.Errorf("%v: %d, %q, want %q, errors %q", step.args, code, got, step.want, errs)
		}
	}
}

func TestAdoptRefuses(t *testing.T) {
	if code, _, errs := runAdoption(); code != exitUsage || !strings.Contains(errs, "needs a directory") {
		t.Errorf("without a directory: %d %s", code, errs)
	}
	if code, _, errs := runAdoption(t.TempDir()); code != exitFailed || !strings.Contains(errs, "has no meta.properties") {
		t.Errorf("of a directory that is none of Kafka's: %d %s", code, errs)
	}
}
