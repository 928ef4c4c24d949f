// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !(linux && (amd64 || arm64))

package sigpipe

import "os"

func notify(chan<- os.Signal, []os.Signal) (func(), error) { return nil, ErrUnsupported }
