// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package dirs

import "errors"

type watch struct{}

// newWatch is not supported on this system.
func newWatch() (*watch, error) { return nil, errors.ErrUnsupported }

func (*watch) add([]string) error { return errors.ErrUnsupported }
func (*watch) wait() error        { return errors.ErrUnsupported }
func (*watch) close()             {}
