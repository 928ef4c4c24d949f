// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package files reads rule files for package rules and appends rules to them.
//
// A file is opened only if it is a regular one, so that a named pipe or a device cannot
// stop the reader, and no more of it is read than a rule file may have. What cannot be read
// becomes a [rules.Source] with an error, which forbids: it is never left out.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/rules"
)

// extension is the end of the names of rule files in a directory.
const extension = ".rules"

// maxFiles is how many rule files a directory may have.
const maxFiles = 1024

// Read returns the text of a rule file, or the error in its place. It follows symbolic links.
func Read(path string) rules.Source {
	text, err := read(path)
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err // the source has the path already
	}
	return rules.Source{Name: path, Text: text, Err: err}
}

func read(path string) ([]byte, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, rules.MaxFile+1)) // one byte more is an error of the reader of rules
}

// Directory returns the rule files in a directory, those with a name that ends in .rules, in
// the order of their names. Only regular files count: directories, symbolic links and
// others are left out. A directory that does not exist has none; one that cannot be read,
// and a link that leads nowhere, is one Source with the error.
func Directory(dir string) []rules.Source {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if _, at := os.Lstat(dir); errors.Is(at, fs.ErrNotExist) {
			return nil
		}
	}
	var all []rules.Source
	for _, entry := range entries {
		if entry.Type().IsRegular() && filepath.Ext(entry.Name()) == extension {
			if len(all) == maxFiles {
				err = fmt.Errorf("the directory has more than %d rule files", maxFiles)
				break
			}
			all = append(all, Read(filepath.Join(dir, entry.Name())))
		}
	}
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) {
			err = at.Err
		}
		return []rules.Source{{Name: dir, Err: err}}
	}
	return all
}
