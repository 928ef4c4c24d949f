// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
)

// pipeSize is the size to ask for for output pipes, in bytes: what an ordinary user may
// have by default (/proc/sys/fs/pipe-max-size). A large pipe lets the command run on
// while the pump is not scheduled.
const pipeSize = 1 << 20

// epollPump reads both pipes in one goroutine. The pipes are in an epoll set of their own,
// which keeps them in the order in which they became readable. The set itself is a file
// in the runtime's poller, so waiting for it blocks no thread and knows deadlines.
type epollPump struct {
	set    *os.File // nil without pipes
	epfd   int
	fds    [2]int // read ends by stream; -1 is closed
	output func(executor.Stream, []byte)

	from   *Order // nil for the order of the reads
	turns  *turns // nil while the order of writes is not known
	latest int    // the stream that was read last
	streak int    // how many bytes it gave since the other stream

	buf *[bufferSize]byte // nil while there is nothing to read
	pulse
	delivery
	done    chan struct{}
	closing sync.Mutex // held while fds changes, and by others while they look at it

	unwanted  [2]atomic.Bool // streams that run is to close
	finishing atomic.Bool    // run waits for nothing more
}

// newPump makes the pipes for the wanted streams and returns their write ends.
func newPump(cfg *Config, want [2]bool) (_ pump, ends [2]*os.File, err error) {
	p := &epollPump{
		fds: [2]int{-1, -1}, output: cfg.Output, from: cfg.Order, pulse: pulse{base: time.Now()},
		done: make(chan struct{}),
	}
	if !want[0] && !want[1] {
		return p, ends, nil
	}
	if err := p.open(want, &ends); err != nil {
		p.close()
		closeFiles(ends[:])
		return nil, [2]*os.File{}, err
	}
	p.watch()
	return p, ends, nil
}

// open makes the set and the pipes. With an error what was made stays open.
func (p *epollPump) open(want [2]bool, ends *[2]*os.File) (err error) {
	if p.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	err = unix.SetNonblock(p.epfd, true) // so that NewFile gives it to the poller
	p.set = os.NewFile(uintptr(p.epfd), "output pipes")
	if err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	for i, wanted := range want {
		if !wanted {
			continue
		}
		if ends[i], err = p.add(i); err != nil {
			return err
		}
	}
	return nil
}

// add makes the pipe of stream i and returns its write end, which blocks, as programs
// expect of their output.
func (p *epollPump) add(i int) (*os.File, error) {
	var fd [2]int
	if err := unix.Pipe2(fd[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	p.fds[i] = fd[0]
	end := os.NewFile(uintptr(fd[1]), executor.Stream(i).String())
	if err := unix.SetNonblock(fd[0], true); err != nil {
		return end, fmt.Errorf("pipe: %w", err)
	}
	// The kernel refuses when this user has many pipes; the usual size works too.
	_, _ = unix.FcntlInt(uintptr(fd[0]), unix.F_SETPIPE_SZ, pipeSize)
	ready := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}
	if err := unix.EpollCtl(p.epfd, unix.EPOLL_CTL_ADD, fd[0], &ready); err != nil {
		return end, fmt.Errorf("epoll: %w", err)
	}
	return end, nil
}

func (p *epollPump) eof() <-chan struct{} { return p.done }
func (p *epollPump) commandEnded()        {} // a pipe that has ended is not opened again

// delivered looks into the pipes first: what has left them was taken by a read that is
// in progress, or was delivered.
func (p *epollPump) delivered() bool {
	p.closing.Lock()
	defer p.closing.Unlock()
	return p.sizes() == [2]int{} && !p.under.Load()
}

func (p *epollPump) start() {
	if p.set == nil {
		close(p.done)
		return
	}
	go p.run()
}

// finish ends the wait of run.
func (p *epollPump) finish() {
	p.finishing.Store(true)
	if p.set != nil {
		_ = p.set.SetReadDeadline(time.Unix(1, 0)) // it fails when run has closed the set
	}
	<-p.done
}

// closeStream interrupts the wait of run, which closes the stream.
func (p *epollPump) closeStream(s executor.Stream) {
	p.unwanted[s].Store(true)
	if p.set != nil {
		_ = p.set.SetReadDeadline(time.Unix(1, 0)) // it fails when run has closed the set
	}
}

// closeUnwanted closes the streams that nothing reads any more.
func (p *epollPump) closeUnwanted() {
	for i := range p.fds {
		if p.fds[i] >= 0 && p.unwanted[i].Load() {
			p.unwatch()
			p.closeEnd(i)
		}
	}
}

// goOn reports whether a wait that was interrupted is to go on.
func (p *epollPump) goOn() bool {
	_ = p.set.SetReadDeadline(time.Time{}) // it is open
	return !p.finishing.Load()             // after that: finish may have set its own before
}

func (p *epollPump) close() {
	p.unwatch()
	for i := range p.fds {
		p.closeEnd(i)
	}
	if p.set != nil {
		_ = p.set.Close()
	}
}

func (p *epollPump) run() {
	defer close(p.done)
	defer p.close()
	defer p.giveBack()
	conn, err := p.set.SyscallConn()
	if err != nil {
		return // cannot be: the set is open
	}
	var ready [2]unix.EpollEvent
	var n int
	look := func(uintptr) bool {
		n = p.look(ready[:])
		return n > 0
	}
	for p.fds[0] >= 0 || p.fds[1] >= 0 {
		if n = p.look(ready[:]); n == 0 {
			p.giveBack()
			if err := conn.Read(look); err != nil && (!errors.Is(err, os.ErrDeadlineExceeded) || !p.goOn()) {
				p.closeUnwanted()
				p.sweep()
				return
			}
		}
		p.closeUnwanted()
		p.readReady(ready[:n])
	}
}

// look returns how many streams can be read now, the one that has waited longest
// first.
func (p *epollPump) look(ready []unix.EpollEvent) int {
	for {
		n, err := unix.EpollWait(p.epfd, ready, 0)
		if err != unix.EINTR {
			return max(n, 0)
		}
	}
}

// bulk is how many bytes a stream gives in one go before it counts as alone.
const bulk = 128 << 10

// readReady reads the streams that are ready.
func (p *epollPump) readReady(ready []unix.EpollEvent) {
	p.begin()
	defer p.over()
	// There is nothing to put in order while one stream is alone, and noting its turns
	// takes its writer a third of the time of a small write.
	if p.streak >= bulk && len(ready) == 1 && int(ready[0].Fd) == p.latest {
		p.unwatch()
		p.read(p.latest)
		return
	}
	inOrder := p.turns != nil
	if inOrder && p.readInOrder() {
		return
	}
	for _, e := range ready {
		if !inOrder || e.Events&unix.EPOLLHUP != 0 { // there is nothing to order after its end
			p.read(int(e.Fd))
		}
	}
	p.watch()
}

// watch begins to note turns, unless it does so already or there is only one stream.
func (p *epollPump) watch() {
	if p.turns == nil && p.from != nil && p.fds[0] >= 0 && p.fds[1] >= 0 {
		p.turns = p.from.watch(p.fds)
	}
}

// unwatch ends that.
func (p *epollPump) unwatch() {
	if p.turns != nil {
		p.turns.forget()
		p.turns = nil
	}
}

// read delivers what one read of stream i returns, and returns how many bytes that is.
func (p *epollPump) read(i int) int {
	b := p.readUpTo(i, p.memory())
	p.deliver(i, b)
	return len(b)
}

// readUpTo reads stream i once into b. At its end it closes the stream.
func (p *epollPump) readUpTo(i int, b []byte) []byte {
	for len(b) > 0 && p.fds[i] >= 0 {
		n, err := unix.Read(p.fds[i], b)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return nil
		case n > 0:
			return b[:n]
		}
		p.closeEnd(i)
	}
	return nil
}

// deliver gives bytes of stream i to Config.Output.
func (p *epollPump) deliver(i int, b []byte) {
	if len(b) == 0 {
		return
	}
	if i != p.latest {
		p.latest, p.streak = i, 0
	}
	p.streak += len(b)
	p.beat()
	p.output(executor.Stream(i), b)
}

// memory returns a buffer that is used until giveBack.
func (p *epollPump) memory() []byte {
	if p.buf == nil {
		p.buf = buffer()
	}
	return p.buf[:]
}

func (p *epollPump) giveBack() {
	if p.buf != nil {
		buffers.Put(p.buf)
		p.buf = nil
	}
}

// sweep reads what the pipes hold now. A process outside of the tree may hold a write
// end and go on writing, so it reads no more than a pipe can hold.
func (p *epollPump) sweep() {
	p.begin()
	defer p.over()
	for i := range p.fds {
		for left, n := pipeSize, 1; n > 0 && left > 0; left -= n {
			n = p.read(i)
		}
	}
}

// sizes returns how many bytes wait in each pipe.
func (p *epollPump) sizes() (size [2]int) {
	for i, fd := range p.fds {
		if fd >= 0 {
			size[i], _ = unix.IoctlGetInt(fd, unix.TIOCINQ)
		}
	}
	return size
}

// closeEnd closes a read end, which also takes it out of the set.
func (p *epollPump) closeEnd(i int) {
	p.closing.Lock()
	defer p.closing.Unlock()
	if p.fds[i] >= 0 {
		_ = unix.Close(p.fds[i])
		p.fds[i] = -1
	}
}

// inputPipe returns the two ends of a pipe for standard input: one that blocks, for the
// command, and one that does not, for the runtime's poller.
func inputPipe() (r, w *os.File, err error) {
	var fd [2]int
	if err := unix.Pipe2(fd[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("pipe: %w", err)
	}
	if err := unix.SetNonblock(fd[1], true); err != nil {
		_ = unix.Close(fd[0])
		_ = unix.Close(fd[1])
		return nil, nil, fmt.Errorf("pipe: %w", err)
	}
	return os.NewFile(uintptr(fd[0]), "stdin"), os.NewFile(uintptr(fd[1]), "stdin"), nil
}
