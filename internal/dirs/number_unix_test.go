// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package dirs

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNumber: numbers go on from the last one that was given, which is on disk.
func TestNumber(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for i, want := range []struct{ after, n uint64 }{{0, 1}, {0, 2}, {1, 3}, {3, 4}, {10, 11}, {5, 12}} {
		if n, err := Number("x", want.after); err != nil || n != want.n {
			t.Errorf("%d: %d, %v, want %d", i, n, err, want.n)
		}
	}
	if n, err := Number("y", 0); err != nil || n != 1 {
		t.Errorf("another name: %d, %v", n, err)
	}
	dir, err := Dir()
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "x.last")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestNumberWritten: the file has the number and nothing else, whatever wrote the one before.
func TestNumberWritten(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir, err := Dir()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "x.last")
	for before, want := range map[string]string{"7": "8", "9": "10", "99": "100", "7\n": "8", "007": "8",
		"0000000000000000009": "10"} {
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		n, err := Number("x", 0)
		if text, _ := os.ReadFile(path); err != nil || string(text) != want || strconv.FormatUint(n,
			10) != want {
			t.Errorf("%q: %d, %q, %v, want %s", before, n, text, err, want)
		}
	}
	if err := os.Chmod(path, 0o400); err != nil { // it is replaced then
		t.Fatal(err)
	}
	if n, err := Number("x", 200); n != 201 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// TestNumberUnusable: a file that does not have the last number is an error with a fix, is not 1, and
// stays as it is.
func TestNumberUnusable(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"empty":     func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"words":     func(p string) error { return os.WriteFile(p, []byte("seven"), 0o600) },
		"a sign":    func(p string) error { return os.WriteFile(p, []byte("-7"), 0o600) },
		"two lines": func(p string) error { return os.WriteFile(p, []byte("7\n8\n"), 0o600) },
		"NUL":       func(p string) error { return os.WriteFile(p, []byte("7\x00"), 0o600) },
		"too large": func(p string) error { return os.WriteFile(p, []byte("18446744073709551616"), 0o600) },
		"the last":  func(p string) error { return os.WriteFile(p, []byte("18446744073709551615"), 0o600) },
		"long":      func(p string) error { return os.WriteFile(p, []byte(strings.Repeat("0", 100)+"7"), 0o600) },
		"directory": func(p string) error { return os.Mkdir(p, 0o700) },
		"pipe":      func(p string) error { return unix.Mkfifo(p, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_STATE_HOME", t.TempDir())
			dir, err := Dir()
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "x.last")
			if err := make(path); err != nil {
				t.Fatal(err)
			}
			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			var unusable *NumberError
			if n, err := Number("x", 0); !errors.As(err, &unusable) || unusable.Path != path ||
				!strings.Contains(err.Error(), "remove the file") {
				t.Errorf("%d, %v", n, err)
			}
			if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
				t.Errorf("%v, %v", after, err)
			}
		})
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	if n, err := Number("x", math.MaxUint64); err == nil {
		t.Errorf("%d after the largest", n)
	}
}

// TestNumberAtOnce: those who take one at once get different ones.
func TestNumberAtOnce(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	const many = 40
	var mu sync.Mutex
	seen := map[uint64]bool{}
	var wg sync.WaitGroup
	for range many {
		wg.Go(func() {
			n, err := Number("x", 0)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || seen[n] || n > many {
				t.Errorf("%d, %v", n, err)
			}
			seen[n] = true
		})
	}
	wg.Wait()
}
