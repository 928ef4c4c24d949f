// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// SessionInfo describes a session.
type SessionInfo struct {
	ID         string
	Credential string // of its clients
	Started    time.Time
	Attached   bool // it has a connection
	// Living counts its processes and runs that are alive or starting.
	Living int
}

// An origin is what is known of a session as long as it lives, or a run that it has started. Its fields
// without a word are fixed, and those below are guarded by the lock of the server.
type origin struct {
	id, credential string
	started        time.Time

	session *session // nil when it is gone
	ended   bool     // nothing starts for it any more
	runs    map[*runs.Run]struct{}
}

// Sessions returns the sessions that there are, those that can be resumed, and those that are gone but have
// a run that is alive, the oldest first.
func (s *Server) Sessions() []SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]SessionInfo, 0, len(s.origins))
	for _, o := range s.origins {
		info := SessionInfo{ID: o.id, Credential: o.credential, Started: o.started, Living: len(o.runs)}
		if o.session != nil {
			_, detached := o.session.since()
			processes, _, _ := o.session.processes.Count()
			info.Attached, info.Living = !detached, info.Living+processes
		}
		list = append(list, info)
	}
	slices.SortFunc(list, func(a, b SessionInfo) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// EndSession ends the session with an ID, its processes and its runs, and cuts its connection when that has
// got what is left to tell, at the latest after Options.Drain and the longest time that a run has between
// SIGTERM and SIGKILL. It waits until all of them have ended, and reports false if there is no such session.
func (s *Server) EndSession(id string) bool {
	return s.endOrigins(func(o *origin) bool { return o.id == id })
}

// EndOf is EndSession for all sessions of the credentials that match, and all runs of theirs. Match must not
// call the Server. Sessions that are opened after the call are not ended.
func (s *Server) EndOf(match func(credential string) bool) bool {
	return s.endOrigins(func(o *origin) bool { return match(o.credential) })
}

func (s *Server) endOrigins(match func(*origin) bool) bool {
	s.mu.Lock()
	var all sync.WaitGroup
	found := false
	for _, o := range s.origins {
		if !match(o) {
			continue
		}
		found, o.ended = true, true
		list := make([]*runs.Run, 0, len(o.runs))
		for r := range o.runs {
			list = append(list, r)
		}
		ses := o.session
		if ses == nil {
			all.Go(func() { endRuns(list) })
			continue
		}
		s.unlist(ses)
		all.Go(func() {
			ses.finish(list)
			s.forget(ses)
		})
	}
	s.mu.Unlock()
	all.Wait()
	return found
}

// endRuns ends runs and waits for that.
func endRuns(list []*runs.Run) {
	var all sync.WaitGroup
	for _, r := range list {
		all.Go(r.End)
	}
	all.Wait()
}

// unlist has a session not be resumed any more. The caller holds mu.
func (s *Server) unlist(ses *session) {
	if s.sessions[ses.id] == ses {
		delete(s.sessions, ses.id)
	}
}

// retire ends a session that cannot be resumed any more, but not its runs.
func (s *Server) retire(ses *session) {
	ses.stop()
	ses.await()
	s.forget(ses)
}

// forget forgets a session of which nothing is left but runs.
func (s *Server) forget(ses *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ses.origin.session = nil
	s.tidy(ses.origin)
}

// tidy forgets an origin of which nothing is left. The caller holds mu.
func (s *Server) tidy(o *origin) {
	if o.session == nil && len(o.runs) == 0 && s.origins[o.id] == o {
		delete(s.origins, o.id)
	}
}

// reserveRun gives a session a run if the server admits it, and has the request tell when it is over.
func (s *Server) reserveRun(from *origin, q *runs.Request) (*runs.Run, *wire.Error) {
	leave, failure := s.admit(from.id)
	if failure != nil {
		return nil, failure
	}
	run, err := s.runs.Reserve(from.credential)
	if err != nil {
		leave()
		return nil, runFailure(err)
	}
	s.mu.Lock()
	now := s.origins[from.id] // it may just have been forgotten
	ended := from.ended || now != nil && now != from
	if !ended {
		from.runs[run] = struct{}{}
		s.origins[from.id] = from
	}
	s.mu.Unlock()
	if ended {
		run.Release()
		leave()
		return nil, s.ending()
	}
	q.Over = func() {
		s.mu.Lock()
		delete(from.runs, run)
		s.tidy(from)
		s.mu.Unlock()
		leave()
	}
	return run, nil
}

// ending returns the error for a start that comes when its session is ending.
func (s *Server) ending() *wire.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return refuse("the server is closing")
	}
	return refuse("the session has ended")
}
