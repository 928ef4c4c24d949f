// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package rlimit

// prlimit reads the limit on open files into l: prlimit64(0, RLIMIT_NOFILE,
// NULL, l). It returns 0 or a negative errno.
//
//go:noescape
func prlimit(l *[2]uint64) int64

func files() limit {
	var l [2]uint64
	if prlimit(&l) != 0 {
		return limit{}
	}
	return limit{soft: l[0], hard: l[1], ok: true}
}
