// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
)

// pumps copy between the caller's standard descriptors and pipes. At this level a command
// could open a descriptor again by its name in /proc, and get more rights than the
// descriptor has. A pipe has no more to give.
type pumps struct {
	pumps  []pump
	theirs []*os.File // the command's ends of the pipes
	stop   *os.File   // closing it ends the input pump; nil without one
	wg     sync.WaitGroup
}

// A pump copies one stream until it ends, a write fails, or stopped ends. It closes its
// files then.
type pump struct{ to, from, stopped *os.File }

// open returns the three descriptors that the command gets in place of files.
func (p *pumps) open(files [3]*os.File) (ends [3]*os.File, err error) {
	ends = files
	var ids [3]unix.Stat_t
	for i, f := range files {
		if err := control(f, func(fd int) error { return unix.Fstat(fd, &ids[i]) }); err != nil {
			return ends, fmt.Errorf("standard descriptor %d cannot be used: %w", i, err)
		}
		switch ids[i].Mode & unix.S_IFMT {
		case unix.S_IFIFO, unix.S_IFSOCK:
			continue
		case unix.S_IFREG, unix.S_IFCHR:
		default:
			return ends, &executor.RootError{
				Path: fmt.Sprintf("standard descriptor %d", i),
				Why:  "is neither a file, a terminal, a pipe nor a socket, and cannot be passed at the bwrap level",
				Fix:  "pass it through a pipe",
			}
		}
		if i == 2 && ends[1] != files[1] && ids[1].Dev == ids[2].Dev && ids[1].Ino == ids[2].Ino {
			ends[2] = ends[1] // writes to the same file keep their order
			continue
		}
		if ends[i], err = p.add(i == 0, f); err != nil {
			return ends, fmt.Errorf("standard descriptor %d: %w", i, err)
		}
	}
	return ends, nil
}

// add makes a pipe for a descriptor and returns the command's end. The descriptor is
// duplicated, because the caller may close it after the start.
func (p *pumps) add(input bool, f *os.File) (*os.File, error) {
	own, err := duplicate(f)
	if err != nil {
		return nil, err
	}
	r, w, err := halfPipe(input)
	if err != nil {
		own.Close()
		return nil, err
	}
	if !input {
		p.pumps, p.theirs = append(p.pumps, pump{to: own, from: r}), append(p.theirs, w)
		return w, nil
	}
	stopped, stop, err := os.Pipe()
	p.pumps, p.theirs = append(p.pumps, pump{to: w, from: own, stopped: stopped}), append(p.theirs, r)
	p.stop = stop
	return r, err
}

// halfPipe makes a pipe of which the command's end blocks, as programs expect, and ours
// waits in the runtime's poller.
func halfPipe(input bool) (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	ours := fds[0]
	if input {
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
	own := -1
	err := control(f, func(fd int) (err error) {
		own, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		return err
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(own), f.Name()), nil
}

// control calls f with the descriptor of a file, which stays open meanwhile.
func control(file *os.File, f func(fd int) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	if cerr := raw.Control(func(fd uintptr) { err = f(int(fd)) }); cerr != nil {
		return cerr
	}
	return err
}

// start starts to copy. The command has its ends.
func (p *pumps) start() {
	p.closeTheirs()
	for _, one := range p.pumps {
		p.wg.Go(one.run)
	}
}

// abandon closes everything when nothing was started.
func (p *pumps) abandon() {
	p.closeTheirs()
	for _, one := range p.pumps {
		one.close()
	}
	p.stop.Close() // it does nothing to a file that is nil or closed
}

// wait stops the input and waits for the output: the process tree has ended, so the pipes
// hold all that it wrote. They do not end while a process outside of the tree has them open.
// It may be called more than once.
func (p *pumps) wait() {
	p.stop.Close() // it does nothing to a file that is nil or closed
	for _, one := range p.pumps {
		if one.stopped == nil {
			_ = one.from.SetReadDeadline(time.Unix(1, 0)) // it fails when the pump has ended
		}
	}
	p.wg.Wait()
}

func (p *pumps) closeTheirs() {
	for _, f := range p.theirs {
		f.Close()
	}
	p.theirs = nil
}

func (p pump) close() {
	p.to.Close()
	p.from.Close()
	p.stopped.Close()
}

func (p pump) run() {
	defer p.close()
	b := make([]byte, 64<<10)
	for {
		if p.stopped != nil && !p.readable() {
			return
		}
		n, err := p.from.Read(b)
		if n > 0 {
			if _, werr := p.to.Write(b[:n]); werr != nil {
				return // the reader has ended
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			p.sweep(b)
		}
		if err != nil {
			return
		}
	}
}

// sweep copies what the pipe holds now. A process outside of the tree may go on writing, so
// that is no more than a pipe can hold.
func (p pump) sweep(b []byte) {
	_ = control(p.from, func(fd int) error {
		left, err := unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0)
		for err == nil && left > 0 {
			var n int
			if n, err = unix.Read(fd, b); n <= 0 {
				break
			}
			left -= n
			_, err = p.to.Write(b[:n])
		}
		return err
	})
}

// readable blocks until from can be read, and returns false when the pump is stopped.
func (p pump) readable() bool {
	err := control(p.from, func(from int) error {
		return control(p.stopped, func(stopped int) error {
			fds := []unix.PollFd{{Fd: int32(from), Events: unix.POLLIN},
				{Fd: int32(stopped), Events: unix.POLLIN}}
			for {
				if _, err := unix.Poll(fds, -1); !errors.Is(err, unix.EINTR) {
					if err == nil && fds[1].Revents != 0 {
						err = os.ErrClosed
					}
					return err
				}
			}
		})
	})
	return err == nil
}
