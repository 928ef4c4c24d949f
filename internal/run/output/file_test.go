// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// path returns where the file is. In it a byte of the output is at its offset as long as
// the output is no longer than the file may be.
func (f *File) path() string { return filepath.Join(f.store.Dir, f.name) }

func create(t testing.TB, s *Store, size int64) *File {
	t.Helper()
	f, err := s.Create(size)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func newStore(t testing.TB, total int64) *Store {
	t.Helper()
	s := &Store{Dir: filepath.Join(t.TempDir(), "state", "spill"), Total: total}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// readable returns, for each offset below size, whether it can be read, and fails when
// what is read is not what all has there.
func readable(t interface {
	Helper()
	Fatalf(string, ...any)
}, f *File, all []byte, chunk int) []bool {
	t.Helper()
	got := make([]bool, len(all))
	buf := make([]byte, chunk)
	for off := uint64(0); ; {
		n, next := f.ReadAt(buf, off)
		if n == 0 && next == off {
			return got
		}
		if next < off || next > uint64(len(all)) || n > 0 && next != off+uint64(n) {
			t.Fatalf("ReadAt(%d) = %d, %d of %d", off, n, next, len(all))
		}
		if !bytes.Equal(buf[:n], all[off:off+uint64(n)]) {
			t.Fatalf("ReadAt(%d) = %q, want %q", off, buf[:n], all[off:off+uint64(n)])
		}
		for i := range n {
			got[off+uint64(i)] = true
		}
		off = next
	}
}

// sample returns n bytes that tell where they stand.
func sample(from, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		x := from + i
		p[i] = byte(x ^ x>>7 ^ x>>13)
	}
	return p
}

func TestFileAgainstModel(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		perFile := rapid.Int64Range(1, 200).Draw(t, "cap")
		total := rapid.Int64Range(1, 400).Draw(t, "total")
		s := &Store{Dir: filepath.Join(dir, "s"), Total: total}
		defer s.Close()
		f, err := s.Create(perFile)
		if err != nil {
			t.Fatal(err)
		}
		n := min(perFile, total) // the limit of all bounds the one
		head := int(min(perFile/2, n))
		if total < perFile {
			head = int(min(perFile/2, total/2))
		}
		ring := int(n) - head
		var all []byte
		for _, size := range rapid.SliceOfN(rapid.IntRange(0, 90), 1, 30).Draw(t, "sizes") {
			p := sample(len(all), size)
			cut := rapid.IntRange(0, size).Draw(t, "cut")
			f.Append(p[:cut])
			f.Append(p[cut:])
			all = append(all, p...)
			got := readable(t, f, all, rapid.IntRange(1, 50).Draw(t, "chunk"))
			bounded := len(all) > int(total) && total < perFile
			for i, ok := range got {
				h := head
				if !bounded {
					h = int(perFile / 2)
				}
				want := i < h || i >= len(all)-ring || !bounded && len(all) <= int(n)
				if ok != want {
					t.Fatalf("cap %d, total %d: byte %d of %d is kept: %v, want %v", perFile, total, i,
						len(all), ok, want)
				}
			}
			if full := errors.Is(f.Err(), ErrFull); full != bounded {
				t.Fatalf("error %v with %d bytes, cap %d, total %d", f.Err(), len(all), perFile, total)
			}
			info, err := os.Stat(f.path())
			if err != nil || info.Size() > n {
				t.Fatalf("%v, %d bytes, at most %d", err, info.Size(), n)
			}
		}
		f.End()
		info, err := os.Stat(f.path())
		if err != nil || info.Size() != min(n, int64(len(all))) {
			t.Fatalf("%v, %d bytes at the end, want %d", err, info.Size(), min(n, int64(len(all))))
		}
		f.Append([]byte("late"))
		readable(t, f, all, 7)
	})
}

func TestShortOutputStandsInTheFile(t *testing.T) {
	s := newStore(t, 0)
	f := create(t, s, usual)
	f.Append([]byte("hello "))
	f.Append([]byte("world\n"))
	f.End()
	f.End() // does nothing
	if data, err := os.ReadFile(f.path()); err != nil || string(data) != "hello world\n" {
		t.Errorf("%q, %v", data, err)
	}
	for _, at := range []struct {
		path string
		mode fs.FileMode
	}{{f.path(), 0o600}, {s.Dir, fs.ModeDir | 0o700}} {
		if info, err := os.Lstat(at.path); err != nil || info.Mode() != at.mode {
			t.Errorf("%s: %v, %v, want %v", at.path, info.Mode(), err, at.mode)
		}
	}
}

func TestFileNames(t *testing.T) {
	s := newStore(t, 0)
	for range 20 {
		if f := create(t, s, 1); !fileName(f.name) {
			t.Errorf("%q is not a name of a spill file", f.name)
		}
	}
	for _, name := range []string{"", ".", "..", "other", strings.Repeat("A", 32), strings.Repeat("a", 33),
		strings.Repeat("a", 30) + "/b"} {
		if fileName(name) {
			t.Errorf("%q is a name of a spill file", name)
		}
	}
}

func TestDirectoryOfOthers(t *testing.T) {
	real := t.TempDir()
	for _, tt := range []struct {
		name string
		make func(dir string) error
	}{
		{"symbolic link", func(dir string) error { return os.Symlink(real, dir) }},
		{"file", func(dir string) error { return os.WriteFile(dir, nil, 0o600) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "spill")
			if err := tt.make(dir); err != nil {
				t.Fatal(err)
			}
			s := &Store{Dir: dir}
			if _, err := s.Create(usual); err == nil {
				t.Error("a file was made in it")
			}
			if names, _ := os.ReadDir(real); len(names) > 0 {
				t.Errorf("%v", names)
			}
		})
	}
	t.Run("open to others", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "spill")
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		s := &Store{Dir: dir}
		defer s.Close()
		create(t, s, usual)
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	})
	t.Run("none", func(t *testing.T) {
		if _, err := new(Store).Create(usual); err == nil {
			t.Error("the zero store made a file")
		}
	})
}

// TestOthersStay: only regular files that are named like spill files are removed.
func TestOthersStay(t *testing.T) {
	s := newStore(t, 0)
	victim := filepath.Join(t.TempDir(), "victim")
	name := func(c string) string { return strings.Repeat(c, 32) }
	for _, err := range []error{
		os.WriteFile(victim, []byte("precious"), 0o600),
		os.MkdirAll(filepath.Join(s.Dir, name("d")), 0o700),
		os.Symlink(victim, filepath.Join(s.Dir, name("e"))),
		os.WriteFile(filepath.Join(s.Dir, name("f")), []byte("x"), 0o600),
		os.WriteFile(filepath.Join(s.Dir, "note"), []byte("x"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	create(t, s, usual)
	if data, err := os.ReadFile(victim); string(data) != "precious" {
		t.Errorf("%q, %v", data, err)
	}
	for name, there := range map[string]bool{name("d"): true, name("e"): true, name("f"): false,
		"note": true} {
		if _, err := os.Lstat(filepath.Join(s.Dir, name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEndedFilesMakeRoom(t *testing.T) {
	const size = 1000
	s := newStore(t, 3*size)
	var files []*File
	written := func(n int) *File {
		f := create(t, s, size)
		f.Append(sample(0, n))
		return f
	}
	for range 3 {
		files = append(files, written(size))
	}
	files[1].End()
	files[2].End()
	for i, f := range files {
		at := time.Unix(int64(1000+i), 0)
		if err := os.Chtimes(f.path(), at, at); err != nil {
			t.Fatal(err)
		}
	}
	kept := func(f *File) int {
		n := 0
		for _, ok := range readable(t, f, sample(0, size), 64) {
			if ok {
				n++
			}
		}
		return n
	}
	next := written(size / 2)
	for i, want := range []int{size, 0, size} {
		if got := kept(files[i]); got != want {
			t.Errorf("file %d: %d bytes kept, want %d", i, got, want)
		}
	}
	if got := kept(next); got != size/2 || next.Err() != nil {
		t.Errorf("the new one has %d bytes, %v", got, next.Err())
	}
	if _, err := os.Stat(files[1].path()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the oldest ended one is still there: %v", err)
	}
	last := written(size) // takes the room of the other ended one
	none := written(size)
	if got := kept(last); got != size || last.Err() != nil {
		t.Errorf("the last one has %d bytes, %v", got, last.Err())
	}
	if got := kept(none); got != 0 || !errors.Is(none.Err(), ErrFull) {
		t.Errorf("the one without room has %d bytes, %v", got, none.Err())
	}
	if got := kept(files[0]); got != size {
		t.Errorf("the one that is being written has %d bytes", got)
	}
}

func TestRemoveAndClose(t *testing.T) {
	s := newStore(t, 0)
	a, b := create(t, s, usual), create(t, s, usual)
	a.Append([]byte("abc"))
	b.Append([]byte("abc"))
	for range 2 {
		if err := a.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	a.Append([]byte("def"))
	if n, next := a.ReadAt(make([]byte, 9), 0); n != 0 || next != 0 || !errors.Is(a.Err(), ErrClosed) {
		t.Errorf("a removed file: %d, %d, %v", n, next, a.Err())
	}
	other := &Store{Dir: s.Dir}
	defer other.Close()
	kept := create(t, other, usual)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(usual); !errors.Is(err, ErrClosed) {
		t.Errorf("Create after Close: %v", err)
	}
	b.Append([]byte("x"))
	b.End()
	if err := b.Remove(); err != nil {
		t.Error(err)
	}
	names, err := os.ReadDir(s.Dir)
	if err != nil || len(names) != 1 || names[0].Name() != kept.name {
		t.Errorf("%v, %v", names, err)
	}
}

// TestRemoveKnowsItsFile: a name that means another file by now is left alone.
func TestRemoveKnowsItsFile(t *testing.T) {
	s := newStore(t, 0)
	f := create(t, s, usual)
	f.Append([]byte("mine"))
	if err := os.Remove(f.path()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.path(), []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Remove(); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(f.path()); err != nil || string(data) != "theirs" {
		t.Errorf("%q, %v", data, err)
	}
}

// TestReadWhileWriting: what a reader gets is right or missing, also while the ring
// goes around and the limit shrinks it.
func TestReadWhileWriting(t *testing.T) {
	for _, tt := range []struct {
		name           string
		perFile, total int64
	}{{"ring", 64 << 10, 0}, {"bounded", 256 << 10, 100 << 10}} {
		t.Run(tt.name, func(t *testing.T) {
			f := create(t, newStore(t, tt.total), tt.perFile)
			const size = 8 << 20
			all := sample(0, size)
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := 0; i < size; i += 8 << 10 {
					f.Append(all[i : i+8<<10])
				}
			}()
			buf := make([]byte, 16<<10)
			for {
				for off := uint64(0); ; {
					n, next := f.ReadAt(buf, off)
					if !bytes.Equal(buf[:n], all[off:off+uint64(n)]) {
						t.Fatalf("wrong bytes at %d", off)
					}
					if n == 0 && next == off {
						break
					}
					off = next
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
}

// TestDefaultTotal: files of a store that names no limit have 1 GiB together.
func TestDefaultTotal(t *testing.T) {
	s := newStore(t, 0)
	const rest = 1000
	one, two := create(t, s, 1<<40), create(t, s, 1<<40)
	if got, err := s.reserve(one, 0, 1<<30-rest); got != 1<<30-rest || err != nil { // without a block on disk
		t.Fatal(got, err)
	}
	if got, err := s.reserve(two, 0, 10*rest); got != rest || err != nil {
		t.Errorf("%d bytes, want %d; %v", got, rest, err)
	}
}
