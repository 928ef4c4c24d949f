// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestUnreadable: what exists and cannot be read is an error that says so, wherever git obeys it.
func TestUnreadable(t *testing.T) {
	testenv.RunAsOrdinary(t)
	if os.Geteuid() == 0 {
		return // root reads everything
	}
	const include = "[include]\n\tpath = ../conf/more\n"
	for _, c := range []struct {
		name string
		make []string // empty files
		text map[string]string
		shut string // gets a mode without rights
		mode fs.FileMode
	}{
		{"configuration", nil, nil, ".git/config", 0},
		{"included file", []string{"conf/more"}, map[string]string{".git/config": include}, "conf/more", 0},
		{"directory of an included file", []string{"conf/more"}, map[string]string{".git/config": include}, "conf", 0},
		{"directory of missing hooks", []string{"deep/in/x"}, map[string]string{".git/config": "[core]\n\thooksPath = deep/in/hooks\n"}, "deep", 0},
		{"hooks that cannot be listed", []string{"hooks/x"}, map[string]string{".git/config": "[core]\n\thooksPath = hooks\n"}, "hooks", 0o311},
		{"shared directory", nil, map[string]string{".git/commondir": "../common\n"}, ".git/commondir", 0},
		{"git directory", nil, nil, ".git", 0},
		{"index", nil, map[string]string{".git/index": "DIRC"}, ".git/index", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			work := t.TempDir()
			write := func(name, text string) {
				t.Helper()
				if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(work, name)), 0o755),
					os.WriteFile(filepath.Join(work, name), []byte(text), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range []string{".git/HEAD", ".git/objects/x", ".git/refs/x", ".git/config"} {
				write(name, "")
			}
			for _, name := range c.make {
				write(name, "")
			}
			for name, text := range c.text {
				write(name, text)
			}
			at := filepath.Join(work, c.shut)
			if err := os.Chmod(at, c.mode); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(at, 0o755) })
			r, err := Open(work)
			if err == nil {
				_, err = r.Protected(Outside{})
			}
			path, why := Unreadable(err)
			if path == "" || !errors.Is(why, fs.ErrPermission) {
				t.Errorf("%v names %q, %v", err, path, why)
			}
		})
	}
}

// TestScanShut: a directory that may not be listed is named.
func TestScanShut(t *testing.T) {
	testenv.RunAsOrdinary(t)
	if os.Geteuid() == 0 {
		return
	}
	root := t.TempDir()
	shut := filepath.Join(root, "a", "shut")
	if err := errors.Join(os.MkdirAll(filepath.Join(shut, "in", ".git"), 0o755),
		os.Chmod(shut, 0o311)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(shut, 0o755) })
	if found := Scan(root, Limit{}); !slices.Equal(found.Shut, []string{shut}) || found.Repositories != nil {
		t.Errorf("%+v", found)
	}
	want := func(path string,
		kind fs.FileMode) (keep, enter bool) {
		return filepath.Base(path) == "x.pem", true
	}
	if found, err := Match(root, "", nil, want, 0); err != nil || !slices.Equal(found, []string{"a/shut/."}) {
		t.Errorf("a pattern: %q, %v", found, err)
	}
	if err := os.Chmod(shut, 0o711); err != nil {
		t.Fatal(err)
	}
	if found := Scan(root, Limit{}); found.Shut != nil || len(found.Repositories) != 1 {
		t.Errorf("after chmod: %+v", found)
	}
}

// TestReadLeased: a file that another program has a lease on is read when that gives it up, and
// an error when it does not in time.
func TestReadLeased(t *testing.T) {
	testenv.RunAsOrdinary(t)
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, gives := range []bool{true, false} {
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK)
		}
		if err != nil {
			t.Fatal(err)
		}
		if gives {
			time.AfterFunc(safefile.Patience/20,
				func() { _, _ = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK) })
		}
		text, err := ReadFile(name, 100)
		if gives && (err != nil || string(text) != "text") || !gives && !errors.Is(err, safefile.ErrLeased) {
			t.Errorf("it is given up: %v; got %q, %v", gives, text, err)
		}
		unix.Close(fd)
	}
}
