// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Rename gives what source names the name of destination, on the same file system; a link is
// renamed itself. Replace lets it take the place of what exists, as rename(2) does; otherwise
// that is an error. NoFollow counts for the directories above each of them.
func Rename(source, destination Target, replace bool) error {
	for _, t := range []Target{source, destination} {
		if parent(t.Path) == t.Path {
			return invalidf("`%s` cannot be renamed; name what is in it", t.Path)
		}
	}
	from, err := locate(source, false)
	if err != nil {
		return err
	}
	defer from.close()
	to, err := locate(destination, false)
	if err != nil {
		return err
	}
	defer to.close()
	if replace {
		return os.Rename(from.name, to.name)
	}
	return renameNew(from.name, to.name)
}

// Chmod sets the permissions of a regular file or a directory: the nine bits of read, write and
// execute. Others are refused, because they change as whom a program runs.
func Chmod(t Target, mode uint64) error {
	if mode > uint64(fs.ModePerm) {
		return invalidf("mode %#o is not supported; use 0 to 0777", mode)
	}
	p, err := locate(t, false)
	if err != nil {
		return err
	}
	defer p.close()
	return chmodPlain(p, t, fs.FileMode(mode))
}

// maxLink is the longest text of a link in bytes.
const maxLink = 4095

// Symlink makes a symbolic link with a text, which may lead anywhere or nowhere. It replaces
// nothing.
func Symlink(text string, t Target) error {
	if text == "" || len(text) > maxLink || strings.ContainsRune(text, 0) {
		return invalidf("the target of a link has 1 to %d bytes and no NUL", maxLink)
	}
	p, err := locate(t, false)
	if err != nil {
		return err
	}
	defer p.close()
	return os.Symlink(filepath.FromSlash(text), p.name)
}

// Append writes data at the end of a regular file, which is created when it is missing. What
// others append meanwhile stays.
func Append(t Target, data []byte) error {
	p, err := locate(t, false)
	if err != nil {
		return err
	}
	defer p.close()
	f, err := openPlain(p, t, os.O_WRONLY|os.O_APPEND)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = os.OpenFile(p.name, os.O_WRONLY|os.O_APPEND|createFlags(t), 0o666)
	}
	if err != nil {
		return err
	}
	// What was created now may be something else that came in between.
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notPlain(t.Path)
	}
	if err == nil {
		_, err = f.Write(data)
	}
	return errors.Join(err, f.Close())
}
