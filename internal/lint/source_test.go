package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The stops: a function or file that grows past them is more than one thing.
const (
	functionLinesMax = 70
	fileLinesMax     = 800
)

// source is one parsed Go file of the module that is not a test.
type source struct {
	path string
	file *ast.File
	set  *token.FileSet
}

// sources parses every file, tests included where asked for; testdata and nested modules are left out.
func sources(t *testing.T, tests bool) []source {
	t.Helper()
	var all []source
	root := "../.."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name == "testdata" || path != root && (strings.HasPrefix(name, ".") || name == "clients" || name == "data") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || !tests && strings.HasSuffix(path, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		all = append(all, source{strings.TrimPrefix(path, root+"/"), file, set})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// isTable reports whether a function only returns a literal: a table may be as long as what it lists.
func isTable(f *ast.FuncDecl) bool {
	if len(f.Body.List) != 1 {
		return false
	}
	returned, ok := f.Body.List[0].(*ast.ReturnStmt)
	if !ok || len(returned.Results) != 1 {
		return false
	}
	_, ok = returned.Results[0].(*ast.CompositeLit)
	return ok
}

func TestLengths(t *testing.T) {
	for _, s := range sources(t, false) {
		if lines := s.set.Position(s.file.End()).Line; lines > fileLinesMax {
			t.Errorf("%s has %d lines, the stop is %d: split it by concept", s.path, lines, fileLinesMax)
		}
		for _, decl := range s.file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			lines := s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line + 1
			if lines > functionLinesMax && !isTable(f) {
				t.Errorf("%s: %s has %d lines, the stop is %d", s.path, f.Name.Name, lines, functionLinesMax)
			}
		}
	}
}

func TestEveryExportedNameIsDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t, false) {
		dir := filepath.Dir(s.path)
		documented[dir] = documented[dir] || s.file.Doc != nil
		for _, decl := range s.file.Decls {
			checkDocumented(t, s, decl)
		}
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %s has no package comment", dir)
		}
	}
}

func checkDocumented(t *testing.T, s source, decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
			t.Errorf("%s: %s is exported without a comment", s.path, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch sp := spec.(type) {
			case *ast.TypeSpec:
				if sp.Name.IsExported() && d.Doc == nil && sp.Doc == nil && sp.Comment == nil {
					t.Errorf("%s: type %s is exported without a comment", s.path, sp.Name.Name)
				}
			case *ast.ValueSpec:
				if sp.Names[0].IsExported() && d.Doc == nil && sp.Doc == nil && sp.Comment == nil {
					t.Errorf("%s: %s is exported without a comment", s.path, sp.Names[0].Name)
				}
			}
		}
	}
}

// exportedReceiver reports whether a function is no method, or one of an exported type.
func exportedReceiver(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	kind := f.Recv.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	if index, ok := kind.(*ast.IndexExpr); ok {
		kind = index.X
	}
	name, ok := kind.(*ast.Ident)
	return !ok || name.IsExported()
}

// banned maps a call to the reason and the replacement; allowed names the folders where it is right.
var banned = []struct {
	pkg, name, why string
	allowed        []string
}{
	{"slog", "SetDefault", "loggers are passed in; only the program sets the default", []string{"cmd/"}},
	{"os", "Exit", "return an error; only the program exits", []string{"cmd/", "test/", "bench/", "internal/cli/"}},
	{"signal", "Notify", "signals belong to the process, so to the program", []string{"cmd/", "internal/cli/"}},
	{"http", "DefaultServeMux", "several brokers live in one process: make a mux", nil},
	{"prometheus", "MustRegister", "several brokers live in one process: register in the broker's registry", nil},
	{"time", "Sleep", "wait for what you are waiting for", []string{"internal/vfs/", "test/differential/"}},
}

// virtualTime reports whether a file tests in virtual time, where sleeping is the way to let it pass.
func virtualTime(s source) bool {
	return slices.ContainsFunc(s.file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing/synctest"` })
}

func TestBannedCalls(t *testing.T) {
	for _, s := range sources(t, true) {
		virtual := virtualTime(s)
		ast.Inspect(s.file, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := selector.X.(*ast.Ident)
			if !ok || pkg.Obj != nil {
				return true
			}
			for _, b := range banned {
				if pkg.Name == b.pkg && selector.Sel.Name == b.name && !under(s.path, b.allowed) && (b.name != "Sleep" || !virtual) {
					t.Errorf("%s: %s.%s: %s", s.set.Position(n.Pos()), b.pkg, b.name, b.why)
				}
			}
			return true
		})
	}
}

// unsafeFile is the only file that may import unsafe: the system calls on sockets that package unix allocates for.
const unsafeFile = "internal/server/message_linux.go"

func TestUnsafeStaysInOneFile(t *testing.T) {
	for _, s := range sources(t, true) {
		for _, i := range s.file.Imports {
			if i.Path.Value == `"unsafe"` && s.path != unsafeFile {
				t.Errorf("%s imports unsafe, which only %s may", s.path, unsafeFile)
			}
		}
	}
}

func under(path string, folders []string) bool {
	for _, folder := range folders {
		if strings.HasPrefix(path, folder) {
			return true
		}
	}
	return false
}
