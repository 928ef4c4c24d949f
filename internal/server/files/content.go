// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Read returns the content of a regular file, of at most the given number of bytes. A longer
// one is an error that names the way to read it.
func Read(t Target, most int64) ([]byte, error) {
	f, err := openToRead(t)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > most:
		return nil, invalidf("file `%s` is longer than %d bytes, the most that one answer carries; read it with fs/open and fs/readBlock", t.Path, most)
	}
	return data, nil
}

// openToRead opens a regular file.
func openToRead(t Target) (*os.File, error) {
	p, err := locate(t, false)
	if err != nil {
		return nil, err
	}
	defer p.close()
	f, err := openPlain(p, t, os.O_RDONLY)
	if errors.Is(err, syscall.EISDIR) {
		return nil, notPlain(t.Path)
	}
	return f, err
}

// Write writes a regular file, whose directory must exist. A file that exists keeps its mode and
// is truncated first. Atomic puts a new file in its place instead, with the same mode and owner,
// so that a reader sees the old content or the new one, and so does who reads it after a crash;
// further names of the old file keep the old content.
func Write(t Target, data []byte, atomic bool) error {
	if atomic {
		return replace(t, data)
	}
	f, err := openEmpty(t, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// openEmpty opens a regular file for writing and truncates it, or creates it with a mode.
func openEmpty(t Target, mode fs.FileMode) (*os.File, error) {
	p, err := locate(t, false)
	if err != nil {
		return nil, err
	}
	defer p.close()
	f, err := openPlain(p, t, os.O_WRONLY)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = os.OpenFile(p.name, os.O_WRONLY|createFlags(t), mode)
	}
	if err != nil {
		return nil, err
	}
	// What was created now may be something else that came in between.
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notPlain(t.Path)
	}
	if err == nil && info.Size() > 0 {
		err = f.Truncate(0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// replace puts a new file in the place of a target.
func replace(t Target, data []byte) error {
	if !t.NoFollow {
		real, err := filepath.EvalSymlinks(t.Path)
		if err == nil {
			t.Path = real
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	p, err := locate(t, false)
	if err != nil {
		return err
	}
	defer p.close()
	old, err := os.Lstat(p.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case old.Mode()&fs.ModeSymlink != 0:
		return &fs.PathError{Op: "open", Path: t.Path, Err: syscall.ELOOP}
	case old.IsDir():
		return &fs.PathError{Op: "open", Path: t.Path, Err: syscall.EISDIR}
	case !old.Mode().IsRegular():
		return notPlain(t.Path)
	}
	name := parent(p.name) + string(filepath.Separator) + replacing + rand.Text()
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil && old != nil {
		if err = keepOwner(f, old); err == nil {
			err = f.Chmod(old.Mode().Perm())
		}
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(name, p.name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// parent returns the directory of a name, which must not be cleaned: it may lead through a
// descriptor.
func parent(name string) string { return filepath.Dir(name) }

// The bounds of handles.
const (
	// MaxHandles is how many may be open.
	MaxHandles  = 128
	maxHandleID = 32 // bytes
	// MaxBlock is how many bytes one block has at most.
	MaxBlock = 1 << 20
)

// ErrTooManyHandles refuses a further handle.
var ErrTooManyHandles = &InvalidError{Reason: fmt.Sprintf("at most %d file handles may be open per connection", MaxHandles)}

// Handles are open files by the IDs that a client gave them. The zero Handles have none. They
// are for one goroutine.
type Handles struct{ open map[string]*os.File }

// Open opens a regular file for reading, or with write for writing: it is truncated or created.
func (h *Handles) Open(id string, t Target, write bool) error {
	switch {
	case len(id) > maxHandleID:
		return invalidf("file handle ID must not exceed %d bytes", maxHandleID)
	case h.open[id] != nil:
		return invalidf("file handle `%s` already exists", id)
	case len(h.open) >= MaxHandles:
		return ErrTooManyHandles
	}
	var f *os.File
	var err error
	if write {
		f, err = openEmpty(t, 0o666)
	} else {
		f, err = openToRead(t)
	}
	if err != nil {
		return err
	}
	if h.open == nil {
		h.open = make(map[string]*os.File)
	}
	h.open[id] = f
	return nil
}

// ReadBlock returns up to n bytes from an offset, and whether the file ends before n bytes.
func (h *Handles) ReadBlock(id string, offset, n uint64) (block []byte, end bool, err error) {
	f := h.open[id]
	switch {
	case n < 1 || n > MaxBlock:
		return nil, false, invalidf("file read block length must be between 1 and %d", MaxBlock)
	case f == nil:
		return nil, false, &HandleError{ID: id}
	case int64(offset) < 0:
		return []byte{}, true, nil // no file is so long
	}
	block = make([]byte, n)
	got, err := f.ReadAt(block, int64(offset))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return block[:got], got < len(block), err
}

// WriteBlock writes bytes at an offset.
func (h *Handles) WriteBlock(id string, offset uint64, block []byte) error {
	f := h.open[id]
	switch {
	case len(block) < 1 || len(block) > MaxBlock:
		return invalidf("file write block length must be between 1 and %d", MaxBlock)
	case f == nil:
		return &HandleError{ID: id}
	case int64(offset) < 0:
		return invalidf("file write block offset must be below 2^63")
	}
	_, err := f.WriteAt(block, int64(offset))
	return err
}

// Close closes a handle. One that is not open is no error.
func (h *Handles) Close(id string) error {
	f := h.open[id]
	if f == nil {
		return nil
	}
	delete(h.open, id)
	return f.Close()
}

// CloseAll closes every handle.
func (h *Handles) CloseAll() {
	for id := range h.open {
		_ = h.Close(id) // the client has gone
	}
}
