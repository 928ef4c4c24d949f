// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import "sync"

// bufferSize is how much is read at once, in bytes. Above a quarter of a MiB
// nothing is gained: the copying dominates.
const bufferSize = 256 << 10

// Shared is what the commands of one executor share: memory for reading, and
// on Linux the kernel's notes about the order of writes. A command that prints
// nothing borrows nothing. The zero Shared is ready; it must not be copied after
// the first Start.
type Shared struct {
	buffers sync.Pool
	notes   notes
}

// Close frees what commands share. None may be running, and none may be started
// any more. It may be called more than once.
func (s *Shared) Close() { s.notes.close() }

func (s *Shared) lend() *[bufferSize]byte {
	if buf, ok := s.buffers.Get().(*[bufferSize]byte); ok {
		return buf
	}
	return new([bufferSize]byte)
}

func (s *Shared) giveBack(buf *[bufferSize]byte) { s.buffers.Put(buf) }
