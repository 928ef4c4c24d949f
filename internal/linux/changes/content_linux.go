// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"bytes"
	"errors"
	"maps"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
)

// changed looks at what is no directory in the stage.
func (r *reader) changed(name string, now, old *Facts) error {
	e := r.entry(now, old)
	var err error
	switch {
	case !old.Exists():
		e.Kind = executor.ChangeAdded
	case !now.sameType(old):
		e.Kind = executor.ChangeType
	}
	if e.Kind == executor.ChangeType && old.IsDir() {
		if err = r.count(name, e); err != nil {
			return err
		}
		e.Entries = 0 // it counts what was deleted with its directory
	}
	switch e.File {
	case "file":
		err = r.content(name, e)
	case "symlink":
		err = r.target(name, e)
	default:
		if e.Kind == "" && now.Rdev != old.Rdev {
			e.Kind = executor.ChangeModified
		}
	}
	if err == nil && e.Kind == "" && !now.sameRights(old) {
		e.Kind = executor.ChangeMode
	}
	if err != nil || e.Kind == "" {
		return err
	}
	return r.add(e)
}

// target compares symbolic links.
func (r *reader) target(name string, e *Entry) (err error) {
	if e.Target, err = r.up.link(name, &e.New); err != nil || e.Kind != "" {
		return err
	}
	old, err := r.host.link(name, &e.Old)
	if old != e.Target {
		e.Kind = executor.ChangeModified
	}
	return err
}

// rights sets the kind of a directory in both trees, of which the descriptors are given. Where only the host's
// has changed since the stage met it, the stage has not.
func (r *reader) rights(e *Entry, up, host int) error {
	if !e.New.sameRights(&e.Old) {
		if b := &e.Base; !b.Known || b.Below || !b.IsDir() || !e.New.sameRights(&b.Facts) {
			e.Kind = executor.ChangeMode
		}
		return nil
	}
	same, err := sameAttrs(up, host)
	if err == nil && !same {
		e.Kind = executor.ChangeMode
	}
	if err != nil {
		return r.up.fail("read the attributes of", ".", err)
	}
	return nil
}

// sameAttrs compares attributes; those of what can only be looked at do not count.
func sameAttrs(up, host int) (bool, error) {
	a, err := StagedAttrs(up)
	if err != nil {
		return false, err
	}
	b, err := Attrs(host)
	if errors.Is(err, unix.EBADF) {
		return true, nil
	}
	return maps.Equal(a, b), err
}

// content compares regular files, and finds out whether they are binary. It reads of the contents what it
// needs. A file of the host that cannot be read is different, and taken for binary.
func (r *reader) content(name string, e *Entry) error {
	both := e.Kind == ""
	if !both && (e.Size == 0 || r.plain) {
		return nil
	}
	if r.plain && e.Size != e.OldSize {
		e.Kind = executor.ChangeModified
		return nil
	}
	up, err := r.up.open(name, &e.New)
	if err != nil {
		return err
	}
	defer unix.Close(up)
	host := -1
	if both {
		host, err = r.host.open(name, &e.Old)
		if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
			e.Kind, e.Binary = executor.ChangeModified, true
			return nil
		}
		if err != nil {
			return err
		}
		defer unix.Close(host)
	}
	same, err := r.compare(e, up, host)
	if err == nil && both && same {
		same, err = sameAttrs(up, host)
		if !same {
			e.Kind = executor.ChangeMode
		}
	} else if both {
		e.Kind = executor.ChangeModified
	}
	if err != nil {
		return r.up.fail("compare", name, err)
	}
	return nil
}

// compare compares the contents of two files, and says of both whether they are binary. There is one where the
// host's descriptor is negative. What is read is bounded by the sizes that the entry has.
func (r *reader) compare(e *Entry, up, host int) (same bool, err error) {
	same = host >= 0 && e.Size == e.OldSize
	for at := int64(0); at == 0 || same && at < e.Size; {
		want := int64(sniffed)
		if same {
			want = int64(len(r.bufs[0]))
		}
		a, err := r.fill(0, up, min(want, e.Size-at))
		if err != nil {
			return false, err
		}
		var b []byte
		if host >= 0 {
			if b, err = r.fill(1, host, min(want, e.OldSize-at)); err != nil {
				return false, err
			}
		}
		if at == 0 {
			e.Binary = isBinary(a) || isBinary(b)
		}
		same = same && bytes.Equal(a, b)
		if at += want; r.ctx.Err() != nil {
			return false, r.ctx.Err()
		}
	}
	return same, nil
}

// fill reads as many bytes into a buffer as are wanted, or fewer where the file ends.
func (r *reader) fill(buf, fd int, want int64) ([]byte, error) {
	b := r.bufs[buf][:want]
	n, err := readFull(fd, b)
	return b[:n], err
}

// readFull reads until b is full or the file ends.
func readFull(fd int, b []byte) (n int, err error) {
	for n < len(b) {
		m, err := retry(func() (int, error) { return unix.Read(fd, b[n:]) })
		if err != nil {
			return n, err
		}
		if m == 0 {
			break
		}
		n += m
	}
	return n, nil
}

// binary reports whether a file in the directory at the end of a way is binary, or cannot be read.
func (r *reader) binary(w *way, name string, f *Facts) (bool, error) {
	if f.Size == 0 {
		return false, nil
	}
	fd, err := w.open(name, f)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	b, err := r.fill(0, fd, min(f.Size, sniffed))
	if err != nil {
		return false, w.fail("read", name, err)
	}
	return isBinary(b), nil
}

// isBinary decides as git does.
func isBinary(begin []byte) bool { return bytes.IndexByte(begin[:min(len(begin), sniffed)], 0) >= 0 }
