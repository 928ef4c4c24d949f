// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"sync"
)

// The kinds of frames.
const (
	Output = 'o' // of the command
	Exit   = 'x' // what is known of the exit
	End    = 'e' // nothing comes any more
	record = 'r' // the record, at the begin of each file
)

// A Frame is a piece of a log.
type Frame struct {
	Kind   byte
	Stream byte   // of output: a letter of who writes it
	Number uint64 // of the event
	Before uint64 // bytes of output before it
	Data   []byte
}

const (
	head    = 22 // bytes of a frame before its data
	maxData = 16 << 20
	// maxFile is how many bytes a file of a log has before the output goes on in a new one. Two are kept.
	maxFile = 32 << 20
)

// readFrame reads a frame. The error is io.EOF or io.ErrUnexpectedEOF at the end.
func readFrame(r io.Reader) (f Frame, err error) {
	var b [head]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return f, err
	}
	f = Frame{Kind: b[0], Stream: b[1], Number: binary.LittleEndian.Uint64(b[2:]),
		Before: binary.LittleEndian.Uint64(b[10:])}
	n := binary.LittleEndian.Uint32(b[18:])
	if n > maxData {
		return f, io.ErrUnexpectedEOF
	}
	f.Data = make([]byte, n)
	_, err = io.ReadFull(r, f.Data)
	return f, err
}

// A Log is that of one command. A nil Log keeps nothing.
type Log struct {
	store  *Store
	name   string
	header []byte // the record

	mu   sync.Mutex
	file *os.File // nil after the end, and when it takes nothing any more
	size int      // bytes in it
	buf  []byte
}

// create makes the file of the log, which begins with the record.
func (l *Log) create() (err error) {
	if l.file, err = l.store.root.OpenFile(l.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return err
	}
	l.size = 0
	return l.append(Frame{Kind: record, Data: l.header})
}

// Write appends a frame, whose data it does not keep. Where the disk takes nothing more, the log ends.
func (l *Log) Write(f Frame) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil || len(f.Data) > maxData {
		return
	}
	var err error
	if l.size+len(f.Data) > maxFile {
		l.store.size.Add(-int64(l.size)) // about as many are in the one that goes
		if err = errors.Join(l.file.Close(), l.store.root.Rename(l.name, l.name+olderExt)); err == nil {
			err = l.create()
		}
	}
	if err == nil {
		err = l.append(f)
	}
	if err != nil || f.Kind == End {
		_ = l.file.Close() // what was written stays
		l.file, l.buf = nil, nil
	}
}

func (l *Log) append(f Frame) error {
	l.buf = append(l.buf[:0], f.Kind, f.Stream)
	l.buf = binary.LittleEndian.AppendUint64(l.buf, f.Number)
	l.buf = binary.LittleEndian.AppendUint64(l.buf, f.Before)
	l.buf = binary.LittleEndian.AppendUint32(l.buf, uint32(len(f.Data)))
	l.buf = append(l.buf, f.Data...)
	n, err := l.file.Write(l.buf)
	l.size += n
	l.store.size.Add(int64(n))
	return err
}

// Remove removes the log.
func (l *Log) Remove() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close() // it is removed
		l.file, l.buf = nil, nil
	}
	l.store.remove(l.name)
}
