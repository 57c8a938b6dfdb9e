package lint

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/barnabas-mq/barnabas"

// layer is one row of the table in docs/architecture.md.
type layer struct {
	number int
	also   map[string]bool
}

// readLayers parses the table under "## Layers".
func readLayers(t *testing.T) map[string]layer {
	t.Helper()
	f, err := os.Open("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	layers := map[string]layer{}
	scan := bufio.NewScanner(f)
	for scan.Scan() {
		cells := strings.Split(scan.Text(), "|")
		if len(cells) < 5 {
			continue
		}
		number, err := strconv.Atoi(strings.TrimSpace(cells[1]))
		if err != nil {
			continue
		}
		also := map[string]bool{}
		for _, name := range strings.Split(cells[3], ",") {
			if name = strings.Trim(name, " `"); name != "" {
				also[name] = true
			}
		}
		layers[strings.Trim(cells[2], " `")] = layer{number, also}
	}
	if len(layers) < 20 {
		t.Fatalf("only %d rows found in the table of layers", len(layers))
	}
	return layers
}

type listed struct {
	ImportPath string
	Imports    []string
}

// listPackages asks the go command for every package of the module with its imports, tests left out.
func listPackages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []listed
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// short is a package's name in the table.
func short(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

func TestLayers(t *testing.T) {
	layers := readLayers(t)
	for _, p := range listPackages(t) {
		from, ok := layers[short(p.ImportPath)]
		if !ok {
			t.Errorf("%s is missing in the table of layers in docs/architecture.md", short(p.ImportPath))
			continue
		}
		for _, path := range p.Imports {
			if path != module && !strings.HasPrefix(path, module+"/") {
				continue
			}
			to, ok := layers[short(path)]
			if ok && to.number >= from.number && !from.also[short(path)] {
				t.Errorf("%s (layer %d) imports %s (layer %d): imports go down only", short(p.ImportPath), from.number, short(path), to.number)
			}
		}
	}
}
