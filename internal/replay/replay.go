// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replay keeps the output of a process on disk, by the numbers of its events, for clients
// that come back. A [Log] holds the newest output up to a size; what is older is gone. All logs of a
// [Disk] share a limit. Files have no name while they are open, where the system can do that: they
// are gone with the process that has them open, however it ends.
package replay

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/wire"
)

const (
	// MaxLog is the size of a log in bytes, and MaxChunks how many chunks it has.
	MaxLog    = 64 << 20
	MaxChunks = 100_000
	// MaxDisk is the size of all logs together.
	MaxDisk = 1 << 30
	maxPage = 1 << 20 // bytes
	// step is what a log takes of it at once.
	step = 1 << 20
)

// A Disk makes logs. The zero Disk has no directory, and its logs hold nothing. It is safe for
// concurrent use.
type Disk struct {
	// Dir is the directory, which is made with mode 0700. Empty means none.
	Dir string

	mu   sync.Mutex
	used int64
}

// take reserves one step, and reports false when the limit is reached.
func (d *Disk) take() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.used+step > MaxDisk {
		return false
	}
	d.used += step
	return true
}

func (d *Disk) give(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.used -= n
}

// A Log holds chunks. It is for one goroutine at a time. Its zero value holds nothing.
type Log struct {
	disk   *Disk
	file   *os.File // nil before the first chunk and after an error
	most   int64    // MaxLog
	closed bool
	room   int64   // bytes that the file may have
	end    int64   // bytes that were added
	gone   uint64  // the number of the newest chunk that is not held any more; 0 for none
	index  []entry // of the chunks that are held, oldest first
}

// An entry says where a chunk is: at offset modulo room.
type entry struct {
	seq    uint64
	offset int64
	size   int
	stream string
}

// NewLog returns an empty Log, whose file is made with the first chunk.
func (d *Disk) NewLog() Log { return Log{disk: d, most: MaxLog} }

// Add adds a chunk, which follows on those before it. Older ones go when there is no room. After an
// error the log is empty and stays so.
func (l *Log) Add(c wire.Chunk) {
	if l.disk == nil || l.disk.Dir == "" || l.closed {
		return
	}
	if err := l.add(c); err != nil {
		l.Close() // reads say from where on there is output
	}
}

func (l *Log) add(c wire.Chunk) error {
	if l.file == nil {
		if err := l.create(); err != nil {
			return err
		}
	}
	size := int64(len(c.Chunk))
	// A log grows until it has gone round: then every byte has its place.
	for l.end+size > l.room && l.end <= l.room && l.room < l.most && l.disk.take() {
		l.room += step
	}
	if size > l.room {
		return errors.New("no room")
	}
	for len(l.index) > 0 && (l.end+size-l.index[0].offset > l.room || len(l.index) >= MaxChunks) {
		l.gone = l.index[0].seq
		l.index = l.index[1:]
	}
	if err := l.at(l.end, c.Chunk, l.file.WriteAt); err != nil {
		return err
	}
	l.index = append(l.index, entry{c.Seq, l.end, len(c.Chunk), c.Stream})
	l.end += size
	return nil
}

// create makes the file.
func (l *Log) create() error {
	if err := os.MkdirAll(l.disk.Dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the directory of logs: %w", err)
	}
	f, err := os.CreateTemp(l.disk.Dir, "log-")
	if err != nil {
		return fmt.Errorf("cannot make a log: %w", err)
	}
	_ = os.Remove(f.Name()) // Windows does that at the end
	l.file = f
	return nil
}

// at does what do does with the bytes at an offset, in two parts where the log goes round.
func (l *Log) at(offset int64, b []byte, do func([]byte, int64) (int, error)) error {
	place := offset % l.room
	first := min(int64(len(b)), l.room-place)
	if _, err := do(b[:first], place); err != nil {
		return err
	}
	if first == int64(len(b)) {
		return nil
	}
	_, err := do(b[first:], 0)
	return err
}

// Gone returns the number of the newest chunk that was added and is not held any more; 0 for none.
func (l *Log) Gone() uint64 { return l.gone }

// Held returns how many bytes are held.
func (l *Log) Held() uint64 {
	if len(l.index) == 0 {
		return 0
	}
	return uint64(l.end - l.index[0].offset)
}

// After returns chunks with numbers above seq, in order and at least one if there is one, up to most
// bytes, and at most 1 MiB.
func (l *Log) After(seq, most uint64) []wire.Chunk {
	left := min(most, maxPage)
	var list []wire.Chunk
	first := sort.Search(len(l.index), func(i int) bool { return l.index[i].seq > seq })
	for _, e := range l.index[first:] {
		if len(list) > 0 && uint64(e.size) > left {
			break
		}
		c := wire.Chunk{Seq: e.seq, Stream: e.stream, Chunk: make([]byte, e.size)}
		if l.at(e.offset, c.Chunk, l.file.ReadAt) != nil {
			l.Close()
			return nil
		}
		list = append(list, c)
		left -= min(left, uint64(e.size))
	}
	return list
}

// Close empties the log and removes its file. It may be called more than once.
func (l *Log) Close() {
	if l.file != nil {
		_ = l.file.Close()
		_ = os.Remove(filepath.Clean(l.file.Name())) // where it has a name still
		l.disk.give(l.room)
	}
	l.file, l.index, l.room, l.closed = nil, nil, 0, true
}
