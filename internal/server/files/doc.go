// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package files performs operations on files for a client: reading, writing, listing, copying,
// removing, renaming, changes of permissions, links, appending. Each is one function, and [Handles] are
// open files for reading and writing in blocks.
//
// The package does what this process may do and judges nothing; who wants less runs it in a
// process that may do less. It waits for no other program: only regular files are read and
// written, and a named pipe or a device is not even opened. What one operation keeps in memory
// is bounded.
//
// A [Target] with NoFollow is reached through descriptors, one directory at a time, and a
// symbolic link on the way is refused, also one that appears meanwhile. Where the system cannot
// do that, it is an error.
//
// [Decode] reads a request about files of the exec-server protocol, and a [Server] performs it. The
// exec-server has one for requests without a sandbox, and for each sandbox a helper process in it that
// calls [Serve].
//
// An [HTTPClient] sends what an [HTTPRequest] says and adds as little as HTTP allows: no variable of the
// environment names a proxy, no cookies are kept, nothing is decompressed, and there is no
// User-Agent. Every status is a result. Secret headers, and those that carry credentials by their
// meaning, go to the scheme, host and port of the URL only: a redirect to another one leaves them out,
// also when it leads back later. It does not decide which hosts may be reached.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// An InvalidError reports an operation that was refused because of what was asked for. Clients
// know the texts.
type InvalidError struct{ Reason string }

// Error returns the reason.
func (e *InvalidError) Error() string { return e.Reason }

func invalidf(format string, args ...any) error {
	return &InvalidError{Reason: fmt.Sprintf(format, args...)}
}

// A HandleError reports a handle that is not open.
type HandleError struct{ ID string }

// Error returns the reason.
func (e *HandleError) Error() string { return fmt.Sprintf("unknown file handle `%s`", e.ID) }

// A Target is the file that an operation is about.
type Target struct {
	Path string // absolute and clean
	// NoFollow refuses a path with a symbolic link in it. False follows all of them.
	NoFollow bool
}

// errLink refuses a link that is the target itself, with NoFollow, where it would be described or
// removed. Other operations have the error of the system, as clients know them: ELOOP, and ENOTDIR for
// a link on the way.
var errLink = &InvalidError{Reason: "path contains a symbolic link"}

// notPlain refuses what is neither a regular file nor a directory.
func notPlain(path string) error { return invalidf("path `%s` is not a file", path) }

// Info describes what a path names.
type Info struct {
	IsDirectory, IsFile bool // of what a link leads to
	IsSymlink           bool
	Size                int64 // in bytes
	ModifiedMs          int64 // since 1970
}

// Stat describes what a path names. A link that leads nowhere does not exist.
func Stat(t Target) (Info, error) {
	p, err := locate(t, false)
	if err != nil {
		return Info{}, err
	}
	defer p.close()
	named, err := os.Lstat(p.name)
	if err == nil && isOurs(p.name, named.Mode()) {
		err = &fs.PathError{Op: "lstat", Path: t.Path, Err: syscall.ENOENT}
	}
	if err != nil {
		return Info{}, err
	}
	info := named
	if link := named.Mode()&fs.ModeSymlink != 0; link && t.NoFollow {
		return Info{}, errLink
	} else if link {
		if info, err = os.Stat(p.name); err != nil {
			return Info{}, err
		}
	}
	return Info{
		IsDirectory: info.IsDir(), IsFile: info.Mode().IsRegular(),
		IsSymlink: named.Mode()&fs.ModeSymlink != 0,
		Size:      info.Size(), ModifiedMs: info.ModTime().UnixMilli(),
	}, nil
}

// CreateDirectory makes a directory. Recursive also makes those above it, and an existing
// directory is no error then.
func CreateDirectory(t Target, recursive bool) error {
	p, err := locate(t, recursive)
	if err != nil {
		return err
	}
	defer p.close()
	if !recursive {
		return os.Mkdir(p.name, 0o777)
	}
	return makeAll(p.name, t)
}

// makeAll makes a directory and those above it. Only a path whose links are followed can lack
// some above it.
func makeAll(name string, t Target) error {
	err := os.Mkdir(name, 0o777)
	if errors.Is(err, fs.ErrNotExist) && !t.NoFollow && parent(name) != name {
		if err = makeAll(parent(name), t); err == nil {
			err = os.Mkdir(name, 0o777)
		}
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	look := os.Stat
	if t.NoFollow {
		look = os.Lstat
		err = &fs.PathError{Op: "mkdir", Path: t.Path, Err: syscall.ENOTDIR}
	}
	if info, err2 := look(name); err2 == nil && info.IsDir() {
		return nil
	}
	return err
}

// Remove removes what a path names; of a link, the link. Recursive removes a directory with
// all that is in it, otherwise it must be empty. Force makes it no error that nothing is there.
func Remove(t Target, recursive, force bool) error {
	if recursive && t.NoFollow {
		return errors.New("recursive no-follow removal is unsupported")
	}
	if parent(t.Path) == t.Path {
		return invalidf("`%s` cannot be removed; name what is in it", t.Path)
	}
	p, err := locate(t, false)
	if err == nil {
		defer p.close()
		var info fs.FileInfo
		info, err = os.Lstat(p.name)
		switch {
		case err != nil:
		case t.NoFollow && info.Mode()&fs.ModeSymlink != 0:
			return errLink
		case recursive && info.IsDir():
			err = os.RemoveAll(p.name)
		default:
			err = os.Remove(p.name)
		}
	}
	if force && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
