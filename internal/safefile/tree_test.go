// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package safefile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestRemove removes directories that a command can leave, and nothing else.
func TestRemove(t *testing.T) {
	testenv.RunAsOrdinary(t)
	top := t.TempDir()
	kept := filepath.Join(top, "kept")
	if err := os.Mkdir(kept, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(kept, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, fill := range map[string]func(dir string) error{
		"nothing":       func(string) error { return nil },
		"missing":       os.Remove,
		"link":          func(dir string) error { return os.Symlink(kept, filepath.Join(dir, "link")) },
		"read-only":     func(dir string) error { return deep(dir, 0o555) },
		"closed":        func(dir string) error { return deep(dir, 0) },
		"closed itself": func(dir string) error { return os.Chmod(dir, 0) },
		"many names":    func(dir string) error { return many(dir, 300) },
		"very deep":     func(dir string) error { return descend(dir, 600, kept) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(top, "dir")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := fill(dir); err != nil {
				t.Fatal(err)
			}
			if err := RemoveTreePath(dir); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(dir); !os.IsNotExist(err) {
				t.Errorf("it is still there: %v", err)
			}
			if _, err := os.Stat(filepath.Join(kept, "file")); err != nil {
				t.Error(err)
			}
		})
	}
}

// deep makes nested directories with a file in the last, and removes rights.
func deep(dir string, mode os.FileMode) error {
	inner := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(inner, "file"), nil, 0o444); err != nil {
		return err
	}
	for _, d := range []string{inner, filepath.Dir(inner)} {
		if err := os.Chmod(d, mode); err != nil {
			return err
		}
	}
	return nil
}

// many makes n files and n directories with a file each.
func many(dir string, n int) error {
	for i := range n {
		sub := filepath.Join(dir, fmt.Sprintf("d%d", i))
		if err := errors.Join(os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600),
			os.Mkdir(sub, 0o700),
			os.WriteFile(filepath.Join(sub, "f"), nil, 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// descend makes directories n deep, deeper than a path can be long, with a file and a link to
// outside in each.
func descend(dir string, n int, outside string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	for range n {
		if err := errors.Join(root.WriteFile("file", nil, 0o400), root.Symlink(outside, "link"),
			root.Mkdir("deeper", 0o700)); err != nil {
			return errors.Join(err, root.Close())
		}
		next, err := root.OpenRoot("deeper")
		if err := errors.Join(err, root.Close()); err != nil {
			return err
		}
		root = next
	}
	return root.Close()
}

// An opener opens a directory of our own.
type opener func(path string) (io.Closer, error)

// TestOpenTree opens what is ours, and nothing else.
func TestOpenTree(t *testing.T) {
	testOpeners(t, []opener{func(path string) (io.Closer, error) { return OpenTreePath(path) }},
		[]opener{func(path string) (io.Closer, error) { return MakeDirs(path) }})
}

// testOpeners tests those that open a directory, and those that make it as well.
func testOpeners(t *testing.T, opening, making []opener) {
	testenv.RunAsOrdinary(t)
	for name, tt := range map[string]struct {
		make   func(path string) error
		open   bool // by OpenPath
		narrow bool // by MakePath
		why    string
	}{
		"missing":  {func(string) error { return nil }, false, true, ""},
		"own":      {func(path string) error { return os.Mkdir(path, 0o700) }, true, true, ""},
		"wide":     {func(path string) error { return os.Mkdir(path, 0o755) }, false, true, "lets others in"},
		"link":     {func(path string) error { return os.Symlink(filepath.Dir(path), path) }, false, false, "symbolic link"},
		"file":     {func(path string) error { return os.WriteFile(path, nil, 0o600) }, false, false, "no directory"},
		"dangling": {func(path string) error { return os.Symlink("nothing", path) }, false, false, "symbolic link"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x")
			if err := tt.make(path); err != nil {
				t.Fatal(err)
			}
			if err := CheckOwn(path); (err == nil) != tt.open {
				t.Errorf("Check: %v, want success: %v", err, tt.open)
			}
			for i, open := range slices.Concat(opening, making) {
				dir, err := open(path)
				want := tt.open
				if i >= len(opening) {
					want = tt.narrow
				}
				if (err == nil) != want {
					t.Errorf("%d: %v, want success: %v", i, err, want)
				}
				var strange *ForeignError
				if err != nil && tt.why != "" &&
					(!errors.As(err, &strange) || !strings.Contains(err.Error(), tt.why)) {
					t.Errorf("%d: %v, want %q", i, err, tt.why)
				}
				if err == nil {
					dir.Close()
				}
			}
		})
	}
}
