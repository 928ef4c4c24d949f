// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package testenv

import (
	"errors"
	"testing"
)

// errNotLinux is the answer of every probe for a Linux mechanism elsewhere.
var errNotLinux = errors.New("this system is not Linux")

func probeUserNS() error { return errNotLinux }

func wholeRoot() bool { return true }

func landlockABI() (int, error) { return 0, errNotLinux }

func probeSeccomp() error { return errNotLinux }

func probeInotify() error { return errNotLinux }

// runAsOrdinary has nothing to start: the tests that look at users are for Linux.
func runAsOrdinary(*testing.T) {}
