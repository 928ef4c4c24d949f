// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"maps"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// observing are the methods for a connection that observes the session of another one. None of them
// changes anything.
var observing = map[string]bool{
	"initialize": true, "environment/info": true, "environment/status": true, "process/list": true, "process/read": true,
}

// observe lets a connection look at a session. A session of another credential is as unknown as one
// that does not exist. The connection ends with the session.
func (s *Server) observe(c *connection, id string) (*session, *wire.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ses := s.sessions[id]
	if ses == nil || ses.credential != c.credential || !ses.watchedBy(c) {
		return nil, refuse("unknown session id " + id)
	}
	return ses, nil
}

// watchedBy adds an observer, and reports false when the session has ended.
func (s *session) watchedBy(c *connection) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	if s.observers == nil {
		s.observers = make(map[*connection]struct{})
	}
	s.observers[c] = struct{}{}
	return true
}

// unwatch removes an observer.
func (s *session) unwatch(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.observers, c)
}

// cutObservers ends the connections of observers of a session that has ended.
func (s *session) cutObservers() {
	s.mu.Lock()
	observers := slices.Collect(maps.Keys(s.observers))
	s.mu.Unlock()
	for _, c := range observers {
		c.cut()
	}
}
