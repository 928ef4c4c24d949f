// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// systems are the values of GOOS whose import graphs are checked.
var systems = []string{"linux", "darwin", "windows"}

// A pkg is one package of the module as go list sees it on one system. Its name is
// the room's; imports keep their import paths.
type pkg struct {
	name        string
	imports     []string // of non-test files
	testImports []string // of test files, inside the package or beside it
	deps        []string // everything that non-test files link, however far away
}

// listed is the part of go list's JSON that is used here.
type listed struct {
	ImportPath                               string
	Imports, TestImports, XTestImports, Deps []string
	Error                                    *struct{ Err string }
}

// loadGraph returns the packages of the module in dir as the system goos sees
// them, in the order of go list. Packages that cannot be loaded completely are
// returned with what is known of them: the compiler's tests report them better.
func loadGraph(t *testing.T, dir, goos string) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e",
		"-json=ImportPath,Imports,TestImports,XTestImports,Deps,Error", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list for %s: %v\n%s", goos, err, stderr.Bytes())
	}
	graph, err := decodeGraph(output)
	if err != nil {
		t.Fatalf("go list for %s: %v", goos, err)
	}
	if len(graph) == 0 {
		t.Fatalf("go list for %s names no package", goos)
	}
	return graph
}

// decodeGraph reads the stream of objects that go list -json writes.
func decodeGraph(stream []byte) ([]pkg, error) {
	var graph []pkg
	decoder := json.NewDecoder(bytes.NewReader(stream))
	for {
		var one listed
		switch err := decoder.Decode(&one); {
		case errors.Is(err, io.EOF):
			return graph, nil
		case err != nil:
			return nil, err
		}
		if one.Error != nil && len(one.Imports)+len(one.TestImports)+len(one.XTestImports) == 0 {
			continue // no file for this system, or a directory without Go files
		}
		name, ok := room(one.ImportPath)
		if !ok {
			return nil, fmt.Errorf("package %s is not in module %s", one.ImportPath, modulePath)
		}
		tests := slices.Concat(one.TestImports, one.XTestImports)
		slices.Sort(tests)
		graph = append(graph, pkg{name: name, imports: one.Imports, testImports: slices.Compact(tests),
			deps: one.Deps})
	}
}

// room returns the name of the room with the import path, and false for a path
// outside the module.
func room(path string) (string, bool) {
	if path == modulePath {
		return rootRoom, true
	}
	return strings.CutPrefix(path, modulePath+"/")
}

// standard reports whether the import path belongs to the standard library: the
// first element of every other path has a dot in it, as a host name does.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// moduleDir is the directory of go.mod, found upward from the package's directory.
func moduleDir(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		// Reading it also makes go.mod an input of the cached test result.
		if _, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the package's directory")
		}
		dir = parent
	}
}
