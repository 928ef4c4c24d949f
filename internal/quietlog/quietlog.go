// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quietlog turns the standard logger off, for the program sallyport: no code of it
// logs, but go.starlark.net does when it is initialized where the address space is limited
// (ulimit -v), and every run would begin with that line.
//
// It imports nothing else, so that it is initialized before go.starlark.net: packages are
// initialized in the order of their import paths as soon as what they import is. Only
// programs import it; a library does not change the logger of others.
package quietlog

import (
	"io"
	"log"
)

func init() { log.SetOutput(io.Discard) }
