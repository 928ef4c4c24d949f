// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestRename renames each kind, and replaces only when asked.
func TestRename(t *testing.T) {
	for _, test := range []struct {
		from, to string
		replace  bool
		noFollow bool
		want     any
	}{
		{"file", "new", false, false, nil},
		{"dir", "new", false, false, nil},
		{"to-file", "new", false, false, nil},
		{"pipe", "new", false, false, nil},
		{"file", "to-dir/new", false, false, nil},
		{"file", "to-dir/new", false, true, syscall.ENOTDIR},
		{"to-dir/inner", "new", false, true, syscall.ENOTDIR},
		{"to-file", "new", false, true, nil},
		{"file", "dir/inner", false, false, syscall.EEXIST},
		{"file", "dangling", false, false, syscall.EEXIST},
		{"file", "dir/inner", true, false, nil},
		{"file", "dir", true, false, syscall.EEXIST},
		{"dir", "dir/sub/new", false, false, syscall.EINVAL},
		{"nothing", "new", true, false, syscall.ENOENT},
		{"file", "nothing/new", false, false, syscall.ENOENT},
	} {
		t.Run(test.from+" to "+test.to, func(t *testing.T) {
			top := populated(t)
			before, _ := os.Lstat(top + "/" + test.from)
			err := Rename(Target{top + "/" + test.from, test.noFollow},
				Target{top + "/" + test.to, test.noFollow}, test.replace)
			if reason(err) != test.want {
				t.Fatalf("%v, want %v", err, test.want)
			}
			after, gone := os.Lstat(top + "/" + test.to)
			if err == nil && (gone != nil || !os.SameFile(before, after)) {
				t.Errorf("%v, %v", after, gone)
			}
		})
	}
	var invalid *InvalidError
	if err := Rename(Target{Path: "/"}, Target{Path: "/x"}, true); !errors.As(err, &invalid) {
		t.Error(err)
	}
}

// TestChmod sets permissions of files and directories, and nothing else.
func TestChmod(t *testing.T) {
	for _, test := range []struct {
		name     string
		mode     uint64
		noFollow bool
		changed  string // what has the mode then
		want     any
	}{
		{"file", 0o751, false, "file", nil},
		{"dir", 0o700, true, "dir", nil},
		{"to-file", 0o600, false, "file", nil},
		{"to-file", 0o600, true, "", syscall.ELOOP},
		{"to-dir/inner", 0o644, true, "", syscall.ENOTDIR},
		{"dangling", 0o600, false, "", syscall.ENOENT},
		{"file", 0o4755, false, "", "mode 04755 is not supported; use 0 to 0777"},
		{"file", 1 << 40, false, "", "mode 020000000000000 is not supported; use 0 to 0777"},
	} {
		t.Run(test.name, func(t *testing.T) {
			top := populated(t)
			err := Chmod(Target{top + "/" + test.name, test.noFollow}, test.mode)
			if reason(err) != test.want {
				t.Fatalf("%v, want %v", err, test.want)
			}
			if test.changed != "" {
				info, err := os.Stat(top + "/" + test.changed)
				check(t, err)
				if got := uint64(info.Mode().Perm()); got != test.mode {
					t.Errorf("mode %#o", got)
				}
			}
		})
	}
	top := populated(t)
	for _, name := range []string{"pipe", "to-pipe"} {
		if got, want := reason(Chmod(Target{Path: top + "/" + name}, 0o777)),
			notPlain(top+"/"+name).Error(); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestSymlink makes links, and replaces nothing.
func TestSymlink(t *testing.T) {
	top := populated(t)
	long := strings.Repeat("x", maxLink)
	bad := "the target of a link has 1 to 4095 bytes and no NUL"
	for _, test := range []struct {
		name, text string
		noFollow   bool
		want       any
	}{
		{"a", "../anywhere", false, nil},
		{"dir/b", long, true, nil},
		{"to-dir/c", "x", true, syscall.ENOTDIR},
		{"file", "x", false, syscall.EEXIST},
		{"dangling", "x", false, syscall.EEXIST},
		{"d", "", false, bad},
		{"e", long + "x", false, bad},
		{"f", "a\x00b", false, bad},
	} {
		err := Symlink(test.text, Target{top + "/" + test.name, test.noFollow})
		if reason(err) != test.want {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
		if got, _ := os.Readlink(top + "/" + test.name); err == nil && got != test.text {
			t.Errorf("%s: %.50q", test.name, got)
		}
	}
}

// TestAppend writes at the end of regular files only.
func TestAppend(t *testing.T) {
	top := populated(t)
	for _, test := range []struct {
		name     string
		noFollow bool
		want     any
		content  string
	}{
		{"file", false, nil, "text+"},
		{"to-file", false, nil, "text++"},
		{"to-file", true, syscall.ELOOP, "text++"},
		{"new", true, nil, "+"},
		{"new", false, nil, "++"},
		{"nothing/new", false, syscall.ENOENT, ""},
		{"dir", false, syscall.EISDIR, ""},
		{"pipe", false, notPlain(top + "/pipe").Error(), ""},
		{"to-pipe", false, notPlain(top + "/to-pipe").Error(), ""},
	} {
		err := Append(Target{top + "/" + test.name, test.noFollow}, []byte("+"))
		if reason(err) != test.want {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
		if test.content != "" {
			text, err := os.ReadFile(top + "/" + test.name)
			if string(text) != test.content {
				t.Errorf("%s: %q, %v", test.name, text, err)
			}
		}
	}
}
