// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/sallyport-dev/sallyport/executor"
	"golang.org/x/sys/unix"
)

// pumps carry bytes between the caller's standard descriptors and pipes. They
// are for a level at which a command could open a descriptor anew, by its name
// in /proc, and get more than was handed over. Pipes have nothing more to give.
type pumps struct {
	ours  []func()   // what runs until the streams end
	ends  []*os.File // the command's ends of our pipes
	pipes []*os.File // our ends
	stop  *os.File   // its end ends the input pump
	once  sync.Once
	wg    sync.WaitGroup
}

// newPumps returns what the command gets in place of three descriptors.
func newPumps(files [3]*os.File) (_ *pumps, ends [3]*os.File, err error) {
	p := new(pumps)
	ends = files
	defer func() {
		if err != nil {
			p.started()
			p.abandon()
		}
	}()
	var ids [3]unix.Stat_t
	for i, f := range files {
		if ids[i], err = statOf(f); err != nil {
			return nil, ends, fmt.Errorf("standard descriptor %d cannot be used: %w", i, err)
		}
		switch ids[i].Mode & unix.S_IFMT {
		case unix.S_IFIFO, unix.S_IFSOCK:
			continue
		case unix.S_IFREG, unix.S_IFCHR:
		default:
			return nil, ends, &executor.RootError{
				Path: fmt.Sprintf("standard descriptor %d", i), Why: "is neither a file, a terminal, a pipe nor a socket, and cannot be handed over at the bwrap level",
				Fix: "pass it through a pipe",
			}
		}
		if i == 2 && ends[1] != files[1] && ids[1].Dev == ids[2].Dev && ids[1].Ino == ids[2].Ino {
			ends[2] = ends[1] // what goes to the same place keeps its order
			continue
		}
		if ends[i], err = p.add(i, f); err != nil {
			return nil, ends, fmt.Errorf("standard descriptor %d: %w", i, err)
		}
	}
	return p, ends, nil
}

func statOf(f *os.File) (st unix.Stat_t, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return st, err
	}
	if cerr := raw.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &st) }); cerr != nil {
		err = cerr
	}
	return st, err
}

// add makes a pipe for a descriptor. The file is the caller's and may be closed
// by it when the start is over, so it is duplicated.
func (p *pumps) add(i int, f *os.File) (*os.File, error) {
	own, err := duplicate(f)
	if err != nil {
		return nil, err
	}
	p.pipes = append(p.pipes, own)
	r, w, err := halfPipe(i == 0)
	if err != nil {
		return nil, err
	}
	if i > 0 {
		p.ends, p.pipes = append(p.ends, w), append(p.pipes, r)
		p.ours = append(p.ours, func() { carry(own, r, nil); r.Close(); own.Close() })
		return w, nil
	}
	p.ends, p.pipes = append(p.ends, r), append(p.pipes, w)
	listen, stop, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.stop = stop
	p.pipes = append(p.pipes, listen)
	p.ours = append(p.ours, func() { carry(w, own, listen); w.Close(); own.Close(); listen.Close() })
	return r, nil
}

// halfPipe makes a pipe of which the command's end blocks, as programs expect,
// and ours waits in the runtime's poller. The command reads or writes.
func halfPipe(reads bool) (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	ours := fds[0]
	if reads {
		ours = fds[1]
	}
	if err := unix.SetNonblock(ours, true); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe"), nil
}

// duplicate gives a file a descriptor of its own; both share offset and flags.
func duplicate(f *os.File) (*os.File, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	n := -1
	if cerr := raw.Control(func(fd uintptr) { n, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 3) }); cerr != nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(n), f.Name()), nil
}

// run begins to carry.
func (p *pumps) run() {
	for _, f := range p.ours {
		p.wg.Go(f)
	}
}

// started closes the command's ends, which it has or will never have.
func (p *pumps) started() {
	for _, f := range p.ends {
		f.Close()
	}
	p.ends = nil
}

// abandon frees everything when nothing was started.
func (p *pumps) abandon() {
	for _, f := range p.pipes {
		f.Close()
	}
	if p.stop != nil {
		p.stop.Close()
	}
}

// wait ends the input and waits for the output: the tree has ended, so its pipes
// end too. It may be called more than once.
func (p *pumps) wait() {
	p.once.Do(func() {
		if p.stop != nil {
			p.stop.Close()
		}
	})
	p.wg.Wait()
}

// carry copies until an end, an error, or until the other end of stop is closed.
// A failed write is the reader's end, and nobody's fault.
func carry(to, from, stop *os.File) {
	b := make([]byte, 64<<10)
	for {
		if stop != nil && !readable(from, stop) {
			return
		}
		n, err := from.Read(b)
		if n > 0 {
			if _, werr := to.Write(b[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// readable blocks until from can be read, and reports whether it came to that
// before stop ended.
func readable(from, stop *os.File) bool {
	ok := false
	wait := func(in, end uintptr) {
		fds := []unix.PollFd{{Fd: int32(in), Events: unix.POLLIN}, {Fd: int32(end), Events: unix.POLLIN}}
		for {
			if _, err := unix.Poll(fds, -1); !errors.Is(err, unix.EINTR) {
				ok = err == nil && fds[1].Revents == 0
				return
			}
		}
	}
	raw, err := from.SyscallConn()
	rawStop, err2 := stop.SyscallConn()
	if err != nil || err2 != nil {
		return false
	}
	_ = raw.Control(func(in uintptr) {
		_ = rawStop.Control(func(end uintptr) { wait(in, end) })
	})
	return ok
}
