// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
)

// An Order tells in which order commands write to their two output pipes. Pipes have no
// common clock, but one inotify instance queues an event for each write to either, and
// merges only successive events of one pipe. So the turns are known that the streams took
// before the pump could read. All commands of an executor share an Order, because a
// user has few instances (128 by default). The zero Order is ready.
type Order struct {
	mu     sync.Mutex
	fd     int // 0 is not open yet, -1 is not available or closed
	writes map[int32]*turns
}

// turns are the turns of the streams of one command that the pump has yet to read.
type turns struct {
	order *Order
	wd    [2]int32          // the watch of each stream
	list  []executor.Stream // guarded by order.mu
}

// Close frees the inotify instance. No command may be running.
func (o *Order) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fd > 0 {
		_ = unix.Close(o.fd)
	}
	o.fd = -1
}

// watch begins to note the turns of two pipes. It returns nil where inotify is not
// available, or its limits are reached: the order is that of the reads then.
func (o *Order) watch(fds [2]int) *turns {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fd == 0 {
		o.writes = make(map[int32]*turns)
		o.fd, _ = unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC) // -1 with an error
	}
	t := &turns{order: o}
	for i, fd := range fds {
		wd, err := unix.InotifyAddWatch(o.fd, fmt.Sprintf("/proc/self/fd/%d", fd), unix.IN_MODIFY)
		if err != nil {
			return nil // a watch that was added ends with its pipe
		}
		t.wd[i] = int32(wd)
	}
	o.writes[t.wd[0]], o.writes[t.wd[1]] = t, t
	return t
}

// forget ends the watches.
func (t *turns) forget() {
	t.order.mu.Lock()
	defer t.order.mu.Unlock()
	for _, wd := range t.wd {
		delete(t.order.writes, wd)
		_, _ = unix.InotifyRmWatch(t.order.fd, uint32(wd)) // it has ended if its pipe is closed
	}
}

// take returns the turns since the last call, oldest first.
func (t *turns) take() []executor.Stream {
	var buf [256 * unix.SizeofInotifyEvent]byte
	t.order.mu.Lock()
	defer t.order.mu.Unlock()
	for n := len(buf); n > len(buf)/2; {
		n, _ = unix.Read(t.order.fd, buf[:]) // -1 with an error, of which EAGAIN means none
		for b := buf[:max(n, 0)]; len(b) >= unix.SizeofInotifyEvent; b = b[unix.SizeofInotifyEvent:] {
			t.order.note(int32(binary.NativeEndian.Uint32(b)))
		}
	}
	list := t.list
	t.list = nil
	return list
}

// note adds a turn to the command that the watch belongs to. A turn that is lost loses
// its order only.
func (o *Order) note(wd int32) {
	const maxTurns = 4096 // of a command whose output is not read
	t := o.writes[wd]
	if t == nil || len(t.list) == maxTurns {
		return
	}
	s := executor.Stdout
	if wd == t.wd[executor.Stderr] {
		s = executor.Stderr
	}
	if n := len(t.list); n == 0 || t.list[n-1] != s {
		t.list = append(t.list, s)
	}
}

// giveBack puts turns before those that came since they were taken.
func (t *turns) giveBack(list []executor.Stream) {
	t.order.mu.Lock()
	defer t.order.mu.Unlock()
	t.list = append(list, t.list...)
}

// readInOrder reads what the pipes hold and hands it on by turns: one line for each turn
// of a stream but the last, which gets all that was read. It reports whether there was
// something to read.
func (p *epollPump) readInOrder() bool {
	size := p.sizes()
	list := p.turns.take() // after the sizes, so that it has all their turns
	later := p.sizes()
	var left [2][]byte
	for s := range left {
		half := p.memory()[s*bufferSize/2:][:bufferSize/2]
		left[s] = p.readUpTo(s, half[:min(size[s], len(half))])
		later[s] -= len(left[s])
	}
	var rest []executor.Stream
	for i, s := range list {
		n := len(left[s])
		if n == 0 && later[s] > 0 {
			rest = append(rest, s) // its bytes came after the look at the sizes
		}
		if slices.Contains(list[i+1:], s) {
			n = bytes.IndexByte(left[s], '\n') + 1
		}
		p.deliver(int(s), left[s][:n])
		left[s] = left[s][n:]
	}
	for s := range left {
		p.deliver(s, left[s]) // of a turn that was lost
		if later[s] > 0 && !slices.Contains(rest, executor.Stream(s)) {
			rest = slices.Insert(rest, 0, executor.Stream(s)) // the last turn goes on
		}
	}
	p.turns.giveBack(rest)
	return size != [2]int{}
}
