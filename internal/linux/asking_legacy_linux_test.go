// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && !amd64

package linux

// addLegacy adds nothing: these machines never had those calls.
func addLegacy(map[string]askedOp) {}
