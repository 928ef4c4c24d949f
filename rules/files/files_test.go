// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/rules"
)

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700),
		os.WriteFile(name, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestDirectory: what is no regular file is neither read nor waited for.
func TestDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rules")
	if got := Directory(dir); len(got) != 0 {
		t.Errorf("none: %v", got)
	}
	write(t, dir+"/b.rules", `prefix_rule(["b"])`)
	write(t, dir+"/a.rules", `prefix_rule(["a"])`)
	write(t, dir+"/B.rules", "")
	write(t, dir+"/.hidden.rules", "")
	write(t, dir+"/c.rules.bak", "x = ")
	write(t, dir+"/d.rules/e.rules", "x = ")
	if err := errors.Join(unix.Mkfifo(dir+"/pipe.rules", 0o600), os.Symlink("a.rules", dir+"/link.rules"),
		os.Symlink("none", dir+"/gone.rules")); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range Directory(dir) {
		names = append(names, filepath.Base(s.Name))
		if s.Err != nil {
			t.Error(s.Err)
		}
	}
	if want := []string{".hidden.rules", "B.rules", "a.rules", "b.rules"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if err := os.Symlink("none", dir+"/gone"); err != nil {
		t.Fatal(err)
	}
	if got := Directory(dir + "/gone"); len(got) != 1 || got[0].Err == nil {
		t.Errorf("a link that leads nowhere: %v", got)
	}
	if got := Directory(dir + "/a.rules"); len(got) != 1 || got[0].Err == nil {
		t.Errorf("a file for a directory: %v", got)
	}
	for i := range maxFiles {
		write(t, fmt.Sprintf("%s/%d.rules", dir, i), "")
	}
	if got := Directory(dir); len(got) != 1 || got[0].Err == nil ||
		!strings.Contains(got[0].Err.Error(), "more than 1024 rule files") {
		t.Errorf("too many: %d", len(got))
	}
}

// TestRead: each of these is an error of the set, and nothing is allowed.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/good.rules", `prefix_rule(["a"])`)
	write(t, dir+"/large.rules", "")
	if err := errors.Join(unix.Mkfifo(dir+"/pipe.rules", 0o600), os.Truncate(dir+"/large.rules", 100<<20),
		os.Symlink("good.rules", dir+"/link.rules")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"none.rules":  "no such file or directory",
		"pipe.rules":  "it is not a regular file",
		".":           "it is not a regular file",
		"large.rules": "the file has more than 4 MiB; split it",
	} {
		set := rules.Load(rules.Host{}, Read(dir+"/good.rules"), Read(filepath.Join(dir, name)))
		if err := set.Err(); err == nil || !strings.HasSuffix(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), dir) || strings.Count(err.Error(), dir) != 1 {
			t.Errorf("%s: %v", name, err)
		}
		if res := set.Check([]string{"a"}); res.Decision != rules.Forbid || len(res.Matches) != 1 {
			t.Errorf("%s: %+v", name, res)
		}
	}
	if n := len(Read(dir + "/large.rules").Text); n != rules.MaxFile+1 {
		t.Errorf("%d bytes of a large file were read", n)
	}
	if set := rules.Load(rules.Host{}, Read(dir+"/link.rules")); set.Err() != nil {
		t.Error(set.Err())
	}
}

// TestUnreadable needs a user whom modes bind.
func TestUnreadable(t *testing.T) {
	testenv.NeedOrdinaryUser(t)
	dir := t.TempDir()
	write(t, dir+"/a.rules", "")
	if err := os.Chmod(dir+"/a.rules", 0); err != nil {
		t.Fatal(err)
	}
	if got := Directory(dir); len(got) != 1 || !errors.Is(got[0].Err, fs.ErrPermission) {
		t.Errorf("a file: %v", got)
	}
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700) //nolint:errcheck // for the removal
	if got := Directory(dir); len(got) != 1 || !errors.Is(got[0].Err, fs.ErrPermission) ||
		got[0].Name != dir {
		t.Errorf("a directory: %v", got)
	}
}

func TestAppend(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sallyport", "rules", "default.rules")
	add := func(line, want string) {
		t.Helper()
		if err := Append(file, line); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("after %q: %q, %v; want %q", line, got, err, want)
		}
	}
	add("one", "one\n")
	add("two", "one\ntwo\n")
	add("one", "one\ntwo\n")
	add("on", "one\ntwo\non\n")
	write(t, file, "# no line end")
	add("one", "# no line end\none\n")
	write(t, file, "one\r\nx")
	add("one", "one\r\nx")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for _, line := range []string{"", " ", "a\nb", "a\r", "a\x00"} {
		if err := Append(file, line); err == nil {
			t.Errorf("%q was added", line)
		}
	}
}

// TestAppendRefused: a link, a pipe and another user's file stay as they are.
func TestAppendRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/other", "x\n")
	write(t, dir+"/full.rules", "")
	if err := errors.Join(os.Symlink("other", dir+"/link.rules"), os.Symlink("none", dir+"/gone.rules"),
		unix.Mkfifo(dir+"/pipe.rules", 0o600),
		os.Mkdir(dir+"/dir.rules", 0o700), os.Truncate(dir+"/full.rules", rules.MaxFile-3)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"link.rules": "it is a symbolic link", "gone.rules": "it is a symbolic link", "pipe.rules": "it is not a regular file",
		"dir.rules": "is a directory", "full.rules": "it has more than 4 MiB", "none/none/none/a.rules": "no such file or directory",
	} {
		err := Append(filepath.Join(dir, name), "rule")
		var at *fs.PathError
		if !errors.As(err, &at) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	if text, err := os.ReadFile(dir + "/other"); string(text) != "x\n" || err != nil {
		t.Errorf("the target of a link: %q, %v", text, err)
	}
	if _, err := os.Lstat(dir + "/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the target of a link was made")
	}
}

// TestAppendForeign needs root, to give a file away.
func TestAppendForeign(t *testing.T) {
	testenv.NeedRoot(t)
	dir := t.TempDir()
	write(t, dir+"/rules/a.rules", "x\n")
	for _, name := range []string{"/rules/a.rules", "/rules"} {
		if err := os.Chown(dir+name, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		if err := Append(dir+"/rules/a.rules", "rule"); err == nil ||
			!strings.Contains(err.Error(), "belongs to another user") {
			t.Errorf("%s: %v", name, err)
		}
		if found, err := Remove(dir+"/rules/a.rules", "x"); found || err == nil ||
			!strings.Contains(err.Error(), "belongs to another user") {
			t.Errorf("%s: %v, %v", name, found, err)
		}
		if err := os.Chown(dir+name, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAppendTogether: no line is lost or doubled when several append, also while an editor
// replaces the file.
func TestAppendTogether(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules", "a.rules")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 20 {
				if err := errors.Join(Append(file, fmt.Sprintf("line %d", j)),
					Append(file, fmt.Sprintf("line %d of %d", j, i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	text, err := os.ReadFile(file)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	slices.Sort(lines)
	if want := 20 + 8*20; err != nil || len(lines) != want || len(slices.Compact(lines)) != want {
		t.Errorf("%d lines, %v, want %d", len(lines), err, want)
	}
}

// TestRemove: exactly that line goes, and all others stay byte for byte.
func TestRemove(t *testing.T) {
	for _, test := range []struct {
		name, text, line, want string
		found                  bool
	}{
		{"one of three", "a\nb\nc\n", "b", "a\nc\n", true},
		{"twice", "b\na\nb\n", "b", "a\n", true},
		{"the only one", "b\n", "b", "", true},
		{"the last one without an end", "a\nb", "b", "a\n", true},
		{"other line ends", "a\r\nb\r\nc\r\n", "b", "a\r\nc\r\n", true},
		{"a part of a line", "# b\n b\nbb\n", "b", "# b\n b\nbb\n", false},
		{"an empty file", "", "b", "", false},
		{"bytes that are not UTF-8", "\xff\nb\n", "b", "\xff\n", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "a.rules")
			write(t, file, test.text)
			write(t, filepath.Dir(file)+"/.a.rules.new", "half a fi")
			if err := os.Chmod(file, 0o640); err != nil {
				t.Fatal(err)
			}
			if found, err := Remove(file, test.line); found != test.found || err != nil {
				t.Errorf("%v, %v", found, err)
			}
			got, err := os.ReadFile(file)
			info, err2 := os.Stat(file)
			if string(got) != test.want || errors.Join(err, err2) != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("%q, %v, %v; want %q", got, info.Mode(), errors.Join(err, err2), test.want)
			}
		})
	}
	if found, err := Remove(t.TempDir()+"/none/a.rules", "b"); found || err != nil {
		t.Errorf("no file: %v, %v", found, err)
	}
}

// TestRemoveRefused: what a name leads to elsewhere stays as it is.
func TestRemoveRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/other", "b\n")
	if err := errors.Join(os.Symlink("other", dir+"/link.rules"),
		unix.Mkfifo(dir+"/pipe.rules", 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"link.rules": "it is a symbolic link",
		"pipe.rules": "it is not a regular file"} {
		var at *fs.PathError
		if found, err := Remove(filepath.Join(dir, name), "b"); found || !errors.As(err, &at) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %s", name, found, err, want)
		}
	}
	if text, err := os.ReadFile(dir + "/other"); string(text) != "b\n" || err != nil {
		t.Errorf("the target of a link: %q, %v", text, err)
	}
}

// TestRemoveTogether: what is appended meanwhile is not lost, and a line is found once.
func TestRemoveTogether(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules", "a.rules")
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 20 {
				gone, stays := fmt.Sprintf("gone %d of %d", j, i), fmt.Sprintf("stays %d of %d", j, i)
				if err := errors.Join(Append(file, gone), Append(file, stays)); err != nil {
					t.Error(err)
				}
				if found, err := Remove(file, gone); !found || err != nil {
					t.Errorf("%s: %v, %v", gone, found, err)
				}
			}
		})
	}
	all.Wait()
	text, err := os.ReadFile(file)
	if n := strings.Count(string(text), "stays"); err != nil || n != 4*20 ||
		strings.Contains(string(text), "gone") {
		t.Errorf("%d lines stay, %v:\n%s", n, err, text)
	}
}

// TestAppendReplaced: a file that lost its name while Append waited for the lock is not the
// one that gets the line.
func TestAppendReplaced(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.rules")
	write(t, name, "old\n")
	dir, err := open(unix.AT_FDCWD, filepath.Dir(name), unix.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for _, want := range []bool{false, true} {
		f, err := open(int(dir.Fd()), "a.rules", unix.O_RDWR)
		if err != nil {
			t.Fatal(err)
		}
		if want {
			write(t, name+".new", "new\n")
			if err := os.Rename(name+".new", name); err != nil {
				t.Fatal(err)
			}
		}
		if replaced, err := lock(dir, f, "a.rules"); replaced != want || err != nil {
			t.Errorf("%v, %v, want %v", replaced, err, want)
		}
		other, err := open(int(dir.Fd()), "a.rules", unix.O_RDWR)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB); !want &&
			!errors.Is(err, unix.EWOULDBLOCK) {
			t.Errorf("the file is not locked: %v", err)
		}
		other.Close()
		f.Close()
	}
}

// TestLockedByOthers: a process that can read a rule file can lock it, and its directory; no change waits.
func TestLockedByOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules", "a.rules")
	if err := Append(file, "a"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, filepath.Dir(file)} {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
			t.Fatal(err)
		}
	}
	if err := Append(file, "b"); err != nil {
		t.Error(err)
	}
	if found, err := Remove(file, "a"); !found || err != nil {
		t.Errorf("%v, %v", found, err)
	}
	if text, err := os.ReadFile(file); string(text) != "b\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
