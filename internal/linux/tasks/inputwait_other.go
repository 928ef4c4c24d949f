// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package tasks

import (
	"errors"
	"os"
)

// notLinux is the reason for every answer here.
const notLinux = "this system does not tell what processes wait for"

// Terminal answers that nothing is known: only Linux tells. No argument is looked at.
func Terminal(*os.File, []int) Look { return unknown(notLinux) }

// Pipe answers that nothing is known: only Linux tells. No argument is looked at.
func Pipe(*os.File, []int) Look { return unknown(notLinux) }

// ListeningPorts returns an error that wraps [errors.ErrUnsupported]: only Linux tells
// which ports a process listens on.
func ListeningPorts([]int, bool) ([]int, error) {
	return nil, errUnsupported
}

var errUnsupported = errors.Join(errors.New("inputwait: the ports of processes are not known on this system"),
	errors.ErrUnsupported)

// Holders returns none: only Linux tells.
func Holders([][]int, bool, uint16) []int { return nil }
