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

// appendTo appends one piece.
func appendTo(f *File, p []byte) { f.Append(func(yield func([]byte) bool) { yield(p) }) }

func create(t testing.TB, s *Store, name string) *File {
	t.Helper()
	f, err := s.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func newStore(t testing.TB, perFile, total int64) *Store {
	t.Helper()
	s := &Store{Dir: filepath.Join(t.TempDir(), "state", "spill"), PerFile: perFile, Total: total}
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
		s := &Store{Dir: filepath.Join(dir, "s"), PerFile: perFile, Total: total}
		defer s.Close()
		f, err := s.Create("run")
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
			f.Append(func(yield func([]byte) bool) { _ = yield(p[:cut]) && yield(p[cut:]) })
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
					t.Fatalf("cap %d, total %d: byte %d of %d is kept: %v, want %v", perFile, total, i, len(all), ok, want)
				}
			}
			if f.Size() != uint64(len(all)) {
				t.Fatalf("size %d, want %d", f.Size(), len(all))
			}
			if full := errors.Is(f.Err(), ErrFull); full != bounded {
				t.Fatalf("error %v with %d bytes, cap %d, total %d", f.Err(), len(all), perFile, total)
			}
			info, err := os.Stat(f.Path())
			if err != nil || info.Size() > n {
				t.Fatalf("%v, %d bytes, at most %d", err, info.Size(), n)
			}
		}
		f.End()
		info, err := os.Stat(f.Path())
		if err != nil || info.Size() != min(n, int64(len(all))) {
			t.Fatalf("%v, %d bytes at the end, want %d", err, info.Size(), min(n, int64(len(all))))
		}
		appendTo(f, []byte("late"))
		if f.Size() != uint64(len(all)+4) {
			t.Fatal("what came after the end was not counted")
		}
		readable(t, f, all, 7)
	})
}

func TestShortOutputStandsInTheFile(t *testing.T) {
	s := newStore(t, 0, 0)
	f := create(t, s, "run-1")
	appendTo(f, []byte("hello "))
	appendTo(f, []byte("world\n"))
	f.End()
	f.End() // does nothing
	if data, err := os.ReadFile(f.Path()); err != nil || string(data) != "hello world\n" {
		t.Errorf("%q, %v", data, err)
	}
	for _, at := range []struct {
		path string
		mode fs.FileMode
	}{{f.Path(), 0o600}, {s.Dir, fs.ModeDir | 0o700}} {
		if info, err := os.Lstat(at.path); err != nil || info.Mode() != at.mode {
			t.Errorf("%s: %v, %v, want %v", at.path, info.Mode(), err, at.mode)
		}
	}
}

func TestNames(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		ok         bool
	}{
		{"a run", "Run_1-2.x", true},
		{"longest", strings.Repeat("a", 128), true},
		{"too long", strings.Repeat("a", 129), false},
		{"empty", "", false},
		{"the folder", ".", false},
		{"the one around it", "..", false},
		{"hidden", ".x", false},
		{"in another folder", "a/b", false},
		{"in another folder of Windows", `a\b`, false},
		{"a stream of Windows", "a:b", false},
		{"a NUL", "a\x00", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t, 0, 0)
			if _, err := s.Create(tt.file); (err == nil) != tt.ok {
				t.Fatalf("Create = %v", err)
			}
			if !tt.ok {
				return
			}
			if _, err := s.Create(tt.file); !errors.Is(err, fs.ErrExist) {
				t.Errorf("a second one: %v", err)
			}
		})
	}
}

func TestFolderOfOthers(t *testing.T) {
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
			if _, err := s.Create("a"); err == nil {
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
		create(t, s, "a")
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	})
	t.Run("none", func(t *testing.T) {
		if _, err := new(Store).Create("a"); err == nil {
			t.Error("the zero store made a file")
		}
	})
}

// TestLinksStay: what is no regular file in the folder is none of ours.
func TestLinksStay(t *testing.T) {
	s := newStore(t, 0, 0)
	victim := filepath.Join(t.TempDir(), "victim")
	for _, err := range []error{
		os.WriteFile(victim, []byte("precious"), 0o600),
		os.MkdirAll(filepath.Join(s.Dir, "folder"), 0o700),
		os.Symlink(victim, filepath.Join(s.Dir, "link")),
		os.WriteFile(filepath.Join(s.Dir, "left"), []byte("x"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Create("link"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create = %v", err)
	}
	if data, err := os.ReadFile(victim); string(data) != "precious" {
		t.Errorf("%q, %v", data, err)
	}
	for name, there := range map[string]bool{"folder": true, "link": true, "left": false} {
		if _, err := os.Lstat(filepath.Join(s.Dir, name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEndedFilesMakeRoom(t *testing.T) {
	const size = 1000
	s := newStore(t, size, 3*size)
	var files []*File
	for i, name := range []string{"z", "y", "x"} {
		f := create(t, s, name)
		appendTo(f, sample(0, size))
		at := time.Unix(int64(1000+i), 0)
		if err := os.Chtimes(f.Path(), at, at); err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	files[1].End()
	files[2].End()
	for i, at := range []int64{1000, 1001, 1002} {
		if err := os.Chtimes(files[i].Path(), time.Unix(at, 0), time.Unix(at, 0)); err != nil {
			t.Fatal(err)
		}
	}
	next := create(t, s, "next")
	appendTo(next, sample(0, size/2))
	kept := func(f *File) int {
		n := 0
		for _, ok := range readable(t, f, sample(0, int(f.Size())), 64) {
			if ok {
				n++
			}
		}
		return n
	}
	for i, want := range []int{size, 0, size} {
		if got := kept(files[i]); got != want {
			t.Errorf("file %d: %d bytes kept, want %d", i, got, want)
		}
	}
	if got := kept(next); got != size/2 || next.Err() != nil {
		t.Errorf("the new one has %d bytes, %v", got, next.Err())
	}
	if _, err := os.Stat(files[1].Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the oldest ended one is still there: %v", err)
	}
	last := create(t, s, "last") // takes the room of the other ended one
	appendTo(last, sample(0, size))
	none := create(t, s, "none")
	appendTo(none, sample(0, size))
	if got := kept(last); got != size || last.Err() != nil {
		t.Errorf("the last one has %d bytes, %v", got, last.Err())
	}
	if got := kept(none); got != 0 || !errors.Is(none.Err(), ErrFull) || none.Size() != size {
		t.Errorf("the one without room has %d bytes of %d, %v", got, none.Size(), none.Err())
	}
	if got := kept(files[0]); got != size {
		t.Errorf("the one that is being written has %d bytes", got)
	}
}

func TestRemoveAndClose(t *testing.T) {
	s := newStore(t, 0, 0)
	a, b := create(t, s, "a"), create(t, s, "b")
	appendTo(a, []byte("abc"))
	appendTo(b, []byte("abc"))
	for range 2 {
		if err := a.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	again := create(t, s, "a")
	appendTo(again, []byte("new"))
	appendTo(a, []byte("def"))
	if err := a.Remove(); err != nil {
		t.Fatal(err)
	}
	if n, next := a.ReadAt(make([]byte, 9), 0); n != 0 || next != 0 || a.Size() != 6 || a.Err() == nil {
		t.Errorf("a removed file: %d, %d, size %d, %v", n, next, a.Size(), a.Err())
	}
	if data, err := os.ReadFile(again.Path()); !strings.HasPrefix(string(data), "new") {
		t.Errorf("the new file of that name: %q, %v", data, err)
	}
	other := &Store{Dir: s.Dir}
	defer other.Close()
	kept := create(t, other, "kept")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create("c"); !errors.Is(err, ErrClosed) {
		t.Errorf("Create after Close: %v", err)
	}
	appendTo(b, []byte("x"))
	b.End()
	if err := b.Remove(); err != nil {
		t.Error(err)
	}
	names, err := os.ReadDir(s.Dir)
	if err != nil || len(names) != 1 || names[0].Name() != kept.Name() {
		t.Errorf("%v, %v", names, err)
	}
}

// TestRemoveKnowsItsFile: a name that means another file by now is left alone.
func TestRemoveKnowsItsFile(t *testing.T) {
	s := newStore(t, 0, 0)
	f := create(t, s, "run")
	appendTo(f, []byte("mine"))
	if err := os.Remove(f.Path()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.Path(), []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Remove(); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(f.Path()); err != nil || string(data) != "theirs" {
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
			s := newStore(t, tt.perFile, tt.total)
			f := create(t, s, "run")
			const size = 8 << 20
			all := sample(0, size)
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := 0; i < size; i += 8 << 10 {
					appendTo(f, all[i:i+8<<10])
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
