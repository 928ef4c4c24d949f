// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package confine

// StateFolder returns the first state folder that can be had, without symbolic links
// in its name. It is made if it is missing, for this user alone.
func StateFolder() (string, error) {
	var first error
	for _, d := range stateDirs() {
		err := ownFolder(d)
		if err == nil {
			return realPath(d), nil
		}
		if first == nil {
			first = err
		}
	}
	return "", first
}
