// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package listen

import "errors"

// A dirWatch tells of names that come to or go from directories.
type dirWatch struct{}

// watchDirs is not supported on this system.
func watchDirs([]string) (*dirWatch, error) { return nil, errors.ErrUnsupported }

func (*dirWatch) wait() error { return errors.ErrUnsupported }
func (*dirWatch) close()      {}
