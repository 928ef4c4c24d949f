// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"
)

// gatherSize is the size in bytes of the buffer in which short pieces are put
// together for one write. It is only held while Append runs.
const gatherSize = 64 << 10

// A File keeps the beginning and the end of one output. One goroutine appends, any
// number of them read meanwhile; nobody waits for a write but its writer. It is made
// by [Store.Create].
type File struct {
	store *Store
	name  string
	f     *os.File
	n     uint64 // its cap, in bytes

	// w is held by whoever writes; mu is not while something is written.
	w        sync.Mutex
	reserved int64 // bytes of the common limit that it has; guarded by w

	mu       sync.RWMutex
	headCap  uint64 // offsets below it stand where they are
	ringCap  uint64 // the others follow, around and around
	size     uint64 // bytes appended
	end      uint64 // bytes written; it falls behind size after an error
	claimed  uint64 // bytes that are written or being written over others
	ended    bool
	gone     bool // nothing can be read any more
	released bool
	err      error
}

// Name returns the file's name in the store.
func (f *File) Name() string { return f.name }

// Path returns where the file is. In it, a byte of the output stands at its offset as
// long as the output is no longer than the cap.
func (f *File) Path() string { return filepath.Join(f.store.Dir, f.name) }

// Size returns how many bytes were appended, those that could not be kept among them.
func (f *File) Size() uint64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.size
}

// Err returns why the file keeps less than its cap allows; nil while it does not.
// After [ErrFull] it goes on with what room it has; after any other error what is
// appended is missing.
func (f *File) Err() error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.err
}

// Kept returns which bytes can be read, as offsets: those below head, and those from
// tail to end. Bytes from end on that were appended were not written.
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

// Append adds the pieces at the end of the output, short ones together in one write.
// It keeps no reference to them. It blocks for as long as the system takes to copy
// them, and cannot fail: what could not be written is missing, and [File.Err] says
// why. One goroutine may append at a time.
func (f *File) Append(pieces iter.Seq[[]byte]) {
	f.w.Lock()
	defer f.w.Unlock()
	var buffer *[gatherSize]byte
	var gathered []byte
	for p := range pieces {
		if len(gathered)+len(p) > gatherSize {
			f.write(gathered)
			gathered = gathered[:0]
		}
		if len(p) >= gatherSize/4 && len(gathered) == 0 {
			f.write(p)
			continue
		}
		for len(p) > 0 {
			if buffer == nil {
				buffer = f.store.buffer()
				gathered = buffer[:0]
			}
			n := min(len(p), gatherSize-len(gathered))
			gathered = append(gathered, p[:n]...)
			if p = p[n:]; len(p) > 0 {
				f.write(gathered)
				gathered = gathered[:0]
			}
		}
	}
	f.write(gathered)
	if buffer != nil {
		f.store.pool.Put(buffer)
	}
}

// buffer returns one that is not in use.
func (s *Store) buffer() *[gatherSize]byte {
	if b, ok := s.pool.Get().(*[gatherSize]byte); ok {
		return b
	}
	return new([gatherSize]byte)
}

// write adds p at the end.
func (f *File) write(p []byte) {
	f.mu.Lock()
	f.size += uint64(len(p))
	usable := !f.ended && !f.gone && (f.err == nil || errors.Is(f.err, ErrFull))
	off := f.end
	f.mu.Unlock()
	for len(p) > 0 && usable {
		f.ensure(off + uint64(len(p)))
		pos, n := f.place(off, len(p))
		if n == 0 {
			return
		}
		f.mu.Lock()
		f.claimed = max(f.claimed, off+uint64(n))
		f.mu.Unlock()
		done, err := f.f.WriteAt(p[:n], pos)
		off += uint64(done)
		p = p[done:]
		f.mu.Lock()
		f.end = off
		if err != nil {
			usable = false
			f.err = fmt.Errorf("spill: the output is no longer written: %w", err)
		}
		f.mu.Unlock()
	}
}

// ensure asks for room for the bytes below the offset end. When there is none, the
// file goes on with a smaller ring: as long as it is no longer than its room, every
// byte stands at its offset, whatever the ring.
func (f *File) ensure(end uint64) {
	need := int64(min(end, f.headCap+f.ringCap)) // only the writer changes them
	if need <= f.reserved {
		return
	}
	want := min(max(need, 2*f.reserved, firstReserve), int64(f.n))
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

// place returns where in the file the byte with the offset stands, and how many of n
// follow it there.
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

// ReadAt reads into p what is kept from the offset on, and returns the number of bytes
// and the offset behind them. It may read less than there is. Where nothing is kept, n
// is 0 and next is the next offset from which on something is, or the end of what was
// written; next is off at that end. It waits for nobody who writes.
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
		// Some of it may have been written over meanwhile.
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

// lose notes that what was written cannot be read any more: another process made room
// for its own output.
func (f *File) lose(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
		err = errors.New("the file was removed")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone = true
	if f.err == nil || errors.Is(f.err, ErrFull) {
		f.err = fmt.Errorf("spill: the output cannot be read: %w", err)
	}
}

func (f *File) hasEnded() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.ended
}

// End says that nothing more comes. The file stays readable until it is removed, but
// from now on it may be removed by whoever needs room. It waits for a write that is
// under way. Further calls do nothing.
func (f *File) End() {
	f.w.Lock()
	defer f.w.Unlock()
	f.mu.Lock()
	done := f.ended || f.gone
	used := int64(min(f.end, f.headCap+f.ringCap))
	f.mu.Unlock()
	if done {
		return
	}
	// The room that it does not need is given back. When that or the lock fails, it
	// counts for more than it is, until it is removed.
	_ = f.f.Truncate(used)
	_ = lockShared(f.f)
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
}

// Remove closes and removes the file; nothing of it can be read any more, and what is
// appended is missing. Further calls return nil.
func (f *File) Remove() error {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	if f.store.files[f.name] == f {
		delete(f.store.files, f.name)
	}
	return f.discard()
}

// discard is Remove for those who hold the store's lock.
func (f *File) discard() error {
	f.mu.Lock()
	done := f.released
	f.released, f.gone = true, true
	if f.err == nil {
		f.err = ErrClosed
	}
	f.mu.Unlock()
	if done {
		return nil
	}
	return errors.Join(f.unlink(), f.f.Close())
}

// unlink removes the name, if it still means this file.
func (f *File) unlink() error {
	root := f.store.root
	if root == nil || !f.store.linked(f.f, f.name) {
		return nil
	}
	// Someone else who has it open, for example to look at its lock, holds no room.
	_ = f.f.Truncate(0)
	if err := root.Remove(f.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("spill: %w", err)
	}
	return nil
}
