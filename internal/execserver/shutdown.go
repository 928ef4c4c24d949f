// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Shutdown ends every session, run and process, and waits until no process is left. Clients get
// what those printed, their exits, and the answers to requests that wait; then their connections end
// properly. What a client has not taken after Options.Drain, or when ctx ends, it does not get. Further
// connections, and processes of those that there are, are refused at once. It may be called more than
// once.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	sessions := slices.Collect(maps.Values(s.sessions))
	clear(s.sessions)
	s.mu.Unlock()
	s.stop(ErrClosed)
	most := s.opts.Drain
	if s.runs != nil {
		most += s.runs.Grace()
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	defer context.AfterFunc(ctx, s.cut)() // also ends what waits for a client below
	ended, err := s.endAll(sessions)
	s.drain(ctx, ended)
	s.cut()
	for _, ses := range sessions {
		ses.free()
	}
	if s.runs != nil {
		s.runs.Close()
	}
	s.near.Wait()
	return err
}

// Close is [Server.Shutdown] without waiting for clients.
func (s *Server) Close() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cut()
	return s.Shutdown(ctx)
}

// cut ends all connections.
func (s *Server) cut() {
	s.end()
	s.mu.Lock()
	connections := slices.Collect(maps.Keys(s.connections))
	s.mu.Unlock()
	for _, c := range connections {
		c.cut()
	}
}

// endAll ends all processes and runs, and returns when the last message about them was queued. Ended
// are the owners of runs that were alive.
func (s *Server) endAll(sessions []*session) (ended map[string]bool, err error) {
	var ends sync.WaitGroup
	for _, ses := range sessions {
		ses.end()
	}
	if s.runs != nil {
		ends.Go(func() { ended = s.runs.Stop() })
	}
	err = s.exec.Close()
	s.work.Wait()
	ends.Wait()
	return ended, err
}

// drain ends all connections properly. Output and results of runs are not sent before a client asks,
// so clients of runs that have just ended may read them before, for half of the time.
func (s *Server) drain(ctx context.Context, ended map[string]bool) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Drain/2)
	defer cancel()
	s.mu.Lock()
	connections := slices.Collect(maps.Keys(s.connections))
	s.mu.Unlock()
	var draining sync.WaitGroup
	for _, c := range connections {
		draining.Go(func() {
			if ended[c.credential] && c.asksForRuns() {
				select {
				case <-c.life.Done(): // the client has what it wants
				case <-ctx.Done():
				}
			}
			c.last()
			c.work.Wait()
			c.conn.Leave()
		})
	}
	draining.Wait()
}

// asksForRuns reports whether the client has asked for a run.
func (c *connection) asksForRuns() bool {
	c.turn.Lock()
	defer c.turn.Unlock()
	return c.usesRuns
}

// last performs no further messages, and what was asked for before about files.
func (c *connection) last() {
	c.turn.Lock()
	defer c.turn.Unlock()
	if !c.over {
		c.over = true
		c.files.finish()
	}
}
