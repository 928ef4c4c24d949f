// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package safefile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestOpenOwn is TestOpenTree.
func TestOpenOwn(t *testing.T) {
	below := func(path string, open func(d *Own, name string) (*Own, error)) (io.Closer, error) {
		top, err := os.Open(filepath.Dir(path))
		if err != nil {
			return nil, err
		}
		defer top.Close()
		return open(&Own{int(top.Fd()), top.Name()}, filepath.Base(path))
	}
	testOpeners(t, []opener{
		func(path string) (io.Closer, error) { return OpenOwn(path) },
		func(path string) (io.Closer, error) { return below(path, (*Own).Open) },
	}, []opener{
		func(path string) (io.Closer, error) { return MakeOwn(path) },
		func(path string) (io.Closer, error) { return below(path, (*Own).Make) },
	})
}

// TestOwn: a directory of another user is refused, a missing one is made with those on the way to it, and
// what was closed to others stays closed.
func TestOwn(t *testing.T) {
	testenv.RunAsOrdinary(t)
	var foreign *ForeignError
	if os.Geteuid() != 0 {
		if _, err := OpenOwn("/usr"); !errors.As(err, &foreign) {
			t.Errorf("a directory of root's: %v", err)
		}
	}
	path := filepath.Join(t.TempDir(), "a", "b", "c")
	if _, err := OpenOwn(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing one: %v", err)
	}
	d, err := MakeOwn(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{path, filepath.Dir(path)} {
		if info, err := os.Stat(at); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", at, info, err)
		}
	}
	if err := errors.Join(d.Close(), d.Close()); err != nil {
		t.Error(err)
	}
}
