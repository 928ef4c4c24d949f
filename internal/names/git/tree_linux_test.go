// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTreeFollowsNoLink opens directories that a symbolic link leads to: a directory
// can become one between two scans.
func TestTreeFollowsNoLink(t *testing.T) {
	dir, outside := tempDir(t), tempDir(t)
	put(t, outside+"/sub/secret", "")
	put(t, dir+"/real/sub/name", "")
	link(t, outside, dir+"/way")
	link(t, "real", dir+"/near")
	top, err := openTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer top.close()
	for path, want := range map[string]string{"real/sub": "name", "way/sub": "", "way": "", "near/sub": "",
		"../" + outside: "", "": "near real way"} {
		var names []string
		f, err := top.open(path)
		if err == nil {
			names, err = f.Readdirnames(-1)
			f.Close()
		}
		if (err == nil) != (want != "") || len(names) != len(strings.Fields(want)) {
			t.Errorf("%q: %q, %v", path, names, err)
		}
	}
	for path, want := range map[string]bool{"real": true, "real/sub": true, "near": false,
		"near/sub": false} {
		below, err := openTree(dir + "/" + path)
		if below.close(); (err == nil) != want {
			t.Errorf("openTree of %q: %v", path, err)
		}
	}
}

// TestOpenUp: a directory is given rights, and what a link leads to is left alone, whether the link
// is there before, on the way, or replaces the directory meanwhile.
func TestOpenUp(t *testing.T) {
	const shut, other = 0o750 &^ 0o400, fs.FileMode(0o051)
	for _, test := range []struct {
		name string
		make func(dir, target string) error
		open bool
	}{
		{"directory", func(dir, _ string) error { return os.Mkdir(dir, shut) }, true},
		{"link", func(dir, target string) error { return os.Symlink(target, dir) }, false},
		{"link on the way", func(dir, target string) error { return os.Symlink(filepath.Dir(target), filepath.Dir(dir)) }, false},
		{"file", func(dir, _ string) error { return os.WriteFile(dir, nil, 0o200) }, false},
		{"nothing", func(string, string) error { return nil }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			top := t.TempDir()
			dir, target := filepath.Join(top, "d", "git"), filepath.Join(top, "else", "git")
			if test.name != "link on the way" {
				if err := os.Mkdir(filepath.Dir(dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(os.MkdirAll(target, 0o755), os.Chmod(target, other),
				test.make(dir, target)); err != nil {
				t.Fatal(err)
			}
			if got := openUp(dir); got != test.open {
				t.Errorf("openUp: %t", got)
			}
			if info, err := os.Lstat(dir); test.open && (err != nil || info.Mode().Perm() != 0o750) {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			wantMode(t, target, other)
		})
	}
	t.Run("exchanged", func(t *testing.T) {
		top := t.TempDir()
		dir, link, target := filepath.Join(top, "git"), filepath.Join(top, "link"),
			filepath.Join(top, "target")
		if err := errors.Join(os.Mkdir(dir, shut), os.Mkdir(target, 0o755), os.Chmod(target, other),
			os.Symlink(target, link)); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		var exchanging sync.WaitGroup
		exchanging.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_ = unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
				}
			}
		})
		for range 20_000 {
			openUp(dir)
		}
		close(done)
		exchanging.Wait()
		wantMode(t, target, other)
	})
}

func wantMode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != want {
		t.Errorf("%s: %v, %v", path, info.Mode(), err)
	}
}
