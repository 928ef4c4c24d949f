// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"context"
	"fmt"
	"maps"

	"github.com/sallyport-dev/sallyport/internal/server/files"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// The bounds of watches. A user has 128 instances of inotify by default.
const (
	maxWatches    = 16
	maxWatchPaths = 256 // of one watch
)

// watches are the watches of a connection, by their IDs. They are for the goroutine of
// connection.serve.
type watches map[uint64]watch

// A watch is one of them. Its life has ended when it is over.
type watch struct {
	life context.Context
	end  context.CancelFunc
}

// watchMissing watches for paths in place of the watch with the same ID. A watch ends with its
// notification.
func (c *connection) watchMissing(id wire.ID, w *wire.WatchMissing) {
	if w, ok := c.watches[w.WatchID]; ok {
		w.end()
	}
	maps.DeleteFunc(c.watches, func(_ uint64, w watch) bool { return w.life.Err() != nil })
	paths, failure := c.watched(w)
	switch {
	case failure != nil:
		c.fail(id, failure)
	case len(paths) == 0:
		c.answer(id, wire.WatchMissingResult{})
	default:
		if c.watches == nil {
			c.watches = make(watches)
		}
		life, end := context.WithCancel(c.life)
		stop := context.AfterFunc(c.server.serving, end)
		c.watches[w.WatchID] = watch{life, end}
		c.work.Go(func() {
			defer end()
			defer stop()
			c.watch(life, id, w.WatchID, paths)
		})
	}
}

// watched returns the paths of a watch, or why there is none.
func (c *connection) watched(w *wire.WatchMissing) ([]string, *wire.Error) {
	switch {
	case !files.CanWatch:
		return nil, refuse("fs/watchMissing is not supported on this system")
	case c.server.hidesFiles():
		return nil, nil // nor does the answer tell what exists
	case w.Sandbox != nil:
		return nil, refuse("fs/watchMissing in a sandbox is not supported by this exec-server; watch without one")
	case len(w.Missing) > maxWatchPaths:
		return nil, refuse(fmt.Sprintf("at most %d paths can be watched at once", maxWatchPaths))
	case len(w.Missing) > 0 && len(c.watches) >= maxWatches:
		return nil, refuse(fmt.Sprintf("limit of watches (%d) reached; end one by watching nothing with its watchId", maxWatches))
	}
	host, _ := c.server.exec.Host(c.life) // it never fails on this machine
	s := &files.Server{System: host.OS}
	paths := make([]string, len(w.Missing))
	for i, uri := range w.Missing {
		path, err := s.Path(uri)
		if err != nil {
			return nil, files.Failure(err)
		}
		paths[i] = path
	}
	return paths, nil
}

// watch answers the request for a watch and waits for its end. What cannot be watched is not, and
// the answer says so.
func (c *connection) watch(life context.Context, id wire.ID, watchID uint64, paths []string) {
	w, err := files.NewWatch(paths)
	c.answer(id, wire.WatchMissingResult{Watching: err == nil})
	if err != nil || w.Wait(life) != nil {
		return
	}
	if text, err := wire.Notification(wire.MethodMissingChanged,
		wire.MissingChanged{WatchID: watchID}); err == nil {
		_ = c.conn.Send(text)
	}
}
