// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A patchVector is a recorded application of a patch.
type patchVector struct {
	Exit           int
	Input          string
	Cwd            string
	Stdout, Stderr string
	Before, After  map[string]string
}

// differs has what is better here than in the recordings, by intent: a file, and its kind and mode.
var differs = map[string]map[string]string{
	"move-to-itself":     {"old.txt": "file:644"}, // there the file is lost
	"move-exec-bit-lost": {"go.sh": "file:755"},
	"multi-second-fails": {"made.txt": ""}, // all or nothing
}

// EachPatchVector runs the recordings of apply_patch in a directory, each in a tree of its own. Apply applies
// a patch in dir, which is in tree, and returns what the command prints, without failure on standard output.
// Those about the words of its command line are left out.
func EachPatchVector(t *testing.T, vectors string, apply func(t *testing.T, tree, dir, patch string) (out string,
	failed bool)) {
	t.Helper()
	dirs, err := filepath.Glob(vectors + "/[a-z]*")
	if err != nil || len(dirs) != 102 {
		t.Fatalf("%d vectors, %v", len(dirs), err)
	}
	for _, dir := range dirs {
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v patchVector
			if err := json.Unmarshal(ReadFile(t, filepath.Join(dir, "meta.json")), &v); err != nil {
				t.Fatal(err)
			}
			if v.Exit == 2 {
				return
			}
			tree := RealTemp(t)
			v.build(t, filepath.Join(dir, "before"), tree)
			text := strings.ReplaceAll(string(ReadFile(t, filepath.Join(dir, "patch.txt"))), "{CWD}", tree)
			got, failed := apply(t, tree, filepath.Join(tree, v.Cwd), text)
			if failed != (v.Exit != 0) {
				t.Errorf("it failed: %v", failed)
			}
			if want := strings.ReplaceAll(v.Stdout+v.Stderr, "{CWD}", tree); got != want {
				t.Errorf("it says %q, want %q", got, want)
			}
			v.check(t, name, filepath.Join(dir, "after"), tree)
		})
	}
}

func (v *patchVector) build(t *testing.T, from, tree string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(v.Before)) {
		path := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		kind, what, _ := strings.Cut(v.Before[name], ":")
		var err error
		switch kind {
		case "dir":
			err = os.MkdirAll(path, 0o755)
		case "link":
			err = os.Symlink(what, path)
		default:
			if err = os.WriteFile(path, ReadFile(t, filepath.Join(from, name)), 0o600); err == nil {
				mode, _ := strconv.ParseUint(what, 8, 32)
				err = os.Chmod(path, fs.FileMode(mode))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (v *patchVector) check(t *testing.T, name, after, tree string) {
	t.Helper()
	want := maps.Clone(v.After)
	for path, what := range differs[name] {
		if want[path] = what; what == "" {
			delete(want, path)
		}
	}
	got := map[string]string{}
	for path, content := range Contents(t, tree) {
		kind, text, _ := strings.Cut(content, "\n")
		got[path] = kind
		if !strings.HasPrefix(kind, "file") || name == "move-to-itself" {
			continue
		}
		if same := string(ReadFile(t, filepath.Join(after, path))); text != same {
			t.Errorf("%s has %q, want %q", path, text, same)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("after it, %v, want %v", got, want)
	}
}

// Contents returns what is in a tree: kinds, modes, contents.
func Contents(t testing.TB, tree string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == tree {
			return err
		}
		name, _ := filepath.Rel(tree, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			got[name] = "dir"
		case d.Type() == fs.ModeSymlink:
			to, err := os.Readlink(path)
			got[name] = "link:" + to
			return err
		default:
			got[name] = fmt.Sprintf("file:%o\n%s", info.Mode().Perm(), ReadFile(t, path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// ReadFile returns what a file has.
func ReadFile(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// RealTemp is t.TempDir without links.
func RealTemp(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
