// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package dirs

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// places is a directory with what may be in the place of a socket.
func places(t *testing.T) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "p") //nolint:usetesting // a short name, for systems with short addresses
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("XDG_STATE_HOME", dir)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: dir + "/dead", Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	if err := errors.Join(dead.Close(), os.WriteFile(dir+"/file", []byte("text"), 0o600),
		os.Mkdir(dir+"/directory", 0o700), os.Symlink("dead", dir+"/link")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestListen: only a socket of a process that has gone is replaced, and of several that listen at one
// name one does. Its name is gone with it.
func TestListen(t *testing.T) {
	dir := places(t)
	for _, test := range []struct {
		name string
		ok   bool
	}{{"dead", true}, {"new", true}, {"file", false}, {"directory", false}, {"link", false},
		{"missing/s", false}} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(dir, test.name)
			var all [8]net.Listener
			var errs [8]error
			var starting sync.WaitGroup
			for i := range all {
				starting.Go(func() { all[i], errs[i] = ListenSocket(path) })
			}
			starting.Wait()
			n := 0
			for i, l := range all {
				if errs[i] != nil {
					if text := errs[i].Error(); !strings.Contains(text, test.name[:3]) ||
						strings.Contains(text, "/proc/") {
						t.Errorf("%s", text)
					}
					continue
				}
				n++
				defer l.Close()
				if info, err := os.Lstat(path); err != nil || info.Mode() != os.ModeSocket|0o600 {
					t.Errorf("%v, %v", info, err)
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
				if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("its name is left: %v", err)
				}
				if l.Close() == nil {
					t.Error("it was closed twice")
				}
			}
			if test.ok && n != 1 || !test.ok && n != 0 {
				t.Errorf("%d listen: %v", n, errs)
			}
		})
	}
	if text, err := os.ReadFile(dir + "/file"); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestDial: a socket of this user's is reached; what is none is named, and what is dead is removed
// by Gone alone.
func TestDial(t *testing.T) {
	dir := places(t)
	l, err := ListenSocket(dir + "/live")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	foreign := new(ForeignPeerError)
	for _, test := range []struct {
		name string
		want func(error) bool
		gone bool
	}{
		{"live", func(err error) bool { return err == nil }, false},
		{"dead", func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }, true},
		{"missing", func(err error) bool { return errors.Is(err, fs.ErrNotExist) }, true},
		{"missing/s", func(err error) bool { return errors.Is(err, fs.ErrNotExist) }, true},
		{"file", func(err error) bool { return errors.As(err, &foreign) }, false},
		{"directory", func(err error) bool { return errors.As(err, &foreign) }, false},
		{"link", func(err error) bool { return errors.As(err, &foreign) }, false},
	} {
		path := filepath.Join(dir, test.name)
		_, before := os.Lstat(path)
		c, err := DialSocket(t.Context(), path, true)
		if !test.want(err) {
			t.Errorf("%s: %v", test.name, err)
		}
		if err != nil && strings.Contains(err.Error(), "/proc/") {
			t.Errorf("%s is not named: %v", test.name, err)
		}
		if c != nil {
			c.Close()
		}
		if _, after := os.Lstat(path); (before == nil) != (after == nil) {
			t.Errorf("%s: it was removed", test.name)
		}
		if gone := SocketGone(path); gone != test.gone {
			t.Errorf("%s: gone: %v", test.name, gone)
		}
		if _, err := os.Lstat(path); (err != nil) != test.gone {
			t.Errorf("%s, gone %v: %v", test.name, test.gone, err)
		}
	}
}

// TestNoLock: where the lock is not available, nothing is made or removed.
func TestNoLock(t *testing.T) {
	dir := places(t)
	t.Setenv("XDG_STATE_HOME", dir+"/file")
	if l, err := ListenSocket(dir + "/new"); err == nil {
		t.Errorf("%v listens", l.Addr())
	}
	if _, err := os.Lstat(dir + "/dead"); SocketGone(dir+"/dead") || err != nil {
		t.Errorf("a socket is gone: %v", err)
	}
}

// TestNarrow: what has replaced a socket before it is closed to others is left alone.
func TestNarrow(t *testing.T) {
	dir := places(t)
	target := filepath.Join(dir, "directory")
	for _, test := range []struct {
		name string
		make func(path string) error
		ok   bool
	}{
		{"socket", func(path string) error { return os.Rename(dir+"/dead", path) }, true},
		{"link", func(path string) error { return os.Symlink(target, path) }, false},
		{"link to a socket", func(path string) error { return os.Symlink("at socket", path) }, false},
		{"file", func(path string) error { return os.WriteFile(path, nil, 0o644) }, false},
		{"nothing", func(string) error { return nil }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := open(filepath.Join(dir, "at "+test.name))
			if err := errors.Join(err, test.make(p.path)); err != nil {
				t.Fatal(err)
			}
			defer p.dir.Close()
			before, _ := os.Stat(p.path) // none for nothing
			if err := p.narrow(); (err == nil) != test.ok {
				t.Errorf("narrow: %v", err)
			}
			after, err := os.Stat(p.path)
			switch {
			case before == nil:
			case err != nil || test.ok && after.Mode().Perm() != 0o600 || !test.ok &&
				after.Mode() != before.Mode():
				t.Errorf("%v, before %v; %v", after.Mode(), before.Mode(), err)
			}
		})
	}
}
