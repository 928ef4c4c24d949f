// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package git

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// withGitlinks makes a repository with many files and the gitlinks named.
func withGitlinks(t testing.TB, dir, format string, links ...string) {
	t.Helper()
	git(t, dir, "init", "-q", "--object-format="+format)
	for i := range 40 {
		put(t, fmt.Sprintf("%s/dir%d/%s", dir, i%7, strings.Repeat("n", i)+"file"), "")
	}
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "first")
	head := strings.TrimSpace(git(t, dir, "rev-parse", "HEAD"))
	for _, link := range links {
		git(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+head+","+link)
	}
}

func TestGitlinksOfGit(t *testing.T) {
	long := strings.Repeat("long/", 900) + "end" // longer than the length in an entry can say
	links := []string{"a", "dir3/sub", "dir3/sub2", "with\nline end", "zzz"}
	tests := []struct {
		name    string
		format  string
		prepare [][]string
		links   []string
		hash    int
	}{
		{name: "version 2", format: "sha1", links: links},
		{name: "version 3", format: "sha1", links: links, prepare: [][]string{{"add", "-N", "new"}}},
		{name: "version 4", format: "sha1", links: links, prepare: [][]string{{"update-index", "--index-version", "4"}}},
		{name: "SHA-256", format: "sha256", links: links, hash: 32},
		{name: "SHA-256, version 4", format: "sha256", links: links, hash: 32, prepare: [][]string{{"update-index", "--index-version", "4"}}},
		{name: "split", format: "sha1", links: links, prepare: [][]string{{"update-index", "--split-index"}, {"add", "new"}}},
		{name: "untracked cache", format: "sha1", links: links, prepare: [][]string{{"update-index", "--force-untracked-cache"}, {"status"}}},
		{name: "long name", format: "sha1", links: []string{long, "x"}},
		{name: "long name, version 4", format: "sha1", links: []string{long, "x"}, prepare: [][]string{{"update-index", "--index-version", "4"}}},
		{name: "none", format: "sha1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := tempDir(t)
			withGitlinks(t, dir, test.format, test.links...)
			put(t, dir+"/new", "")
			for _, args := range test.prepare {
				git(t, dir, args...)
			}
			got, err := readGitlinks(dir+"/.git/index", max(test.hash, sha1Size))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.links, got, cmpopts.EquateEmpty(),
				cmpopts.SortSlices(strings.Compare)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// entryBytes returns an entry of an index of version 2.
func entryBytes(mode uint32, name string) []byte {
	entry := append([]byte(nil), make([]byte, indexObjectAt+sha1Size)...)
	binary.BigEndian.PutUint32(entry[indexModeAt:], mode)
	entry = binary.BigEndian.AppendUint16(entry, uint16(min(len(name), flagName)))
	entry = append(entry, name...)
	return append(entry, make([]byte, indexAlign-len(entry)%indexAlign)...)
}

// indexBytes returns an index with what comes behind its header.
func indexBytes(version, count uint32, parts ...[]byte) []byte {
	text := binary.BigEndian.AppendUint32([]byte("DIRC"), version)
	text = binary.BigEndian.AppendUint32(text, count)
	return append(append(text, slices.Concat(parts...)...), make([]byte, sha1Size)...)
}

func TestGitlinksBroken(t *testing.T) {
	good := entryBytes(0o160000, "sub")
	tests := []struct {
		name string
		text []byte
		want string // part of the error
	}{
		{name: "empty", want: "not an index"},
		{name: "other mark", text: append([]byte("DIRK"), indexBytes(2, 0)[4:]...), want: "not an index"},
		{name: "version 1", text: indexBytes(1, 0), want: "version 1"},
		{name: "version 5", text: indexBytes(5, 0), want: "version 5"},
		{name: "too few entries", text: indexBytes(2, 2, good), want: "within an entry"},
		{name: "many entries announced", text: indexBytes(2, 1<<31, good), want: "within an entry"},
		{name: "name without end", text: indexBytes(2, 1, good[:indexObjectAt+sha1Size+2], []byte("subsub")), want: "within an entry"},
		{name: "half an extension", text: indexBytes(2, 1, good, []byte("TREE\x00\x00\x00\x09x")), want: "within an extension"},
		{name: "crumbs", text: indexBytes(2, 1, good, []byte("TREE")), want: "within an extension"},
		{name: "link without a name", text: indexBytes(2, 1, good, []byte("link\x00\x00\x00\x01x")), want: "no shared index"},
		{name: "change of a shared entry", text: indexBytes(2, 1, entryBytes(0o160000, "")), want: "cannot be followed"},
		{name: "version 4 drops too much", text: indexBytes(4, 1, good[:indexObjectAt+sha1Size+2], []byte("\x05sub\x00")), want: "within an entry"},
		{name: "version 4 without a number", text: indexBytes(4, 1, good[:indexObjectAt+sha1Size+2], []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")), want: "within an entry"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := tempDir(t) + "/index"
			put(t, path, string(test.text))
			names, err := readGitlinks(path, sha1Size)
			var broken *IndexError
			if !errors.As(err, &broken) || !strings.Contains(err.Error(), test.want) || broken.Path != path {
				t.Errorf("names %q, error %v, want %q", names, err, test.want)
			}
		})
	}
	t.Run("NUL ends a name", func(t *testing.T) {
		names, _, why := parseIndex(indexBytes(2, 1, entryBytes(0o160000, "sub\x00x")), sha1Size)
		if why != "" || !slices.Equal(names, []string{"sub"}) {
			t.Errorf("names %q, error %q", names, why)
		}
	})
	t.Run("missing", func(t *testing.T) {
		if _, err := readGitlinks(tempDir(t)+"/index", sha1Size); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("error %v", err)
		}
	})
}

func FuzzGitlinks(f *testing.F) {
	f.Add(indexBytes(2, 2, entryBytes(0o160000, "sub"), entryBytes(0o100644, "x")), 20)
	f.Add(indexBytes(4, 1, entryBytes(0o160000, "")[:62], []byte("\x00sub\x00")), 20)
	f.Add(indexBytes(3, 1, entryBytes(0o160000, strings.Repeat("n", 5000)),
		[]byte("link\x00\x00\x00\x14aaaaaaaaaaaaaaaaaaaa")), 20)
	f.Fuzz(func(t *testing.T, text []byte, hash int) {
		if hash != sha256Size {
			hash = sha1Size
		}
		names, shared, why := parseIndex(text, hash)
		size := 0
		for _, name := range names {
			size += len(name)
			if name == "" || strings.ContainsRune(name, 0) {
				t.Errorf("name %q", name)
			}
		}
		if why == "" && shared != "" && len(shared) != 2*hash {
			t.Errorf("shared index %q", shared)
		}
		if size > len(text)*len(text) {
			t.Errorf("%d bytes of names out of %d", size, len(text))
		}
	})
}

func BenchmarkGitlinks(b *testing.B) {
	var parts [][]byte
	for i := range 100_000 {
		parts = append(parts, entryBytes(0o100644, fmt.Sprintf("some/directory%d/with/a/file%d.go", i/50, i)))
	}
	path := tempDir(b) + "/index"
	put(b, path, string(indexBytes(2, 100_000, parts...)))
	for b.Loop() {
		if _, err := readGitlinks(path, sha1Size); err != nil {
			b.Fatal(err)
		}
	}
}
