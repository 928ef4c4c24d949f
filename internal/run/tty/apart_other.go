// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package tty

import (
	"io"
	"os"
)

// Apart returns f on this system.
func (c *Console) Apart(f *os.File) io.Reader { return f }

// Written returns f on this system.
func (c *Console) Written(f *os.File) io.Writer { return f }
