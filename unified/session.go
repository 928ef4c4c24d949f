// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/run/output"
)

// idOf returns the number of a session, which is its identity.
func idOf(identity string) int {
	id, _ := strconv.Atoi(identity) // Runners give decimal numbers only
	return id
}

// tooMany turns the Runner's error for a session too many into that of the tools. Among
// its sessions may be some that these tools did not start.
func tooMany(err error) error {
	var full *sallyport.TooManySessionsError
	if !errors.As(err, &full) {
		return nil
	}
	var candidates []Info
	for _, s := range full.Candidates {
		candidates = append(candidates, Info{
			SessionID: idOf(s.ID), Command: strings.Join(s.Args, " "), Dir: s.Dir, TTY: s.TTY,
			Started: s.Started, LastUsed: s.LastUsed, Running: s.Running,
		})
	}
	return tooManyOf(full.Max, candidates, err)
}

// resultOf waits for the end of a session. That it was terminated is no error.
func resultOf(ctx context.Context, s *sallyport.Session) (*sallyport.Result, error) {
	r, err := s.Wait(ctx)
	if r == nil || err != nil && r.End != sallyport.EndCanceled {
		return nil, err
	}
	return r, nil
}

// terminate ends a session and reports whether it was alive. Without an error it has
// ended.
func terminate(ctx context.Context, s *sallyport.Session) (bool, error) {
	alive, err := s.Terminate(ctx)
	if !s.Info().Running {
		err = nil
	}
	return alive, err
}

// snapshotOf returns the output of a reply or a result in a form that can be collected.
func snapshotOf(o sallyport.Output) output.Snapshot {
	return output.Snapshot{Head: o.Head(), Tail: o.Tail(), Omitted: o.Omitted, Total: o.Total}
}
