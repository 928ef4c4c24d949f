// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package recordings

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/recording"
)

// TestStore: files are new and for the user alone, old ones go, and nothing else is touched.
func TestStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "recordings")
	s := &Store{Dir: dir, MaxAge: time.Hour, MaxTotal: 100}
	made := map[string]bool{}
	create := func(bytes int, age time.Duration) string {
		t.Helper()
		f, err := s.Create()
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil || info.Mode() != 0o600 || info.Size() != 0 || made[f.Name()] {
			t.Errorf("%v, %v", info, err)
		}
		made[f.Name()] = true
		_, err = f.Write(make([]byte, bytes))
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(f.Name(), at, at); err != nil {
			t.Fatal(err)
		}
		return f.Name()
	}
	there := func(name string) bool {
		_, err := os.Lstat(name)
		return err == nil
	}
	old, large, first := create(1, 2*time.Hour), create(90, 30*time.Minute), create(20, time.Minute)
	other, link := filepath.Join(dir, "other.cast"), filepath.Join(dir, "20200101T000000Z-00000000.cast")
	if err := errors.Join(os.WriteFile(other, make([]byte, 200), 0o600), os.Symlink(other, link)); err != nil {
		t.Fatal(err)
	}
	last := create(1, 0)
	if there(old) || there(large) || !there(first) || !there(last) || !there(other) || !there(link) {
		t.Error("other files were removed than the old and the large one")
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory is %v, %v", info, err)
	}
	for _, name := range []string{"other.cast", "../x", "", filepath.Base(old)} {
		if err := s.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("removing %q: %v", name, err)
		}
	}
	if err := s.Remove(filepath.Base(first)); err != nil || there(first) {
		t.Errorf("it is not removed: %v", err)
	}
}

// TestList: headers are shown where there are some.
func TestList(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	r := recording.New(recording.Options{Open: s.Create})
	r.Begin(&executor.Spec{Args: []string{"vim", "x"}, TTY: &executor.Size{}})
	whole := r.End(0)
	broken, err := s.Create()
	if err != nil {
		t.Fatal(err)
	}
	_ = broken.Close()
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(broken.Name(), later, later); err != nil {
		t.Fatal(err)
	}
	list, err := s.List()
	if err != nil || len(list) != 2 || list[0].Path != broken.Name() || list[0].Command != "" ||
		list[1].Path != whole.Path || list[1].Command != "vim x" || list[1].Bytes != whole.Bytes ||
		list[1].Started.IsZero() {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestNew: a file is made only where there is nothing.
func TestNew(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "target"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		want error
	}{{"new", nil}, {"new", fs.ErrExist}, {"link", fs.ErrExist}, {"no/new", fs.ErrNotExist}} {
		f, err := New(filepath.Join(dir, test.name))
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v, not %v", test.name, err, test.want)
		}
		if f != nil {
			_ = f.Close()
		}
	}
}

// TestOutputs: output is kept for the user alone under the ID of its run, the oldest goes first, by number
// and by size, and nothing else is touched.
func TestOutputs(t *testing.T) {
	for _, test := range []struct {
		name  string
		store func(dir string) *Store
		want  string
	}{
		{"by number", func(dir string) *Store { return Outputs(dir, 2, 1000) }, "ccdd"},
		{"by size", func(dir string) *Store { return Outputs(dir, 10, 12) }, "bbccdd"},
		{"too large", func(dir string) *Store { return Outputs(dir, 10, 3) }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state", "output")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			other := filepath.Join(dir, "other")
			if err := os.WriteFile(other, make([]byte, 50), 0o600); err != nil {
				t.Fatal(err)
			}
			s := test.store(dir)
			for i, id := range []string{"aa", "bb", "cc", "dd"} {
				if err := s.Keep(id, "four"); err != nil {
					t.Fatal(err)
				}
				at := time.Now().Add(time.Duration(i-10) * time.Minute)
				if err := os.Chtimes(filepath.Join(dir, id), at, at); err != nil && test.want != "" {
					t.Fatal(err)
				}
			}
			got := ""
			for _, id := range []string{"aa", "bb", "cc", "dd"} {
				if f, err := s.Open(id); err == nil {
					info, err := f.Stat()
					if err != nil || info.Mode() != 0o600 || info.Size() != 4 {
						t.Errorf("%v, %v", info, err)
					}
					got += id
					_ = f.Close()
				}
			}
			if got != test.want {
				t.Errorf("%q is there, want %q", got, test.want)
			}
			if _, err := os.Stat(other); err != nil {
				t.Error(err)
			}
			for _, id := range []string{"other", "../output/other", ""} {
				if _, err := s.Open(id); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%q: %v", id, err)
				}
			}
		})
	}
}
