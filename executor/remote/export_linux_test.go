// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"

	"github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// NewOn is New for connections that tests see message by message.
func NewOn(dial func(context.Context) (wire.Stream, error), opts Options) *Executor {
	e := New(opts)
	e.stream = dial
	return e
}

// Near connects to a server in this process, message by message.
func Near(ctx context.Context, s *execserver.Server) (wire.Stream, error) {
	c, err := s.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return wire.LinesOn(c), nil
}
