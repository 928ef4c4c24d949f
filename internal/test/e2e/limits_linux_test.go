// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// BenchmarkLimits guards: a start with limits on memory, processors and processes
// by control groups costs at most 1.3 of one without. Groups are made while the
// start is planned and removed when nobody waits any more. Without groups, as for
// an ordinary user, the same benchmark measures what takes their place.
func BenchmarkLimits(b *testing.B) {
	testenv.NeedUserNS(b)
	host := new(linux.Host)
	defer host.Close()
	ws := workspace(b)
	compare(b, []Variant{
		{"limits", bounded(b, host, ws, executor.Resources{Memory: 512 << 20, CPUs: 1, PIDs: 200})},
		{"off", confined(b, host, ws)},
	})
}

// BenchmarkDiskLimit tells what the watch of a disk limit adds to a start.
func BenchmarkDiskLimit(b *testing.B) {
	testenv.NeedUserNS(b)
	host := new(linux.Host)
	defer host.Close()
	ws := workspace(b)
	compare(b, []Variant{
		{"disk", bounded(b, host, ws, executor.Resources{Disk: 1 << 30})},
		{"off", confined(b, host, ws)},
	})
}

// bounded is confined with limits.
func bounded(tb testing.TB, host *linux.Host, ws string, l executor.Resources) func() error {
	r := &executor.Spec{
		Args: []string{"/bin/true"}, Dir: ws, Env: []string{"PATH=/usr/bin:/bin"}, Resources: l,
		Policy: sandbox.WorkspaceWrite(ws).Bind(sandbox.Places{Dir: ws, SlashTmp: "/tmp"}),
	}
	return started(tb, host, r)
}
