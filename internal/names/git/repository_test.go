// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestOpen opens what stands in a directory named work, with a directory named real
// beside it. In texts and results, TOP is the directory of both.
func TestOpen(t *testing.T) {
	testenv.RunAsOrdinary(t)
	tests := []struct {
		name  string
		files map[string]string // "-> x" is a symbolic link to x
		open  string            // "work" if empty
		want  *Repository
		err   string // part of the LinkError
	}{
		{name: "nothing", files: map[string]string{"work/x": ""}},
		{name: "no directory", open: "missing"},
		{name: "a file", files: map[string]string{"work": ""}},
		{name: "directory", files: map[string]string{"work/.git/HEAD": ""},
			want: &Repository{Work: "TOP/work", Link: "TOP/work/.git", Dir: "TOP/work/.git", Common: "TOP/work/.git"}},
		{name: "pointer", files: map[string]string{"work/.git": "gitdir: TOP/real\n", "real/HEAD": ""},
			want: &Repository{Work: "TOP/work", Link: "TOP/work/.git", Dir: "TOP/real", Common: "TOP/real", Pointer: true}},
		{name: "relative pointer", files: map[string]string{"work/.git": "gitdir: ../real/./x/..", "real/x/HEAD": ""},
			want: &Repository{Work: "TOP/work", Link: "TOP/work/.git", Dir: "TOP/real", Common: "TOP/real", Pointer: true}},
		{name: "pointer with CR LF", files: map[string]string{"work/.git": "gitdir: ../real\r\n\r\n", "real/HEAD": ""},
			want: &Repository{Work: "TOP/work", Link: "TOP/work/.git", Dir: "TOP/real", Common: "TOP/real", Pointer: true}},
		{name: "spaces are part of the name", files: map[string]string{"work/.git": "gitdir: ../real \n", "real/HEAD": "", "real /HEAD": ""},
			want: &Repository{Work: "TOP/work", Link: "TOP/work/.git", Dir: "TOP/real ", Common: "TOP/real ", Pointer: true}},
		{name: "line ends inside too", files: map[string]string{"work/.git": "gitdir: ../a\nb\n", "a\nb/HEAD": "", "a/HEAD": ""},
			want: &Repository{Work: "TOP/work", Link: "TOP/work/.git", Dir: "TOP/a\nb", Common: "TOP/a\nb", Pointer: true}},
		{name: "pointer to nothing", files: map[string]string{"work/.git": "gitdir: ../gone/deep/../there\n"},
			want: &Repository{Work: "TOP/work", Link: "TOP/work/.git", Dir: "TOP/gone/there", Common: "TOP/gone/there", Pointer: true, DirMissing: true, CommonMissing: true}},
		{name: "pointer through a link", files: map[string]string{"work/.git": "gitdir: ../way/inner/../real\n", "way": "-> other", "other/inner/x": "", "other/real/HEAD": ""},
			want: &Repository{Work: "TOP/work", Link: "TOP/work/.git", Dir: "TOP/other/real", Common: "TOP/other/real", Pointer: true}},
		{name: "commondir", files: map[string]string{"work/.git/commondir": "../../real\r\n", "real/HEAD": ""},
			want: &Repository{Work: "TOP/work", Link: "TOP/work/.git", Dir: "TOP/work/.git", Common: "TOP/real"}},
		{name: "absolute commondir, missing", files: map[string]string{"work/.git/commondir": "TOP/gone\n"},
			want: &Repository{Work: "TOP/work", Link: "TOP/work/.git", Dir: "TOP/work/.git", Common: "TOP/gone", CommonMissing: true}},
		{name: "through a link to the work tree", open: "way", files: map[string]string{"work/.git/HEAD": "", "way": "-> TOP/work"},
			want: &Repository{Work: "TOP/work", Link: "TOP/work/.git", Dir: "TOP/work/.git", Common: "TOP/work/.git"}},
		{name: "bare", files: map[string]string{"work/HEAD": "", "work/objects/": "", "work/refs/": ""},
			want: &Repository{Work: "TOP/work", Dir: "TOP/work", Common: "TOP/work", Bare: true}},
		{name: "bare by commondir", files: map[string]string{"work/HEAD": "", "work/commondir": "../real", "real/x": ""},
			want: &Repository{Work: "TOP/work", Dir: "TOP/work", Common: "TOP/real", Bare: true}},
		{name: "HEAD alone", files: map[string]string{"work/HEAD": "", "work/objects/": ""}},
		{name: "empty pointer", files: map[string]string{"work/.git": ""}, err: "does not begin"},
		{name: "pointer without a name", files: map[string]string{"work/.git": "gitdir: \n"}, err: "names nothing"},
		{name: "pointer without its blank", files: map[string]string{"work/.git": "gitdir:../real\n"}, err: "does not begin"},
		{name: "pointer with NUL", files: map[string]string{"work/.git": "gitdir: ../real\x00x"}, err: "NUL"},
		{name: "pointer to itself", files: map[string]string{"work/.git": "gitdir: .git"}, err: "not a directory"},
		{name: "chain", files: map[string]string{"work/.git": "gitdir: ../next\n", "next": "gitdir: real\n", "real/HEAD": ""}, err: "not a directory"},
		{name: "pointer in a circle", files: map[string]string{"work/.git": "gitdir: ../way/x\n", "way": "-> way"}, err: "circle"},
		{name: "huge pointer", files: map[string]string{"work/.git": "gitdir: " + strings.Repeat("x", pointerLimit)}, err: "too big"},
		{name: "empty commondir", files: map[string]string{"work/.git/commondir": "\n"}, err: "names nothing"},
		{name: "commondir is a directory", files: map[string]string{"work/.git/commondir/": ""}, err: "not a regular file"},
		{name: "commondir is a file's name", files: map[string]string{"work/.git/commondir": "HEAD", "work/.git/HEAD": ""}, err: "not a directory"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := tempDir(t)
			inRoom := strings.NewReplacer("TOP", dir)
			furnish(t, dir, test.files, inRoom)
			if test.open == "" {
				test.open = "work"
			}
			got, err := Open(dir + "/" + test.open)
			var refused *LinkError
			if errors.As(err, &refused) != (test.err != "") || test.err != "" && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("error %v, want one with %q", err, test.err)
			}
			if test.want != nil {
				for _, path := range []*string{&test.want.Work, &test.want.Link, &test.want.Dir, &test.want.Common} {
					*path = inRoom.Replace(*path)
				}
			}
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreUnexported(Repository{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// furnish makes the files of a test.
func furnish(t *testing.T, dir string, files map[string]string, inRoom *strings.Replacer) {
	t.Helper()
	for name, text := range files {
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			link(t, inRoom.Replace(target), dir+"/"+name)
			continue
		}
		put(t, dir+"/"+name, inRoom.Replace(text))
	}
}

func TestOpenLinks(t *testing.T) {
	for _, test := range []struct {
		name, link, dir string
		missing, fails  bool
	}{
		{name: "to a directory", link: "../real", dir: "/real"},
		{name: "to a pointer", link: "../file", dir: "/work/inner"},
		{name: "dangling", link: "../gone", dir: "/gone", missing: true},
		{name: "in a circle", link: ".git", fails: true},
		{name: "to a named pipe", link: "../pipe", fails: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := tempDir(t)
			put(t, dir+"/real/HEAD", "")
			put(t, dir+"/work/inner/HEAD", "")
			put(t, dir+"/file", "gitdir: inner\n")
			if err := syscall.Mkfifo(dir+"/pipe", 0o600); err != nil {
				t.Fatal(err)
			}
			link(t, test.link, dir+"/work/.git")
			got, err := Open(dir + "/work")
			if test.fails {
				if got != nil || err == nil {
					t.Errorf("%+v, %v", got, err)
				}
				return
			}
			if err != nil || !got.Pointer || got.Dir != dir+test.dir || got.Common != got.Dir ||
				got.DirMissing != test.missing {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestOpenDevices(t *testing.T) {
	dir := tempDir(t)
	if err := syscall.Mkfifo(dir+"/.git", 0o600); err != nil {
		t.Fatal(err)
	}
	var refused *LinkError
	if _, err := Open(dir); !errors.As(err, &refused) {
		t.Errorf("a named pipe: %v", err)
	}
	other := tempDir(t)
	put(t, other+"/.git/", "")
	if err := syscall.Mkfifo(other+"/.git/commondir", 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(other); !errors.As(err, &refused) {
		t.Errorf("commondir is a named pipe: %v", err)
	}
}

// TestOpenUnreadable has something to say for an ordinary user alone; root reads
// everything.
func TestOpenUnreadable(t *testing.T) {
	testenv.RunAsOrdinary(t)
	dir := tempDir(t)
	put(t, dir+"/closed/work/.git/HEAD", "")
	put(t, dir+"/file/.git", "gitdir: ../closed/work/.git")
	put(t, dir+"/secret/.git", "gitdir: ../closed/work/.git")
	for _, name := range []string{"/closed", "/secret/.git"} {
		if err := os.Chmod(dir+name, 0); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		if err := os.Chmod(dir+"/closed", 0o700); err != nil {
			t.Error(err)
		}
	}()
	for _, name := range []string{"closed/work", "file", "secret"} {
		r, err := Open(filepath.Join(dir, name))
		var refused *LinkError
		if os.Geteuid() == 0 {
			if err != nil || r == nil {
				t.Errorf("%s for root: %v, %v", name, r, err)
			}
		} else if !errors.As(err, &refused) {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
}

// FuzzPointer looks for texts of pointer files that confuse the reader.
func FuzzPointer(f *testing.F) {
	for _, text := range []string{"gitdir: x\n", "gitdir: \r\n", "gitdir:", "../..\n", "a\x00b", "gitdir: /a/../b"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, prefix := range []string{"gitdir: ", ""} {
			target, why := parsePointer(text, prefix)
			if (target == "" || strings.ContainsRune(target, 0)) && why == "" {
				t.Errorf("%q names %q", text, target)
			}
			if why == "" && !strings.Contains(string(text), target) {
				t.Errorf("%q does not contain %q", text, target)
			}
		}
	})
}
