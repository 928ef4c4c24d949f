// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// populated returns a directory with a file, a directory, links to both, a dangling link and a named
// pipe.
func populated(t *testing.T) string {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	check(t, errors.Join(os.WriteFile(top+"/file", []byte("text"), 0o640), os.MkdirAll(top+"/dir/sub", 0o755),
		os.WriteFile(top+"/dir/inner", []byte("inner"), 0o600), os.Symlink("file", top+"/to-file"),
		os.Symlink("dir", top+"/to-dir"),
		os.Symlink("nothing", top+"/dangling"), unix.Mkfifo(top+"/pipe", 0o600),
		os.Symlink("pipe", top+"/to-pipe")))
	return top
}

// reason returns the kind of an error: its reason, or the system's error.
func reason(err error) any {
	var invalid *InvalidError
	var errno syscall.Errno
	switch {
	case errors.As(err, &invalid):
		return invalid.Reason
	case errors.As(err, &errno):
		return errno
	}
	return err
}

// TestFollowing: each operation on each kind of path, with links and without.
func TestFollowing(t *testing.T) {
	const link, way = syscall.ELOOP, syscall.ENOTDIR // a link at the end, and one on the way
	for _, test := range []struct {
		path             string
		follows, refuses any // the error of a read; nil for none
	}{
		{"file", nil, nil},
		{"dir/inner", nil, nil},
		{"to-file", nil, link},
		{"to-dir/inner", nil, way},
		{"dangling", syscall.ENOENT, link},
		{"missing", syscall.ENOENT, syscall.ENOENT},
		{"to-dir/missing", syscall.ENOENT, way},
		{"missing/missing", syscall.ENOENT, syscall.ENOENT},
		{"file/below", syscall.ENOTDIR, syscall.ENOTDIR},
		{"dir", "not a file", "not a file"},
		{"to-dir", "not a file", link},
		{"pipe", "not a file", "not a file"},
		{"to-pipe", "not a file", link},
		{"/dev/null", "not a file", "not a file"},
	} {
		for _, noFollow := range []bool{false, true} {
			t.Run(fmt.Sprint(test.path, noFollow), func(t *testing.T) {
				path := test.path
				if path[0] != '/' {
					path = populated(t) + "/" + path
				}
				want := test.follows
				if noFollow {
					want = test.refuses
				}
				if want == "not a file" {
					want = "path `" + path + "` is not a file"
				}
				target := Target{Path: path, NoFollow: noFollow}
				if _, err := Read(target, 100); reason(err) != want {
					t.Errorf("read: %v, want %v", err, want)
				}
				var h Handles
				defer h.CloseAll()
				if err := h.Open("h", target, false); reason(err) != want {
					t.Errorf("open: %v, want %v", err, want)
				}
			})
		}
	}
}

// TestWrite: what is written where, by both ways of writing.
func TestWrite(t *testing.T) {
	for _, test := range []struct {
		path     string
		noFollow bool
		want     any    // the error
		at       string // has the text then
	}{
		{"file", false, nil, "file"},
		{"file", true, nil, "file"},
		{"new", false, nil, "new"},
		{"dir/new", true, nil, "dir/new"},
		{"to-file", false, nil, "file"},
		{"to-file", true, syscall.ELOOP, ""},
		{"to-dir/new", false, nil, "dir/new"},
		{"to-dir/new", true, syscall.ENOTDIR, ""},
		{"dangling", true, syscall.ELOOP, ""},
		{"dir", false, syscall.EISDIR, ""},
		{"missing/new", false, syscall.ENOENT, ""},
		{"missing/new", true, syscall.ENOENT, ""},
	} {
		for _, atomic := range []bool{false, true} {
			t.Run(fmt.Sprint(test.path, test.noFollow, atomic), func(t *testing.T) {
				top := populated(t)
				if err := Write(Target{Path: top + "/" + test.path, NoFollow: test.noFollow},
					[]byte("written"), atomic); reason(err) != test.want {
					t.Fatalf("%v, want %v", err, test.want)
				}
				if test.at != "" {
					text, err := os.ReadFile(top + "/" + test.at)
					if string(text) != "written" || err != nil {
						t.Errorf("%q, %v", text, err)
					}
				}
				if info, err := os.Stat(top + "/file"); err != nil || info.Mode().Perm() != 0o640 {
					t.Errorf("the mode is %v, %v", info.Mode(), err)
				}
				if info, err := os.Lstat(top + "/to-file"); err != nil || info.Mode()&fs.ModeSymlink == 0 {
					t.Errorf("the link became %v, %v", info.Mode(), err)
				}
				if left, err := filepath.Glob(top + "/.sallyport-*"); len(left) > 0 || err != nil {
					t.Errorf("%q is left, %v", left, err)
				}
			})
		}
	}
}

// TestWriteKinds: nothing but a regular file is written, and nothing waits.
func TestWriteKinds(t *testing.T) {
	top := populated(t)
	for _, path := range []string{top + "/pipe", top + "/to-pipe", "/dev/null"} {
		for _, atomic := range []bool{false, true} {
			if err := Write(Target{Path: path}, []byte("x"), atomic); err == nil ||
				!strings.Contains(err.Error(), "is not a file") {
				t.Errorf("%s, atomic %v: %v", path, atomic, err)
			}
		}
	}
	if err := Copy(t.Context(), top+"/file", top+"/pipe", false); err == nil {
		t.Error("a copy to a named pipe")
	}
}

// TestAtomic: who has the old file open, or another name of it, keeps the old content.
func TestAtomic(t *testing.T) {
	top := populated(t)
	check(t, os.Link(top+"/file", top+"/other"))
	check(t, Write(Target{Path: top + "/file"}, []byte("new"), true))
	for name, want := range map[string]string{"file": "new", "other": "text", "to-file": "new"} {
		if text, err := os.ReadFile(top + "/" + name); string(text) != want || err != nil {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

// TestDirectories makes directories.
func TestDirectories(t *testing.T) {
	for _, test := range []struct {
		path                string
		recursive, noFollow bool
		want                any
	}{
		{"a/b/c", true, false, nil},
		{"a/b/c", true, true, nil},
		{"a", false, true, nil},
		{"a/b", false, false, syscall.ENOENT},
		{"dir", true, false, nil},
		{"dir", true, true, nil},
		{"dir", false, false, syscall.EEXIST},
		{"file", true, false, syscall.EEXIST},
		{"file/b", true, false, syscall.ENOTDIR},
		{"to-dir", true, false, nil},
		{"to-dir", true, true, syscall.ENOTDIR},
		{"to-dir", false, true, syscall.EEXIST},
		{"file", true, true, syscall.ENOTDIR},
		{"to-dir/b", true, true, syscall.ENOTDIR},
		{"dangling/b", true, true, syscall.ENOTDIR},
	} {
		t.Run(fmt.Sprint(test.path, test.recursive, test.noFollow), func(t *testing.T) {
			top := populated(t)
			if err := CreateDirectory(Target{Path: top + "/" + test.path, NoFollow: test.noFollow},
				test.recursive); reason(err) != test.want {
				t.Fatalf("%v, want %v", err, test.want)
			}
			if info, err := os.Stat(top + "/" + test.path); test.want == nil &&
				(err != nil || !info.IsDir()) {
				t.Errorf("%v, %v", info, err)
			}
		})
	}
}

// TestRemove: a link is removed itself, and what it leads to stays.
func TestRemove(t *testing.T) {
	for _, test := range []struct {
		path                       string
		recursive, force, noFollow bool
		want                       any
	}{
		{"file", true, true, false, nil},
		{"file", false, false, true, nil},
		{"dir", true, true, false, nil},
		{"dir", false, true, false, syscall.ENOTEMPTY},
		{"dir/sub", false, false, true, nil},
		{"to-dir", true, true, false, nil},
		{"to-dir", false, true, true, errLink.Reason},
		{"to-dir/inner", false, true, true, syscall.ENOTDIR},
		{"pipe", true, true, false, nil},
		{"missing", true, true, false, nil},
		{"missing", true, false, false, syscall.ENOENT},
		{"file/below", true, true, false, syscall.ENOTDIR},
	} {
		t.Run(fmt.Sprint(test.path, test.recursive, test.force, test.noFollow), func(t *testing.T) {
			top := populated(t)
			err := Remove(Target{Path: top + "/" + test.path, NoFollow: test.noFollow},
				test.recursive, test.force)
			if reason(err) != test.want {
				t.Fatalf("%v, want %v", err, test.want)
			}
			if _, err := os.Lstat(top + "/" + test.path); test.want == nil &&
				!errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it is still there: %v", err)
			}
			if _, err := os.Stat(top + "/dir/inner"); err != nil && test.path != "dir" {
				t.Errorf("behind a link: %v", err)
			}
		})
	}
	if err := Remove(Target{Path: "/"}, true, true); err == nil ||
		!strings.Contains(err.Error(), "cannot be removed") {
		t.Fatalf("the root: %v", err)
	}
	if err := Remove(Target{Path: "/x", NoFollow: true}, true, true); err == nil {
		t.Error("recursive without following")
	}
}

// TestStat describes what exists.
func TestStat(t *testing.T) {
	top := populated(t)
	for _, test := range []struct {
		path     string
		noFollow bool
		want     Info
		err      any
	}{
		{"file", true, Info{IsFile: true, Size: 4}, nil},
		{"to-file", false, Info{IsFile: true, IsSymlink: true, Size: 4}, nil},
		{"to-file", true, Info{}, errLink.Reason},
		{"to-dir/inner", true, Info{}, syscall.ENOTDIR},
		{"to-dir", false, Info{IsDirectory: true, IsSymlink: true}, nil},
		{"dangling", false, Info{}, syscall.ENOENT},
		{"pipe", false, Info{}, nil},
	} {
		info, err := Stat(Target{Path: top + "/" + test.path, NoFollow: test.noFollow})
		if info.ModifiedMs = 0; info.IsDirectory {
			info.Size = 0
		}
		if info != test.want || reason(err) != test.err {
			t.Errorf("%s: %+v, %v", test.path, info, err)
		}
	}
	if info, err := Stat(Target{Path: "/", NoFollow: true}); err != nil || !info.IsDirectory {
		t.Errorf("the root: %+v, %v", info, err)
	}
}

// TestSwapped: a directory on the way that is a link in turn is passed as the directory or not at
// all.
func TestSwapped(t *testing.T) {
	top, outside := populated(t), t.TempDir()
	check(t, os.Symlink(outside, top+"/link"))
	testenv.Swap(t, top+"/dir", top+"/link")
	refused := 0
	for i := 0; (i < 2000 || refused == 0) && i < 100_000; i++ {
		in := Target{Path: fmt.Sprintf("%s/dir/f%d", top, i), NoFollow: true}
		deep := Target{Path: fmt.Sprintf("%s/dir/d%d/e", top, i), NoFollow: true}
		for _, err := range []error{Write(in, []byte("x"), i%2 == 0), CreateDirectory(deep, true)} {
			if err != nil {
				refused++
			}
		}
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("outside: %v, %v", left, err)
	}
	if refused == 0 {
		t.Error("the link was never in the way")
	}
}

// TestUnreadableDirectory: a directory that may be passed and not read is passed.
func TestUnreadableDirectory(t *testing.T) {
	testenv.RunAsOrdinary(t)
	top := populated(t)
	check(t, os.Chmod(top+"/dir", 0o311))
	defer os.Chmod(top+"/dir", 0o755) //nolint:errcheck // for the removal of the test's directory
	if text, err := Read(Target{Path: top + "/dir/inner", NoFollow: true}, 10); string(text) != "inner" {
		t.Errorf("%q, %v", text, err)
	}
	if os.Geteuid() == 0 {
		return // who reads every directory
	}
	w, err := Walk(t.Context(), top, WalkOptions{MaxDepth: 3, MaxDirectories: 10, MaxEntries: 10})
	if err != nil || len(w.Errors) != 1 || w.Errors[0].Path != top+"/dir" ||
		!errors.Is(w.Errors[0].Err, fs.ErrPermission) {
		t.Errorf("%+v, %v", w, err)
	}
}

// TestWalk: the bounds and the order of walks.
func TestWalk(t *testing.T) {
	top := populated(t)
	check(t, errors.Join(os.MkdirAll(top+"/.hidden", 0o755), os.WriteFile(top+"/.hidden/h", nil, 0o644),
		os.Symlink("..", top+"/dir/up")))
	for _, test := range []struct {
		name      string
		options   WalkOptions
		want      string
		truncated bool
		err       string
	}{
		{"all", WalkOptions{MaxDepth: 5, MaxDirectories: 10, MaxEntries: 100}, ".hidden dir file .hidden/h dir/inner dir/sub", false, ""},
		{"depth", WalkOptions{MaxDirectories: 10, MaxEntries: 100}, ".hidden dir file", false, ""},
		{"exactly enough", WalkOptions{MaxDepth: 5, MaxDirectories: 4, MaxEntries: 6}, ".hidden dir file .hidden/h dir/inner dir/sub", false, ""},
		{"entries", WalkOptions{MaxDepth: 5, MaxDirectories: 10, MaxEntries: 2}, ".hidden dir", true, ""},
		{"directories", WalkOptions{MaxDepth: 5, MaxDirectories: 2, MaxEntries: 100}, ".hidden dir file .hidden/h", true, ""},
		{"hidden", WalkOptions{MaxDepth: 5, MaxDirectories: 10, MaxEntries: 100, PruneHiddenDirectories: true}, ".hidden dir file dir/inner dir/sub", false, ""},
		{"links", WalkOptions{MaxDepth: 5, MaxDirectories: 10, MaxEntries: 100, FollowDirectorySymlinks: true}, ".hidden dir file to-dir .hidden/h dir/inner dir/sub dir/up", false, ""},
		{"zero", WalkOptions{MaxDepth: 5, MaxEntries: 1}, "", false, "greater than zero"},
		{"too deep", WalkOptions{MaxDepth: 65, MaxDirectories: 1, MaxEntries: 1}, "", false, "exceed maximums"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, err := Walk(t.Context(), top, test.options)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("%v", err)
				}
				return
			}
			check(t, err)
			var names []string
			for _, e := range w.Entries {
				names = append(names, strings.TrimPrefix(e.Path, top+"/"))
			}
			if got := strings.Join(names, " "); got != test.want || w.Truncated != test.truncated {
				t.Errorf("%q, truncated %v, want %q", got, w.Truncated, test.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Walk(ctx, top, WalkOptions{MaxEntries: 1, MaxDirectories: 1}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestCopy: what is copied, and what never is.
func TestCopy(t *testing.T) {
	for _, test := range []struct {
		name, from, to string
		recursive      bool
		want           any
	}{
		{"a file", "file", "copy", false, nil},
		{"over a file", "file", "dir/inner", false, nil},
		{"a file to itself", "file", "file", false, "fs/copy cannot copy a file to itself"},
		{"a file to itself by a link", "file", "to-file", false, "fs/copy cannot copy a file to itself"},
		{"a link", "to-file", "copy", false, nil},
		{"a directory", "dir", "copy", true, nil},
		{"a directory into itself", "dir", "dir/sub/x/y", true, "fs/copy cannot copy a directory to itself or one of its descendants"},
		{"a directory into itself by a link", "dir", "to-dir/x", true, "fs/copy cannot copy a directory to itself or one of its descendants"},
		{"to a name that begins like the directory", "dir", "dir2", true, nil},
		{"a named pipe", "pipe", "copy", false, "fs/copy only supports regular files, directories, and symlinks"},
	} {
		t.Run(test.name, func(t *testing.T) {
			top := populated(t)
			if err := Copy(t.Context(), top+"/"+test.from, top+"/"+test.to,
				test.recursive); reason(err) != test.want {
				t.Fatalf("%v, want %v", err, test.want)
			}
			if text, err := os.ReadFile(top + "/file"); string(text) != "text" || err != nil {
				t.Errorf("the source: %q, %v", text, err)
			}
			if test.want != nil {
				return
			}
			from, err := os.Lstat(top + "/" + test.from)
			check(t, err)
			if to, err := os.Lstat(top + "/" + test.to); err != nil || to.Mode() != from.Mode() {
				t.Errorf("%v, %v, want %v", to, err, from)
			}
		})
	}
}

// TestHandles: blocks and the bounds of handles.
func TestHandles(t *testing.T) {
	top := populated(t)
	var h Handles
	defer h.CloseAll()
	check(t, h.Open("r", Target{Path: top + "/file"}, false))
	check(t, h.Open("w", Target{Path: top + "/new"}, true))
	for _, test := range []struct {
		id          string
		offset, len uint64
		want        string
		end         bool
		err         any
	}{
		{"r", 0, 4, "text", false, nil},
		{"r", 0, 5, "text", true, nil},
		{"r", 2, 1, "x", false, nil},
		{"r", 9, 1, "", true, nil},
		{"r", 1 << 63, 1, "", true, nil},
		{"r", 0, 0, "", false, "file read block length must be between 1 and 1048576"},
		{"r", 0, MaxBlock + 1, "", false, "file read block length must be between 1 and 1048576"},
		{"w", 0, 1, "", false, syscall.EBADF},
	} {
		block, end, err := h.ReadBlock(test.id, test.offset, test.len)
		if err == nil != (test.err == nil) || reason(err) != test.err && test.err != nil || err == nil &&
			(string(block) != test.want || end != test.end) {
			t.Errorf("%+v: %q, %v, %v", test, block, end, err)
		}
	}
	for _, test := range []struct {
		id     string
		offset uint64
		block  string
		err    any
	}{
		{"w", 2, "x", nil},
		{"w", 1 << 63, "x", "file write block offset must be below 2^63"},
		{"w", 0, "", "file write block length must be between 1 and 1048576"},
		{"w", 0, strings.Repeat("x", MaxBlock+1), "file write block length must be between 1 and 1048576"},
		{"r", 0, "x", syscall.EBADF},
	} {
		if err := h.WriteBlock(test.id, test.offset, []byte(test.block)); reason(err) != test.err {
			t.Errorf("%.20v: %v", test, err)
		}
	}
	if text, err := os.ReadFile(top + "/new"); string(text) != "\x00\x00x" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	var unknown *HandleError
	if _, _, err := h.ReadBlock("none", 0, 1); !errors.As(err, &unknown) {
		t.Errorf("%v", err)
	}
	if err := h.Open("r", Target{Path: top + "/file"}, false); err == nil {
		t.Error("an ID was used twice")
	}
	if err := h.Open(strings.Repeat("x", 33), Target{Path: top + "/file"}, false); err == nil {
		t.Error("a long ID was taken")
	}
	check(t, errors.Join(h.Close("r"), h.Close("none")))
	if err := h.WriteBlock("r", 0, []byte("x")); !errors.As(err, &unknown) {
		t.Errorf("%v", err)
	}
}

// TestReadDirectory lists a directory.
func TestReadDirectory(t *testing.T) {
	top := populated(t)
	entries, err := ReadDirectory(top)
	want := []Entry{{"dir", true, false}, {"file", false, true}, {"pipe", false, false},
		{"to-dir", true, false}, {"to-file", false, true}, {"to-pipe", false, false}}
	if err != nil || !reflect.DeepEqual(entries, want) {
		t.Errorf("%v, %v", entries, err)
	}
	for name, want := range map[string]error{"file": syscall.ENOTDIR, "pipe": syscall.ENOTDIR,
		"none": syscall.ENOENT} {
		if _, err := ReadDirectory(top + "/" + name); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
