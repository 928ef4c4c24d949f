// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package program

import "os/exec"

func own(*exec.Cmd) {}

func end(*exec.Cmd) {}
