// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
)

// A File is a spill file: it holds the first half of its size of an output and, as a
// ring, the last half. The place of a byte follows from its offset, so nothing is ever
// moved. One goroutine appends, any number of them read meanwhile, and none of them waits
// for a write. A File is made by [Store.Create].
type File struct {
	store *Store
	name  string
	f     *os.File
	size  uint64

	// w is held by the writer; mu is not while bytes are written.
	w        sync.Mutex
	reserved int64 // bytes of the common limit that it has; guarded by w

	mu      sync.RWMutex
	headCap uint64 // offsets below it are places in the file
	ringCap uint64 // the others follow, again and again
	end     uint64 // bytes that were written
	claimed uint64 // bytes that are written or being written over others
	ended   bool
	gone    bool // nothing can be read any more
	err     error
}

// Err returns why the file keeps less than its size allows; nil while it does not. After
// [ErrFull] it continues with the room that it has; after any other error bytes that are
// appended are missing.
func (f *File) Err() error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.err
}

// Kept returns which bytes can be read, as offsets: those below head, and those from tail
// to end. Bytes from end on that were appended were not written.
func (f *File) Kept() (head, tail, end uint64) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.kept()
}

func (f *File) kept() (head, tail, end uint64) {
	if f.gone {
		return 0, 0, 0
	}
	tail = f.headCap
	if f.claimed > f.headCap+f.ringCap {
		tail = f.claimed - f.ringCap
	}
	head = min(f.headCap, f.end)
	return head, min(max(tail, head), max(f.end, head)), f.end
}

// Append adds p at the end of the output. It keeps no reference to p, blocks while the
// system copies it, and does not fail: bytes that cannot be written are missing, and
// [File.Err] says why.
func (f *File) Append(p []byte) {
	f.w.Lock()
	defer f.w.Unlock()
	f.mu.RLock()
	usable := !f.ended && !f.gone && (f.err == nil || errors.Is(f.err, ErrFull))
	off := f.end
	f.mu.RUnlock()
	for len(p) > 0 && usable {
		f.ensure(off + uint64(len(p)))
		claims := off
		if skip := len(p) - int(f.ringCap); skip > 0 && off >= f.headCap { // the rest would be written over
			claims += uint64(len(p))
			off, p = off+uint64(skip), p[skip:]
		}
		pos, n := f.place(off, len(p))
		if n == 0 {
			return
		}
		f.mu.Lock()
		f.claimed = max(f.claimed, claims, off+uint64(n))
		f.mu.Unlock()
		done, err := f.f.WriteAt(p[:n], pos)
		off += uint64(done)
		p = p[done:]
		f.mu.Lock()
		f.end = off
		if err != nil {
			usable = false
			f.err = fmt.Errorf("cannot write the spill file: %w", err)
		}
		f.mu.Unlock()
	}
}

// ensure asks for room for the bytes below the offset end. Without room the file
// continues with a smaller ring: as long as it is no longer than its room, every byte is
// at its offset, whatever the ring.
func (f *File) ensure(end uint64) {
	need := int64(min(end, f.headCap+f.ringCap)) // only the writer changes them
	if need <= f.reserved {
		return
	}
	want := min(max(need, 2*f.reserved, firstReserve), int64(f.size))
	got, err := f.store.reserve(f, f.reserved, want)
	if err != nil && want > need {
		got, err = f.store.reserve(f, f.reserved, need)
	}
	if err != nil {
		return // the write itself finds out how far it gets
	}
	f.reserved = got
	if got >= need {
		return
	}
	f.mu.Lock()
	f.headCap = min(f.headCap, uint64(got)/2)
	f.ringCap = uint64(got) - f.headCap
	f.err = ErrFull
	f.mu.Unlock()
}

// place returns the place of the byte with the offset in the file, and how many of n
// bytes follow it there.
func (f *File) place(off uint64, n int) (pos int64, contiguous int) {
	if off < f.headCap {
		return int64(off), int(min(uint64(n), f.headCap-off))
	}
	if f.ringCap == 0 {
		return 0, 0
	}
	i := (off - f.headCap) % f.ringCap
	return int64(f.headCap + i), int(min(uint64(n), f.ringCap-i))
}

// ReadAt reads into p what is kept from the offset on. It returns the number of bytes,
// which may be less than is kept, and the offset after them. Without bytes, next is where
// something is kept again, or off at the end of what was written.
func (f *File) ReadAt(p []byte, off uint64) (n int, next uint64) {
	for {
		f.mu.RLock()
		head, tail, end := f.kept()
		pos, want := f.place(off, len(p))
		f.mu.RUnlock()
		switch {
		case len(p) == 0 || off >= end:
			return 0, off
		case off >= head && off < tail:
			return 0, tail
		case off < head:
			want = int(min(uint64(want), head-off))
		default:
			want = int(min(uint64(want), end-off))
		}
		n, err := f.f.ReadAt(p[:want], pos)
		f.mu.RLock()
		head, tail, end = f.kept()
		f.mu.RUnlock()
		// Some of it may have been overwritten meanwhile.
		if off >= end || off >= head && off < tail {
			continue
		}
		if n < want {
			f.lose(err)
		}
		if off < head && head < tail {
			n = int(min(uint64(n), head-off))
		}
		if n > 0 {
			return n, off + uint64(n)
		}
	}
}

// lose records that bytes that were written cannot be read any more: another process, or
// another file of this one, took the room.
func (f *File) lose(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
		err = errors.New("the file was removed")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone = true
	if f.err == nil || errors.Is(f.err, ErrFull) {
		f.err = fmt.Errorf("cannot read the spill file: %w", err)
	}
}

// End says that nothing more comes. The file stays readable until it is removed, which
// may now happen whenever another file needs room. It waits for a write that is in
// progress. Further calls do nothing.
func (f *File) End() {
	f.w.Lock()
	defer f.w.Unlock()
	f.mu.Lock()
	done := f.ended || f.gone
	used := int64(min(f.end, f.headCap+f.ringCap))
	f.ended = true
	f.mu.Unlock()
	if done {
		return
	}
	// The room that it does not need is given back. If that or the lock fails, the file
	// counts for more than it is, until it is removed.
	_ = f.f.Truncate(used)
	_ = lockShared(f.f)
}

// Remove closes and removes the file; nothing of it can be read any more, and bytes that
// are appended are missing. Further calls return nil.
func (f *File) Remove() error {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	delete(f.store.files, f)
	return f.discard()
}

// discard is Remove for callers that hold the store's lock.
func (f *File) discard() error {
	f.mu.Lock()
	f.gone = true
	if f.err == nil {
		f.err = ErrClosed
	}
	f.mu.Unlock()
	var err error
	if root := f.store.root; root != nil && f.store.linked(f.f, f.name) {
		// Another process that has it open, for example to look at its lock, holds no
		// room.
		_ = f.f.Truncate(0)
		err = root.Remove(f.name)
	}
	if closing := f.f.Close(); !errors.Is(closing, os.ErrClosed) {
		err = errors.Join(err, closing)
	}
	if errors.Is(err, fs.ErrNotExist) { // another process removed it meanwhile
		return nil
	}
	return err
}
