// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sample is a record with all that one can have.
func sample(file string) *Base {
	return &Base{file: file, dirty: true, roots: map[rootKey]map[string]Seen{
		{"/w", ""}: {
			".": {Known: true, At: 5,
				Facts: Facts{Mode: typeDir | 0o755, UID: 1, GID: 2, Ino: 3, Nlink: 4}},
			"a": {Known: true, At: -5, Late: true,
				Facts: Facts{Mode: typeFile, Size: 7, Mtime: -8, Ctime: 9}},
			"a\n/\xff": {Known: true, At: 1},
			"a/b": {Known: true, Hides: true, At: 1,
				Facts: Facts{Mode: typeDir | 0o700, Ino: 1<<64 - 1}},
			"long/name": {Known: true},
		},
		{"/w", "file"}: {"file": {Known: true, Facts: Facts{Mode: typeFile | 0o644, Size: 1<<63 - 1}}},
		{"/x", ""}:     {},
	}}
}

func TestBaseFile(t *testing.T) {
	t.Parallel()
	b := sample(filepath.Join(t.TempDir(), "base"))
	if err := b.save(); err != nil {
		t.Fatal(err)
	}
	again, err := OpenBase(b.file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.roots, again.roots, cmp.AllowUnexported(rootKey{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if none, err := OpenBase(b.file + "-none"); err != nil || len(none.roots) != 0 {
		t.Errorf("a missing file is %v, %v", none, err)
	}
}

// TestBaseDamaged: no prefix of a record, and none with another byte, is taken for one.
func TestBaseDamaged(t *testing.T) {
	t.Parallel()
	text := sample("").encode()
	for i := range text {
		if _, why := parseBase(text[:i]); why == "" {
			t.Errorf("the first %d bytes are a record", i)
		}
		other := append([]byte(nil), text...)
		other[i] ^= 0x21
		if _, why := parseBase(other); why == "" {
			t.Errorf("a record in which byte %d is another one", i)
		}
	}
	name := filepath.Join(t.TempDir(), "base\n")
	if err := os.WriteFile(name, append(text, 0), 0o600); err != nil {
		t.Fatal(err)
	}
	var damaged *BaseError
	if _, err := OpenBase(name); !errors.As(err, &damaged) || strings.Contains(err.Error(), "\n") {
		t.Errorf("with a byte more: %v", err)
	}
}

func FuzzBase(f *testing.F) {
	f.Add(sample("").encode()[len(baseHeader):])
	f.Add([]byte{1, 2, '/', 'w', 0, 1, 0, 1, 'a', 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		b := &Base{}
		var why string
		if b.roots, why = parseBase(sum(append([]byte(baseHeader), data...))); why != "" {
			return
		}
		again, why := parseBase(b.encode())
		if diff := cmp.Diff(b.roots, again, cmp.AllowUnexported(rootKey{})); why != "" || diff != "" {
			t.Errorf("%s: %s", why, diff)
		}
		for key, paths := range b.roots {
			for path := range paths {
				b.Lookup(&Layer{Root: key.root, Name: key.name}, path+"/below")
			}
		}
	})
}

func TestLookup(t *testing.T) {
	t.Parallel()
	file, dir := Facts{Mode: typeFile}, Facts{Mode: typeDir}
	b := &Base{roots: map[rootKey]map[string]Seen{{"/w", ""}: {
		"none": {Known: true, At: 1}, "file": {Known: true, At: 2, Facts: file},
		"dir":  {Known: true, At: 3, Facts: dir},
		"gone": {Known: true, Hides: true, At: 4, Facts: dir}, "gone/old": {Known: true, At: 5, Facts: file},
	}}}
	for path, want := range map[string]Seen{
		"none": {Known: true, At: 1}, "none/x/y": {Known: true, At: 1}, "other": {}, ".": {}, "dir/x": {},
		"gone/x/y": {Known: true, Below: true, At: 4}, "gone/old": {Known: true, At: 5, Facts: file},
		"nonesuch": {},
		"file/x":   {Known: true, At: 2},
	} {
		if got := b.Lookup(&Layer{Root: "/w"}, path); got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
		if got := b.Lookup(&Layer{Root: "/w", Name: "file"}, path); got != (Seen{}) {
			t.Errorf("%s of another layer: %+v", path, got)
		}
		if got := (*Base)(nil).Lookup(&Layer{Root: "/w"}, path); got != (Seen{}) {
			t.Errorf("%s of no record: %+v", path, got)
		}
	}
}

func TestConflict(t *testing.T) {
	t.Parallel()
	file := Facts{Mode: typeFile | 0o644, Ino: 1, Nlink: 1, Size: 2, Mtime: 3, Ctime: 4}
	with := func(f Facts, change func(*Facts)) Facts {
		change(&f)
		return f
	}
	dir := Facts{Mode: typeDir | 0o755, Ino: 1, Mtime: 3, Ctime: 4}
	tests := []struct {
		name string
		seen Seen
		now  Facts
		want string
	}{
		{"no record", Seen{}, file, ""},
		{"equal", Seen{Known: true, Facts: file}, file, ""},
		{"none, still", Seen{Known: true}, Facts{}, ""},
		{"made", Seen{Known: true}, file, "kind"},
		{"deleted", Seen{Known: true, Facts: file}, Facts{}, "deleted"},
		{"another kind", Seen{Known: true, Facts: file}, dir, "kind"},
		{"size", Seen{Known: true, Facts: file}, with(file, func(f *Facts) { f.Size++ }), "content"},
		{"time", Seen{Known: true, Facts: file}, with(file, func(f *Facts) { f.Mtime++ }), "content"},
		{"replaced", Seen{Known: true, Facts: file}, with(file, func(f *Facts) { f.Ino++ }), "content"},
		{"times set back", Seen{Known: true, Facts: file}, with(file, func(f *Facts) { f.Ctime++ }),
			"content"},
		{"times set back, which do not count",
			Seen{Known: true, Facts: with(file, func(f *Facts) { f.Ctime = 0 })}, file, ""},
		{"another link", Seen{Known: true, Facts: file},
			with(file, func(f *Facts) { f.Ctime++; f.Nlink++ }), ""},
		{"mode", Seen{Known: true, Facts: file},
			with(file, func(f *Facts) { f.Ctime++; f.Mode |= 0o111 }), "mode"},
		{"owner", Seen{Known: true, Facts: file}, with(file, func(f *Facts) { f.UID++ }), "mode"},
		{"late", Seen{Known: true, Late: true, Facts: file}, file, "content"},
		{"other files in a directory", Seen{Known: true, Facts: dir},
			with(dir, func(f *Facts) { f.Mtime++; f.Ctime++ }), ""},
		{"mode of a directory", Seen{Known: true, Facts: dir},
			with(dir, func(f *Facts) { f.Mode |= 0o22 }), "mode"},
		{"older than the end of its directory", Seen{Known: true, Below: true, At: 5}, file, ""},
		{"newer than that", Seen{Known: true, Below: true, At: 4}, file, "content"},
	}
	for _, c := range tests {
		if got := c.seen.Conflict(&c.now); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestSelect(t *testing.T) {
	t.Parallel()
	var entries []Entry
	for i, path := range []string{".", "d", "d/n", "d/x", "dd", "gone"} {
		e := Entry{Way: path == "d"}
		e.Path, e.Root = path, "/w"
		if e.Layer = i; path == "gone" {
			e.Entries = 3
		}
		entries = append(entries, e)
	}
	for paths, want := range map[string]string{
		"": "[. d d/n d/x dd gone]", "/w": "[. d d/n d/x dd gone]", "/w/d": "[d d/n d/x]",
		"/w/d/x": "[d d/x]", "/w/dd /w/d/n": "[d d/n dd]",
		"/w/none":  "the stage has no change at /w/none; see sallyport changes",
		"/w/d/x/y": "the stage has no change at /w/d/x/y; see sallyport changes",
		"/w/gone/x": "/w/gone/x is in the directory /w/gone, which was deleted as a whole; " +
			"name that directory",
	} {
		chosen, err := Select(entries, strings.Fields(paths))
		got := []string{}
		for i := range chosen {
			got = append(got, chosen[i].Path)
		}
		if s := fmt.Sprint(got); err != nil && err.Error() != want || err == nil && s != want {
			t.Errorf("%q: %s, %v, want %s", paths, s, err, want)
		}
	}
}
