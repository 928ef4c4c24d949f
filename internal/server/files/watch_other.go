// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package files

import (
	"context"
	"errors"
)

// CanWatch says whether NewWatch is supported on this system.
const CanWatch = false

// A Watch waits for paths that are missing.
type Watch struct{}

// NewWatch returns an error that is [errors.ErrUnsupported].
func NewWatch([]string) (*Watch, error) { return nil, errors.ErrUnsupported }

// Wait returns an error that is [errors.ErrUnsupported].
func (*Watch) Wait(context.Context) error { return errors.ErrUnsupported }
