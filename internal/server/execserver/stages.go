// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/server/stages"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// stageMethods are methods about the stages of a client, which are those of its credential, for clients that
// ask for extension methods. They are performed beside all other requests.
var stageMethods = sync.OnceValue(func() map[string]method {
	all := map[string]method{}
	for name, decode := range stages.Methods() {
		all[name] = method{family: "stage",
			decode: func(params json.RawMessage) (func(*connection, wire.ID), error) {
				perform, err := decode(params)
				return func(c *connection, id wire.ID) {
					c.beside(id, func(ctx context.Context) (any, error) {
						stager, _ := any(&c.server.exec).(executor.Stager) // not on every system
						by := &stages.Server{Stager: stager, Owner: c.credential, Await: c.awaitStages}
						if log := c.server.opts.Audit; log != nil {
							by.Note = log.Note
						}
						return perform(ctx, by)
					})
				}, err
			}}
	}
	return all
})

// awaitStages waits for a change of the stages, which other processes of this user change, too.
func (c *connection) awaitStages(ctx context.Context, p *wire.ListWait, version func() string) error {
	if err := c.server.watchStages(); err != nil {
		return err
	}
	changed := func() []<-chan struct{} { return []<-chan struct{}{c.server.stages.Next()} }
	_, err := c.await(ctx, p, changed, version)
	return err
}

// followStages watches the directories of stages until the server ends.
func (s *Server) followStages() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	end, err := dirs.Watch(dirs.Stages, s.stages.Tell)
	if err == nil {
		s.near.Go(func() {
			<-s.life.Done()
			end()
		})
	}
	return err
}
