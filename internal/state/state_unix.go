// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package state

import "github.com/sallyport-dev/sallyport/internal/hostfacts"

// Folder returns the first state folder that can be had, without symbolic links
// in its name. It is made if it is missing, for this user alone.
func Folder() (string, error) {
	var first error
	for _, d := range Dirs() {
		err := ownFolder(d)
		if err == nil {
			return hostfacts.RealPath(d), nil
		}
		if first == nil {
			first = err
		}
	}
	return "", first
}
