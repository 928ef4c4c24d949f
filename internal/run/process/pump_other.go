// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import "os"

func newPump(cfg *Config, want [2]bool) (pump, [2]*os.File, error) { return newFilePump(cfg, want) }

func inputPipe() (r, w *os.File, err error) { return os.Pipe() }
