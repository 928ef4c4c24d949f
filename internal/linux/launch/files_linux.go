// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// fds are the numbers of the descriptors of one launch; 0 means none.
type fds struct {
	stdio  [3]int
	self   int // a pidfd of this process
	status int // write end of the pipe on which the reaper reports
	reaper int // the reaper's image

	observer, terminal, listen, share, pass, cgroup int   // see Files
	hold, join, enter, trees                        []int // see Files
	extra                                           map[int]int

	// group is an open list of a group that the task writes itself into first of all.
	group int

	// numbers are taken in the child's table, so that it can put there what needs a
	// number that is known before.
	numbers [layerCount]int
}

// duplicate gives each descriptor of a launch a number above those that a script gives
// out: steps move descriptors one after the other, and must not overwrite one that a
// later step needs. release closes the duplicates; the child has copies.
func (l *Launcher) duplicate(s *Script, f Files) (n fds, release func(), err error) {
	n = fds{self: l.self, reaper: l.reaper, extra: make(map[int]int)}
	last := maxPassed
	for number := range f.Extra {
		last = max(last, number)
	}
	var own []int
	release = func() {
		for _, fd := range own {
			unix.Close(fd)
		}
	}
	take := func(to *int, fd int, terr error) {
		if err = errors.Join(err, terr); terr == nil {
			own, *to = append(own, fd), fd
		}
	}
	give := func(to *int, file *os.File) {
		fd, err := above(file, last)
		take(to, fd, err)
	}
	n.all(&f, give)
	for i := range layersOf(s) {
		fd, err := unix.FcntlInt(uintptr(l.self), unix.F_DUPFD_CLOEXEC, last+1)
		take(&n.numbers[i], fd, err)
	}
	if err != nil {
		release()
		return fds{}, nil, fmt.Errorf("launch: duplicate a descriptor: %w", err)
	}
	return n, release, nil
}

// layersOf returns how many directories an overlay of a script is made of at most.
func layersOf(s *Script) int {
	most := 0
	for i := range s.Steps {
		if st := &s.Steps[i]; st.Op == OpOverlay && st.Layers != nil {
			n := layerCount - MaxLower
			for _, l := range st.Layers.Lower {
				if l != (Layer{}) {
					n++
				}
			}
			most = max(most, n)
		}
	}
	return most
}

// above duplicates a file to a number above one.
func above(file *os.File, last int) (fd int, err error) {
	raw, err := file.SyscallConn() // an error for nil
	if err != nil {
		return -1, err
	}
	cerr := raw.Control(func(from uintptr) { fd, err = unix.FcntlInt(from, unix.F_DUPFD_CLOEXEC, last+1) })
	return fd, errors.Join(err, cerr)
}

// all gives each file of a launch its number.
func (n *fds) all(f *Files, give func(to *int, file *os.File)) {
	for i, file := range []*os.File{f.Stdin, f.Stdout, f.Stderr} {
		give(&n.stdio[i], file)
	}
	for _, g := range []struct {
		to   *int
		file *os.File
	}{{&n.observer, f.Observer}, {&n.terminal, f.Terminal}, {&n.listen, f.Listen}, {&n.share, f.Share},
		{&n.pass, f.Status}, {&n.cgroup, f.Cgroup}} {
		if g.file != nil {
			give(g.to, g.file)
		}
	}
	for _, file := range f.Hold {
		if file != nil {
			n.hold = append(n.hold, 0)
			give(&n.hold[len(n.hold)-1], file)
		}
	}
	for number, file := range f.Extra {
		var fd int
		give(&fd, file)
		n.extra[number] = fd
	}
	for _, g := range []struct {
		to    *[]int
		files []*os.File
	}{{&n.join, f.Join}, {&n.enter, f.Enter}, {&n.trees, f.Trees}} {
		*g.to = make([]int, len(g.files))
		for i, file := range g.files {
			give(&(*g.to)[i], file)
		}
	}
}

// numbers returns the numbers of open files, which stay open.
func numbers(files []*os.File) []int {
	out := make([]int, len(files))
	for i, f := range files {
		if raw, err := f.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { out[i] = int(fd) })
		}
	}
	return out
}

// raise moves a descriptor above the standard ones. It closes the one that it was given.
func raise(n int) (int, error) {
	if n > 2 {
		return n, nil
	}
	up, err := unix.FcntlInt(uintptr(n), unix.F_DUPFD_CLOEXEC, 3)
	unix.Close(n)
	if err != nil {
		return -1, fmt.Errorf("launch: duplicate a descriptor: %w", err)
	}
	return up, nil
}

// statusPipe is the pipe on which the reaper reports how the command ended. The reading
// end waits in the runtime's poller, so no thread is blocked by it.
func statusPipe() (*os.File, int, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, -1, fmt.Errorf("launch: status pipe: %w", err)
	}
	for i := range p {
		up, err := raise(p[i])
		if err != nil {
			unix.Close(p[1-i])
			return nil, -1, err
		}
		p[i] = up
	}
	if err := unix.SetNonblock(p[0], true); err != nil {
		unix.Close(p[0])
		unix.Close(p[1])
		return nil, -1, fmt.Errorf("launch: status pipe: %w", err)
	}
	return os.NewFile(uintptr(p[0]), "status"), p[1], nil
}
