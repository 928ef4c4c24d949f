// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package safefile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestRemoveWithFewDescriptors removes what is deeper than the limit on open files.
func TestRemoveWithFewDescriptors(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	if err := errors.Join(os.Mkdir(dir, 0o700), descend(dir, 500, t.TempDir())); err != nil {
		t.Fatal(err)
	}
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	few := before
	few.Cur = 100
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	}()
	if err := RemoveTreePath(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestOpenDirFollowsNothing: what has become a link since it was looked at is not opened, and
// what it leads to keeps its mode.
func TestOpenDirFollowsNothing(t *testing.T) {
	testenv.RunAsOrdinary(t)
	top, outside := t.TempDir(), t.TempDir()
	for _, mode := range []os.FileMode{0o755, 0} {
		link := filepath.Join(top, mode.String())
		if err := errors.Join(os.Chmod(outside, mode), os.Symlink(outside, link)); err != nil {
			t.Fatal(err)
		}
		dir, err := os.Open(top)
		if err != nil {
			t.Fatal(err)
		}
		if f, err := OpenTreeDir(dir, filepath.Base(link)); err == nil {
			f.Close()
			t.Errorf("a link to a directory with mode %v was opened", mode)
		}
		dir.Close()
		if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != mode {
			t.Errorf("the directory that it leads to has mode %v, %v", info.Mode(), err)
		}
	}
	if err := os.Chmod(outside, 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestOpenDirWhileSwapped: a name that is a directory and a link in turn is opened as the
// directory or not at all.
func TestOpenDirWhileSwapped(t *testing.T) {
	top, outside := t.TempDir(), t.TempDir()
	a, b := filepath.Join(top, "a"), filepath.Join(top, "b")
	if err := errors.Join(os.Mkdir(a, 0o700), os.Symlink(outside, b)); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	dir, err := os.Open(top)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	want, err := os.Stat(outside)
	if err != nil {
		t.Fatal(err)
	}
	for range 5000 {
		f, err := OpenTreeDir(dir, "a")
		if err != nil {
			continue
		}
		got, err := f.Stat()
		f.Close()
		if err != nil || os.SameFile(got, want) {
			t.Fatalf("the link was followed, %v", err)
		}
	}
}

// TestRemoveUntil: removing ends when its time is over, and another call goes on.
func TestRemoveUntil(t *testing.T) {
	top := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(top, "dir"), 0o700),
		descend(filepath.Join(top, "dir"), 100, top)); err != nil {
		t.Fatal(err)
	}
	parent, err := os.OpenRoot(top)
	if err != nil {
		t.Fatal(err)
	}
	defer parent.Close()
	late := make(chan struct{})
	close(late)
	if err := RemoveTreeUntil(parent, "dir", late); !errors.Is(err, ErrLate) {
		t.Errorf("error %v, want ErrLate", err)
	}
	if err := RemoveTreeUntil(parent, "dir", make(chan struct{})); err != nil {
		t.Error(err)
	}
	if _, err := parent.Lstat("dir"); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestChmodLink: a link is refused, and what it leads to left alone.
func TestChmodLink(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	target := filepath.Join(dir.Name(), "target")
	if err := errors.Join(os.Mkdir(target, 0o710),
		os.Symlink("target", filepath.Join(dir.Name(), "link"))); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"link": unix.ELOOP, "missing": unix.ENOENT} {
		if err := Chmod(int(dir.Fd()), name, 0o700); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if info, err := os.Lstat(target); err != nil || info.Mode().Perm() != 0o710 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := Chmod(int(dir.Fd()), "target", 0o500); err != nil {
		t.Error(err)
	}
	if info, err := os.Lstat(target); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
