// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package named

import (
	"context"
	"os"

	"github.com/sallyport-dev/sallyport/executor/local"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Joined is a named sandbox, of which this system has none.
type Joined struct{ *local.Executor }

func unsupported() error {
	return &sandbox.UnsupportedError{Need: "a named sandbox", Have: "only Linux has them", Hint: "run each command in a sandbox of its own"}
}

// Join returns a [*sandbox.UnsupportedError].
func Join(context.Context, *Request, *Starter) (*Joined, error) { return nil, unsupported() }

// Keep returns a [*sandbox.UnsupportedError].
func Keep(context.Context, *os.File) error { return unsupported() }

// List returns nil: there are none.
func List(context.Context) (Infos, error) { return nil, nil }

// Stop returns [ErrUnknown].
func Stop(context.Context, string) error { return ErrUnknown }
