// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package reach

import "github.com/sallyport-dev/sallyport/internal/linux/hostfacts"

// way returns the links that lead to a path.
func way(at string) (links []string) {
	for _, l := range hostfacts.Links(at) {
		links = append(links, l.Path)
	}
	return links
}
