// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
)

// Peers are the commands of one shared sandbox. They reach each other's unix sockets only where they
// have equal rights: through such a socket a process can pass an open descriptor, and with it
// what only its own policy gives. The zero Peers is ready for use.
type Peers struct {
	sockets tasks.Registry // knows which sockets are whose
	asked   atomic.Bool    // as Supervisor.asked

	mu      sync.Mutex
	members []member
}

// A member is the supervisor of one of them.
type member interface{ lookFor(group string) }

// join adds the command of a supervisor. Without Peers there is none.
func (s *Supervisor) join() {
	p := s.cfg.Peers
	if p == nil {
		return
	}
	p.mu.Lock()
	p.members = append(p.members, s)
	p.mu.Unlock()
	p.sockets.Join(s, s.cfg.Group)
}

func (s *Supervisor) leave() {
	p := s.cfg.Peers
	if p == nil {
		return
	}
	p.mu.Lock()
	p.members = slices.DeleteFunc(p.members, func(m member) bool { return m == member(s) })
	p.mu.Unlock()
	p.sockets.Leave(s)
}

// publish tells the others of a socket that the command has bound.
func (s *Supervisor) publish(l listening) {
	if p := s.cfg.Peers; p != nil {
		p.sockets.Bound(s, s.cfg.Group, tasks.File{Dev: l.dev, Ino: l.ino})
	}
}

// forgetSocket gives up the file of a socket.
func (s *Supervisor) forgetSocket(l listening) {
	if p := s.cfg.Peers; p != nil {
		p.sockets.Forget(tasks.File{Dev: l.dev, Ino: l.ino})
	}
	unix.Close(l.fd)
}

// publishName tells the others of the abstract name of a socket, and reports whether it has one.
func (s *Supervisor) publishName(sock int) bool {
	p := s.cfg.Peers
	if p == nil {
		return false
	}
	name, ok := tasks.AbstractName(sock)
	if ok {
		p.sockets.Named(s, s.cfg.Group, name)
	}
	return ok
}

// reachesName reports whether the command may connect to an abstract name of its network. The caller does not
// hold judging.
func (c *connecting) reachesName() bool {
	p := c.cfg.Peers
	name, ok := c.addr.Abstract()
	if p == nil || !ok {
		return p == nil
	}
	c.lookAtPeers()
	c.judging.Lock()
	c.keepBound(true)
	c.judging.Unlock()
	return p.sockets.ReachesName(c.cfg.Group, name)
}

// reachesFile reports whether the command may connect to the socket of a file because another command of
// equal rights has bound it.
func (s *Supervisor) reachesFile(f *facts) bool {
	p := s.cfg.Peers
	return p != nil && p.sockets.ReachesFile(s.cfg.Group, tasks.File{Dev: f.dev, Ino: f.ino})
}

// lookAtPeers has the other commands look at the sockets that they have bound and not listened on: datagram
// sockets take messages at once. The caller does not hold judging.
func (s *Supervisor) lookAtPeers() {
	p := s.cfg.Peers
	if p == nil {
		return
	}
	p.mu.Lock()
	others := slices.Clone(p.members)
	p.mu.Unlock()
	for _, m := range others {
		if m != member(s) {
			m.lookFor(s.cfg.Group)
		}
	}
}

// lookFor is keepBound without a call of a task, for a command of the same group.
func (s *Supervisor) lookFor(group string) {
	s.mu.Lock()
	l := s.listener
	s.mu.Unlock()
	if l == nil || s.cfg.Group != group || s.pending.Load() == 0 {
		return
	}
	r := &request{Supervisor: s, l: l, scratch: new(scratch)}
	s.judging.Lock()
	defer s.judging.Unlock()
	if s.ctx.Err() == nil {
		r.keepBound(true)
	}
}

// Add has an unobserved command counted, with which no other one has equal rights, until the function that it
// returns is called. No name and no file is known of it, so none is reached.
func (p *Peers) Add() (leave func()) {
	own := new(int)
	p.sockets.Join(own, fmt.Sprintf("unobserved %p", own))
	return func() { p.sockets.Leave(own) }
}
