// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package credentials knows where tools keep secrets in a home directory: keys, tokens,
// passwords, and histories in which people have typed them.
//
// It looks at what exists and refuses to decide who may read it.
package credentials

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport/internal/plainfile"
)

const (
	// GrantPrefix begins the names of the grants for stores, such as "credentials:aws".
	GrantPrefix = "credentials:"
	// GrantAll is the grant for all stores.
	GrantAll = GrantPrefix + "all"
)

// A Store is a file or directory with secrets that exists.
type Store struct {
	Name string // of its kind, such as "aws"
	Path string // as it is written, links included
}

// Grant returns the name of the grant that opens the store.
func (s Store) Grant() string { return GrantPrefix + s.Name }

// Grants returns the names of all grants for stores, sorted.
func Grants() []string {
	names := []string{GrantAll}
	for i := range kinds {
		names = append(names, GrantPrefix+kinds[i].name)
	}
	slices.Sort(names)
	return names
}

// What says for people what a grant opens; empty for a name that is not one of [Grants].
func What(grant string) string {
	if grant == GrantAll {
		return "all stores of secrets in home directories"
	}
	for i := range kinds {
		if GrantPrefix+kinds[i].name == grant {
			return kinds[i].what
		}
	}
	return ""
}

// Find returns the stores that exist in home directories, for which no grant is in granted.
// A store that cannot be looked into counts as one.
func Find(homes, granted []string) []Store {
	if slices.Contains(granted, GrantAll) {
		return nil
	}
	var out []Store
	for _, home := range homes {
		d := newDirectories(home)
		for i := range kinds {
			k := &kinds[i]
			if slices.Contains(granted, GrantPrefix+k.name) {
				continue
			}
			for _, path := range d.stores(k) {
				out = append(out, Store{Name: k.name, Path: path})
			}
		}
	}
	return out
}

// directories knows the names in a home directory and in the directories of it that most stores
// would be in, because most stores are not there.
type directories struct {
	home  string
	names map[string]bool // in lower case; nil if there are too many, or they cannot be listed
	below [len(listedDirs)]map[string]bool
}

var listedDirs = [...]string{".config/", ".local/share/"}

func newDirectories(home string) *directories {
	d := &directories{home: home, names: listed(home)}
	for i, dir := range listedDirs {
		d.below[i] = listed(filepath.Join(home, dir))
	}
	return d
}

// listed returns the names in a directory as directories has them.
func listed(dir string) map[string]bool {
	info, err := os.Stat(dir)
	switch {
	case os.IsNotExist(err):
		return map[string]bool{} // nothing is in it
	case err != nil || !info.IsDir():
		return nil // a named pipe may have taken its place
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	const most = 512
	all, err := f.Readdirnames(most)
	if len(all) == most || err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	names := make(map[string]bool, len(all))
	for _, name := range all {
		names[strings.ToLower(name)] = true // a file system may take any letter case for the same
	}
	return names
}

// stores returns the paths of one kind.
func (d *directories) stores(k *kind) []string {
	var out []string
	for _, name := range k.paths {
		if d.exists(name) {
			out = append(out, filepath.Join(d.home, name))
		}
	}
	for _, f := range k.files {
		if path := filepath.Join(d.home, f.path); d.exists(f.path) && holds(path, f.words) {
			out = append(out, path)
		}
	}
	for _, dir := range k.keys {
		if !d.exists(dir) {
			continue
		}
		entries, err := os.ReadDir(filepath.Join(d.home, dir))
		if err != nil {
			out = append(out, filepath.Join(d.home, dir))
			continue
		}
		for _, e := range entries {
			if path := filepath.Join(d.home, dir, e.Name()); !e.IsDir() && !strings.HasSuffix(path, ".pub") && holds(path, privateKeys) {
				out = append(out, path)
			}
		}
	}
	return out
}

// privateKeys are in the first line of a file with a private key: in PEM, and of PuTTY.
var privateKeys = []string{"PRIVATE KEY", "PuTTY-User-Key-File"}

// exists reports whether a name in the home exists, a link that leads nowhere included.
func (d *directories) exists(name string) bool {
	for i, dir := range listedDirs {
		if rest, below := strings.CutPrefix(name, dir); below && !has(d.below[i], rest) {
			return false
		}
	}
	if !has(d.names, name) {
		return false
	}
	_, err := os.Lstat(filepath.Join(d.home, name))
	return err == nil
}

// has reports whether the first element of a path may be among the names of a directory.
func has(names map[string]bool, path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return names == nil || names[strings.ToLower(first)]
}

// holds reports whether the beginning of a regular file has one of the words, or whether that
// cannot be found out. It does not wait for the writer of a named pipe.
func holds(path string, words []string) bool {
	f, err := plainfile.Open(path)
	if err != nil {
		return !os.IsNotExist(err) && !errors.Is(err, plainfile.ErrNotPlain)
	}
	defer f.Close()
	const most = 64 << 10
	data, err := io.ReadAll(io.LimitReader(f, most))
	return err != nil || slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(data, []byte(w)) })
}
