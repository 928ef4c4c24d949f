// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/local"
	osprocess "github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

const (
	// maxProcesses is how many processes of a session run at once.
	maxProcesses = 256
	// maxClosed is how many processes of a session that have ended are kept for reads, and
	// maxClosedBytes how much of their output.
	maxClosed      = 4096
	maxClosedBytes = 64 << 20
	// closedTime is how long they are kept while the session has a connection.
	closedTime = 80 * time.Second
)

// A session owns processes. It has at most one connection at a time.
type session struct {
	server     *Server
	id         string
	credential string
	origin     *origin
	sharing    local.Sharing // starts its processes
	lost       bool          // a server before this one had it: it starts nothing

	mu         sync.Mutex
	holder     *connection   // has it; nil for none
	left       chan struct{} // closed when the holder has left
	connection *connection   // gets its events; nil before the answer to initialize, and without one
	detachedAt time.Time
	timer      *time.Timer // while it is not attached
	observers  map[*connection]struct{}
	stopped    bool

	// processes weigh the bytes of their output and arguments. Their time stands still without a
	// connection: the next one still has to read.
	processes osprocess.Table[*process]
}

// newSession returns a session without a connection.
func newSession(s *Server, id, credential string) *session {
	ses := &session{server: s, id: id, credential: credential}
	ses.origin = &origin{id: id, credential: credential, started: time.Now(), session: ses,
		runs: make(map[*runs.Run]struct{})}
	ses.sharing.Executor = &s.exec
	p := &ses.processes
	p.Ended, p.Weight, p.Time, p.Drop = maxClosed, maxClosedBytes, closedTime, (*process).free
	return ses
}

// attach claims the session for a connection. If another one has it, it returns that, and what is
// closed when that has left.
func (s *session) attach(c *connection) (other *connection, left <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holder != nil {
		return s.holder, s.left
	}
	s.holder, s.left = c, make(chan struct{})
	if s.timer != nil {
		s.timer.Stop()
	}
	s.processes.Resume()
	return nil, nil
}

// follow sends events to c from now on.
func (s *session) follow(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connection = c
}

// detach ends what attach began. After the time, expire is called, if it is not nil.
func (s *session) detach(after time.Duration, expire func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holder, s.connection, s.detachedAt = nil, nil, time.Now()
	s.processes.Pause()
	close(s.left)
	if expire != nil {
		s.timer = time.AfterFunc(max(after, 0), expire)
	}
}

// since returns when the session lost its connection, and false when it has one.
func (s *session) since() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.detachedAt, s.holder == nil
}

// receiver returns the connection that gets events; nil for none.
func (s *session) receiver() *connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connection
}

// isStopped reports that stop was called.
func (s *session) isStopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// stop ends all processes of a session that the server has forgotten, and the connections of its
// observers.
func (s *session) stop() {
	s.end()
	s.cutObservers()
	s.free()
	_ = s.sharing.Close() // what could not be removed is when a server starts
}

// launch starts a process, in the shared sandbox of the session if it is confined.
func (s *session) launch(ctx context.Context, spec *executor.Spec) (executor.Process, error) {
	if s.server.opts.Isolate {
		return s.server.exec.Start(ctx, spec)
	}
	return s.sharing.Start(ctx, spec)
}

// finish ends a session that cannot be resumed any more, and waits until its processes and these runs have
// ended. Its connection gets what is left to tell for a while, and is cut.
func (s *session) finish(list []*runs.Run) {
	s.end()
	s.mu.Lock()
	c := s.holder
	s.mu.Unlock()
	if c != nil {
		late := time.AfterFunc(s.server.patience(), c.cut)
		defer late.Stop()
	}
	endRuns(list)
	s.await()
	if c != nil {
		c.conn.Finish()
		c.cut()
	}
	s.stop()
}

// await waits until the processes of a session that starts none any more have ended.
func (s *session) await() {
	live, _ := s.processes.List()
	for _, p := range live {
		<-p.over
	}
}

// free frees the disk.
func (s *session) free() {
	for _, p := range s.list() {
		p.free()
	}
}

// end ends all processes of a session that the server has forgotten. It does not wait for starts:
// what starts meanwhile ends itself.
func (s *session) end() {
	s.mu.Lock()
	s.stopped = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	s.processes.Close()
	for _, p := range s.list() {
		select {
		case <-p.started:
			p.stop()
		default:
		}
	}
}

// reserve makes a process that is about to start.
func (s *session) reserve(w *wire.Start) (*process, *wire.Error) {
	p := newProcess(s, w)
	place, err := s.processes.Reserve(maxProcesses)
	if err == nil {
		p.place = place
		if _, err = place.Enter(p.id, p); err != nil {
			place.End(0)
		}
	}
	switch {
	case err == nil:
		return p, nil
	case errors.Is(err, osprocess.ErrTableClosed):
		return nil, s.server.ending()
	case errors.Is(err, osprocess.ErrTableTaken) || s.find(p.id) != nil:
		return nil, refuse("process " + p.id + " already exists")
	}
	return nil, refuse(fmt.Sprintf("process limit (%d) reached; end a process of this session first",
		maxProcesses))
}

// find returns a process; nil when there is none.
func (s *session) find(id string) *process {
	p, _ := s.processes.Find(id)
	return p
}

// list returns all processes, in the order in which they were asked for.
func (s *session) list() []*process {
	live, ended := s.processes.List()
	return slices.SortedFunc(slices.Values(append(ended, live...)),
		func(a, b *process) int { return a.asked.Compare(b.asked) })
}
