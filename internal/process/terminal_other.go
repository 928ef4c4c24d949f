// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import (
	"os"
	"syscall"
)

// A terminal does not exist on this system: no launch makes one.
type terminal struct{}

func newTerminal(*os.File) (*terminal, error)           { return nil, ErrNoTerminal }
func newTerminalPump(*Config, *os.File) (pump, error)   { return nil, ErrNoTerminal }
func (t *terminal) Write([]byte) (int, error)           { return 0, ErrNoTerminal }
func (t *terminal) end() error                          { return ErrNoTerminal }
func (t *terminal) resize(_, _ uint16) error            { return ErrNoTerminal }
func (t *terminal) signal(syscall.Signal) (bool, error) { return false, nil }
