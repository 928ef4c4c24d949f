// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"slices"
	"strings"
	"testing"
)

// TestStarts: where the command of a launcher begins, and what it sets for that.
func TestStarts(t *testing.T) {
	for words, want := range map[string]struct {
		starts []int
		sets   string
	}{
		"env x": {[]int{1}, ""}, "env -u A B=1 x": {[]int{4}, "B=1"}, "env -- A=1 x": {[]int{3}, "A=1"}, "env": {nil, ""},
		"timeout -k 5 10 x": {[]int{4}, ""}, "timeout --sig 9 10 x": {[]int{4}, ""}, "timeout --signal=9 10 x": {[]int{3}, ""},
		"nice -n 5 x": {[]int{3}, ""}, "nice -n5 x": {[]int{2}, ""}, "strace -f x y": {[]int{2, 3}, ""}, "chroot d": {nil, ""},
		"nice " + Rest: {[]int{1}, ""},
	} {
		args := strings.Fields(words)
		l, ok := Launching(args[0])
		starts, sets, more := l.Starts(args)
		if !ok || more || !slices.Equal(starts, want.starts) || strings.Join(sets, " ") != want.sets {
			t.Errorf("%s: %v, %q, %v; want %+v", words, starts, sets, more, want)
		}
	}
	many := append([]string{"git", Rest}, strings.Fields(strings.Repeat("a ", 2*maxStarts))...)
	if starts, _, more := Git.Starts(many); len(starts) != maxStarts || !more {
		t.Errorf("%d starts, %v; want %d and more", len(starts), more, maxStarts)
	}
	if Open(many) == 0 {
		t.Error("a command of git that is not known may run its words")
	}
}

// TestValues: the values of options, however they are written.
func TestValues(t *testing.T) {
	for words, want := range map[string]string{
		"rsync -e x a b": "x", "rsync -ex a": "x", "rsync -ave x a": "x", "rsync --rsh=x a": "x", "rsync --rs x a": "x", "rsync -- -e x": "", "rsync -a b": "",
		"go -exec x": "x", "go -exec=x": "x",
	} {
		args := strings.Fields(words)
		var got []string
		for _, o := range Options(args[0]) {
			for _, v := range o.Values(args) {
				got = append(got, v.Text)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", words, got, want)
		}
	}
}

// TestProjectFiles: what programs read without being told.
func TestProjectFiles(t *testing.T) {
	for words, want := range map[string]struct{ named, found string }{
		"make all": {"", "GNUmakefile makefile Makefile"}, "make -C d": {"", "d/GNUmakefile d/makefile d/Makefile"}, "make -f x": {"x", ""}, "make -Cd -fx": {"d/x", ""},
		"npm test": {"", "package.json"}, "npm list": {"", ""}, "ls": {"", ""},
	} {
		args := strings.Fields(words)
		named, found := ProjectFiles(args[0], args)
		if strings.Join(named, " ") != want.named || strings.Join(found, " ") != want.found {
			t.Errorf("%s: %q, %q; want %+v", words, named, found, want)
		}
	}
}
