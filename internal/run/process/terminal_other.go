// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import (
	"os"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
)

// A terminal is not supported on this system.
type terminal struct {
	pump
	file *os.File
}

func newTerminal(*Config, *os.File) (*terminal, error)  { return nil, ErrNoTerminal }
func (t *terminal) Write([]byte) (int, error)           { return 0, ErrNoTerminal }
func (t *terminal) endInput() error                     { return ErrNoTerminal }
func (t *terminal) resize(executor.Size) error          { return ErrNoTerminal }
func (t *terminal) signal(syscall.Signal) (bool, error) { return false, nil }
