// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestOurs: what sallyport has in a directory for a time is not listed, found, copied or waited for; what
// only has its name is.
func TestOurs(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(path string) error
		ours bool
	}{
		{".codex", func(p string) error { return os.Mkdir(p, 0o555) }, false},
		{"hooks", func(p string) error { return os.Mkdir(p, 0o500) }, false},
		{".agents", func(p string) error { return os.Symlink("/nothing", p) }, false},
		{".sallyport-ABCDEFGHIJKLMNOPQRSTUVWXYZ", func(p string) error { return os.WriteFile(p, nil, 0o600) }, true},
		{".sallyport-ABCDEFGHIJKLMNOPQRSTUVWXYz", func(p string) error { return os.WriteFile(p, nil, 0o600) }, false},
		{".sallyport-ABCDEFGHIJKLMNOPQRSTUVWXYZ", func(p string) error { return os.Mkdir(p, 0o555) }, false},
		{".sallyport-quarantine-1", func(p string) error { return os.Mkdir(p, 0o555) }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			top := t.TempDir()
			from, to := top+"/from", top+"/to"
			at := filepath.Join(from, test.name)
			check(t, errors.Join(os.Mkdir(from, 0o755), os.WriteFile(from+"/file", nil, 0o600),
				test.make(at)))
			t.Cleanup(func() { _ = os.Chmod(at, 0o755) })
			link := errors.Is(func() error { _, err := os.Readlink(at); return err }(), nil)
			entries, err := ReadDirectory(from)
			check(t, err)
			listed := slices.ContainsFunc(entries, func(e Entry) bool { return e.Name == test.name })
			if len(entries) == 0 || !link && listed == test.ours {
				t.Errorf("listed: %v", entries)
			}
			w, err := Walk(t.Context(), from, WalkOptions{MaxDepth: 2, MaxDirectories: 9, MaxEntries: 9})
			check(t, err)
			walked := slices.ContainsFunc(w.Entries, func(e WalkEntry) bool { return e.Path == at })
			if !link && walked == test.ours || len(w.Errors) > 0 {
				t.Errorf("walked: %+v", w)
			}
			if _, err := Stat(Target{Path: at}); !link && errors.Is(err, syscall.ENOENT) != test.ours {
				t.Errorf("described: %v", err)
			}
			check(t, Copy(t.Context(), from, to, true))
			if _, err := os.Lstat(filepath.Join(to, test.name)); errors.Is(err, os.ErrNotExist) != test.ours {
				t.Errorf("copied: %v", err)
			}
			_ = os.Chmod(filepath.Join(to, test.name), 0o755) // for its removal
		})
	}
}

// TestOursWatched: a file that is about to replace another one ends no watch, and what a user makes
// then does.
func TestOursWatched(t *testing.T) {
	testenv.NeedInotify(t)
	dir := t.TempDir()
	ours := dir + "/" + replacing + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	w, err := NewWatch([]string{ours, dir + "/later"})
	check(t, err)
	over := make(chan error, 1)
	check(t, os.WriteFile(ours, nil, 0o600))
	if there, err := w.look(); there || err != nil {
		t.Fatalf("ours: %v, %v", there, err)
	}
	go func() { over <- w.Wait(t.Context()) }()
	check(t, os.WriteFile(dir+"/later", nil, 0o600))
	check(t, <-over)
}

// TestHoles: what is a hole stays one, wherever it is, and the content and the length are the same.
func TestHoles(t *testing.T) {
	const part = 1 << 20
	for _, test := range []struct {
		name string
		size int64   // at the end, in parts
		data []int64 // parts that have bytes
	}{
		{"all", 64, nil},
		{"none", 1, []int64{0}},
		{"in front", 64, []int64{63}},
		{"at the end", 64, []int64{0}},
		{"between", 64, []int64{0, 20, 21, 63}},
		{"more than a step", 200, []int64{100}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			from, err := os.Create(dir + "/from")
			check(t, err)
			defer from.Close()
			check(t, from.Truncate(test.size*part))
			bytes := make([]byte, part)
			for i := range bytes {
				bytes[i] = byte(i%251) + 1
			}
			for _, at := range test.data {
				_, err := from.WriteAt(bytes, at*part)
				check(t, err)
			}
			check(t, from.Sync())
			check(t, os.WriteFile(dir+"/to", bytes, 0o600)) // what was there leaves nothing
			check(t, Copy(t.Context(), dir+"/from", dir+"/to", false))
			to, err := os.Open(dir + "/to")
			check(t, err)
			defer to.Close()
			var st unix.Stat_t
			check(t, unix.Fstat(int(to.Fd()), &st))
			if most := int64(len(test.data)+1) * part; st.Size != test.size*part || st.Blocks*512 > most {
				t.Errorf("%d bytes, and %d on the disk, at most %d wanted", st.Size, st.Blocks*512, most)
			}
			got, want := make([]byte, part), make([]byte, part)
			for at := range test.size {
				_, err1 := to.ReadAt(got, at*part)
				_, err2 := from.ReadAt(want, at*part)
				if err1 != nil || err2 != nil || !slices.Equal(got, want) {
					t.Fatalf("part %d differs: %v, %v", at, err1, err2)
				}
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := t.TempDir() + "/sparse"
	check(t, errors.Join(os.WriteFile(file, []byte("x"), 0o600), os.Truncate(file, part)))
	if err := Copy(ctx, file, file+"2", false); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	check(t, Copy(t.Context(), "/proc/self/status", file+"3", false))
	if text, err := os.ReadFile(file + "3"); len(text) == 0 {
		t.Errorf("a file that says that it is empty: %v", err)
	}
}
