// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

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

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// A vector is a recorded application.
type vector struct {
	Exit           int
	Input          string
	Cwd            string
	Stdout, Stderr string
	Before, After  map[string]string
}

// differs has what is better here than in the recordings, by intent: the name of a file and what is there.
var differs = map[string]map[string]string{
	"move-to-itself":     {"old.txt": "file:644"}, // there the file is lost
	"move-exec-bit-lost": {"go.sh": "file:755"},
	"multi-second-fails": {"made.txt": ""}, // all or nothing
}

func TestVectors(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("testdata/vectors/[a-z]*")
	if err != nil || len(dirs) != 102 {
		t.Fatalf("%d vectors, %v", len(dirs), err)
	}
	for _, dir := range dirs {
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v vector
			if err := json.Unmarshal(readFile(t, filepath.Join(dir, "meta.json")), &v); err != nil {
				t.Fatal(err)
			}
			if v.Exit == 2 {
				return // it is about the words of the command line
			}
			tree := realTemp(t)
			v.build(t, filepath.Join(dir, "before"), tree)
			text := strings.ReplaceAll(string(readFile(t, filepath.Join(dir, "patch.txt"))), "{CWD}", tree)
			o := Options{Dir: filepath.Join(tree, v.Cwd), Allow: within(tree)}
			out, err := applyText(text, o, realTemp(t))
			want, got := v.Stdout, out
			if v.Exit != 0 {
				want, got = v.Stderr, fmt.Sprintln(err)
			} else if err != nil {
				t.Error(err)
			}
			if want = strings.ReplaceAll(want, "{CWD}", tree); got != want {
				t.Errorf("it says %q, want %q", got, want)
			}
			v.check(t, name, filepath.Join(dir, "after"), tree)
		})
	}
}

// applyText does what the command does.
func applyText(text string, o Options, journals string) (string, error) {
	p, err := Parse(text)
	if err != nil {
		return "", err
	}
	plan, err := Make(p, o)
	if err != nil {
		return "", err
	}
	defer plan.Close()
	return plan.Summary(), plan.Apply(journals)
}

func (v *vector) build(t *testing.T, from, tree string) {
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
			if err = os.WriteFile(path, readFile(t, filepath.Join(from, name)), 0o600); err == nil {
				mode, _ := strconv.ParseUint(what, 8, 32)
				err = os.Chmod(path, fs.FileMode(mode))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (v *vector) check(t *testing.T, name, after, tree string) {
	t.Helper()
	want := maps.Clone(v.After)
	for path, what := range differs[name] {
		if want[path] = what; what == "" {
			delete(want, path)
		}
	}
	got := map[string]string{}
	for path, content := range contents(t, tree) {
		kind, text, _ := strings.Cut(content, "\n")
		got[path] = kind
		if !strings.HasPrefix(kind, "file") || name == "move-to-itself" {
			continue
		}
		if same := string(readFile(t, filepath.Join(after, path))); text != same {
			t.Errorf("%s has %q, want %q", path, text, same)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("after it (- want, + got):", diff)
	}
}

// contents returns what is in a tree: kinds, modes, contents.
func contents(t testing.TB, tree string) map[string]string {
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
			got[name] = fmt.Sprintf("file:%o\n%s", info.Mode().Perm(), readFile(t, path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// realTemp is t.TempDir without links.
func realTemp(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// within allows what lies in a directory.
func within(dir string) func(string) bool {
	return func(path string) bool { return path != dir && safefile.Within(path, dir) }
}
