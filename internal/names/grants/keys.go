// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport/internal/command/environ"
	"github.com/sallyport-dev/sallyport/internal/safefile"
)

const (
	// keyDepth is how deep in a directory of keys files are looked into; directories below are stores.
	keyDepth = 4
	// mostKeys is how many names in one directory of keys, and in those in it, are looked at. A
	// directory that has more is a store as a whole.
	mostKeys = 2048
)

// keyMarks are in the first lines of a file with a private key: in PEM, of PuTTY, of age, of minisign.
var keyMarks = []string{"PRIVATE KEY", "PuTTY-User-Key-File", "AGE-SECRET-KEY-1",
	"minisign encrypted secret key", "untrusted comment: signify secret key"}

// keys returns the files with a private key in a directory, and what cannot be looked into. Links to
// directories are followed, unless they lead to the home or above.
func keys(dir, home string) []string {
	k := keySearch{left: mostKeys, home: home}
	k.search(dir, 1)
	if k.left < 0 {
		return append(k.found, dir)
	}
	return k.found
}

type keySearch struct {
	home  string
	found []string
	left  int
}

func (k *keySearch) search(dir string, depth int) {
	names, err := entries(dir, k.left+1)
	if err != nil || depth > keyDepth && len(names) > 0 {
		if !os.IsNotExist(err) {
			k.found = append(k.found, dir)
		}
		return
	}
	if k.left -= len(names); k.left < 0 {
		return
	}
	for _, e := range names {
		path := filepath.Join(dir, e.Name())
		kind := e.Type()
		if kind&os.ModeSymlink != 0 {
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				k.follow(path, depth)
				continue
			}
		}
		switch {
		case kind.IsDir() && e.Name() == ".git":
			k.found = append(k.found, path) // what was a key once is in its objects
		case kind.IsDir():
			k.search(path, depth+1)
		case strings.HasSuffix(path, ".pub"):
		case hasKey(path):
			k.found = append(k.found, path)
		}
		if k.left < 0 {
			return
		}
	}
}

// follow searches what a link to a directory leads to. A large one is a store as a whole.
func (k *keySearch) follow(link string, depth int) {
	real, err := filepath.EvalSymlinks(link)
	home, err2 := filepath.EvalSymlinks(k.home)
	if err != nil || err2 != nil || safefile.Within(home, real) || safefile.Within(filepath.Dir(link), real) {
		return // it is gone, or what it leads to is not there for keys
	}
	there := keySearch{left: mostKeys, home: k.home}
	there.search(real, depth+1)
	if there.left < 0 {
		there.found = []string{real}
	}
	k.found = append(k.found, there.found...)
}

// entries lists a directory, at most so many names. It does not wait for a named pipe.
func entries(dir string, most int) ([]os.DirEntry, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.ReadDir(most)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return list, err
}

// hasKey reports whether a file has a private key, or whether that cannot be found out.
func hasKey(path string) bool {
	text, err := begin(path, mostRead)
	if err != nil {
		return !os.IsNotExist(err) && !errors.Is(err, safefile.ErrNotPlain)
	}
	return isKey(text)
}

func isKey(text []byte) bool {
	return slices.ContainsFunc(keyMarks,
		func(mark string) bool { return bytes.Contains(text, []byte(mark)) }) ||
		bytes.Contains(text, []byte("[Interface]")) && bytes.Contains(text, []byte("PrivateKey"))
}

// HasSecret reports whether a text has a private key or what is a secret in form.
func HasSecret(text []byte) bool { return isKey(text) || environ.SecretValue(string(text)) }
