// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"encoding/binary"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
)

// notes are the kernel's notes about who wrote when. Two pipes have no common
// clock, but both can be watched by one inotify instance, whose queue then holds
// a note for every write in the order of the writes, except that notes about
// successive writes to the same pipe are one. So the order in which the streams
// took turns is known, also for what was written before anybody could look.
//
// One instance serves all commands, because a user has few of them (128 by
// default) and the programs in the sandbox need some. The zero notes are ready.
type notes struct {
	mu      sync.Mutex
	fd      int // 0 is not open yet, -1 cannot be had or is closed
	watches map[int32]watch
	buf     [256 * unix.SizeofInotifyEvent]byte
}

// A watch says whose pipe a note is about.
type watch struct {
	turns  *turns
	stream executor.Stream
}

// turns are the turns of the streams of one command that were not taken yet.
type turns struct {
	notes *notes
	wd    [2]int32
	list  []executor.Stream // guarded by notes.mu
}

// maxTurns bounds what is remembered of a command whose pump does not run; further
// turns are lost, and with them only their order.
const maxTurns = 4096

// watch begins to take notes about two pipes. It returns nil where that cannot be
// had, as inside of some containers: then the order is the one of reading.
func (n *notes) watch(fds [2]int) *turns {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fd == 0 {
		fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
		if err != nil {
			fd = -1
		}
		n.fd = fd
		n.watches = make(map[int32]watch)
	}
	if n.fd < 0 {
		return nil
	}
	t := &turns{notes: n}
	for i, fd := range fds {
		wd, err := unix.InotifyAddWatch(n.fd, fmt.Sprintf("/proc/self/fd/%d", fd), unix.IN_MODIFY)
		if err != nil {
			if i > 0 {
				n.forgetLocked(t.wd[0])
			}
			return nil
		}
		t.wd[i] = int32(wd)
		n.watches[t.wd[i]] = watch{t, executor.Stream(i)}
	}
	return t
}

// take appends the turns since the last call to dst, oldest first.
func (t *turns) take(dst []executor.Stream) []executor.Stream {
	t.notes.mu.Lock()
	defer t.notes.mu.Unlock()
	t.notes.readLocked()
	list := t.list
	if len(dst) > 0 && len(list) > 0 && dst[len(dst)-1] == list[0] {
		list = list[1:] // the same turn goes on
	}
	dst = append(dst, list...)
	t.list = t.list[:0]
	return dst
}

// forget ends the notes about the two pipes.
func (t *turns) forget() {
	t.notes.mu.Lock()
	defer t.notes.mu.Unlock()
	for _, wd := range t.wd {
		t.notes.forgetLocked(wd)
	}
}

func (n *notes) forgetLocked(wd int32) {
	delete(n.watches, wd)
	if n.fd > 0 {
		// It fails when the pipe is gone, which ended the watch.
		_, _ = unix.InotifyRmWatch(n.fd, uint32(wd))
	}
}

// readLocked reads all notes there are and hands them to their commands.
func (n *notes) readLocked() {
	for n.fd > 0 {
		got, err := unix.Read(n.fd, n.buf[:])
		if err == unix.EINTR {
			continue
		}
		if got <= 0 {
			return
		}
		for b := n.buf[:got]; len(b) >= unix.SizeofInotifyEvent; {
			wd := int32(binary.NativeEndian.Uint32(b))
			mask := binary.NativeEndian.Uint32(b[4:])
			name := int(binary.NativeEndian.Uint32(b[12:]))
			b = b[min(unix.SizeofInotifyEvent+name, len(b)):]
			switch {
			case mask&unix.IN_Q_OVERFLOW != 0:
				n.loseLocked()
			case mask&unix.IN_MODIFY != 0:
				n.noteLocked(wd)
			}
		}
		if got < len(n.buf)/2 {
			return
		}
	}
}

func (n *notes) noteLocked(wd int32) {
	w, ok := n.watches[wd]
	if !ok {
		return // its command has just ended
	}
	list := w.turns.list
	if len(list) > 0 && list[len(list)-1] == w.stream || len(list) >= maxTurns {
		return
	}
	w.turns.list = append(list, w.stream)
}

// loseLocked forgets all turns: notes between them are missing.
func (n *notes) loseLocked() {
	for _, w := range n.watches {
		w.turns.list = w.turns.list[:0]
	}
}

func (n *notes) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fd > 0 {
		_ = unix.Close(n.fd)
	}
	n.fd = -1
}
