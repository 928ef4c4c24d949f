// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// Shutdown ends every session, run and process, and waits until no process is left. Clients get
// what those printed, their exits, and the answers to requests that wait; then their connections end
// properly. What a client has not taken after Options.Drain, or when ctx ends, it does not get. Further
// connections, and processes of those that there are, are refused at once. What the system holds up, such
// as a request about a file on a disk that does not answer, is left as it is; where that is the start or
// the end of a process, the error is ErrStuck. It may be called more than once.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	sessions := slices.Collect(maps.Values(s.sessions))
	clear(s.sessions)
	clear(s.origins)
	s.mu.Unlock()
	s.stop(ErrClosed)
	ctx, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	defer context.AfterFunc(ctx, s.cut)() // also ends what waits for a client below
	over := make(chan error, 1)
	go func() {
		ended, err := s.endAll(sessions)
		s.drain(ctx, ended)
		s.cut()
		_ = s.spills.Close() // without names they are gone with the process at the latest
		if s.runs != nil {
			s.runs.Close()
		}
		s.near.Wait()
		over <- err
	}()
	select {
	case err := <-over:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(stuckTime)
	defer late.Stop()
	select {
	case err := <-over:
		return err
	case <-late.C:
		return ErrStuck
	}
}

// patience is how long an end waits for clients.
func (s *Server) patience() time.Duration {
	if s.runs == nil {
		return s.opts.Drain
	}
	return s.opts.Drain + s.runs.Grace()
}

// stuckTime is how long Shutdown waits beyond its time for what it has killed.
const stuckTime = 2 * lateTime

// ErrStuck is returned by Shutdown when something does not end although it was killed.
var ErrStuck = errors.New("something that was started does not end, because the system holds it up; what is left ends with this process")

// maxLeft is how many goroutines of connections that have ended may be left: each may hold a thread.
const maxLeft = 256

// leaves counts what a connection has left in progress, until done is closed.
func (s *Server) leaves(done <-chan struct{}) {
	s.left.Add(1)
	go func() {
		<-done
		s.left.Add(-1)
	}()
}

// hangs returns why no further connection may ask for files; nil when it may.
func (s *Server) hangs() *wire.Error {
	if s.left.Load() < maxLeft {
		return nil
	}
	return refuse(fmt.Sprintf("limit of requests about files without an answer (%d) reached by connections that have ended; "+
		"end or repair what their file system waits for", maxLeft))
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
			c.settle()
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
