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

// listed returns a function that runs /bin/true under a root that shows the
// platform's own files and the workspace only.
func listed(tb testing.TB, host *linux.Host, ws string) func() error {
	policy := sandbox.Policy{}.WithEntries(sandbox.PathEntry(ws, sandbox.LevelWrite))
	r := &executor.Spec{
		Args: []string{"/bin/true"}, Dir: ws, Env: []string{"PATH=/usr/bin:/bin"},
		Policy: policy.Bind(sandbox.Places{Dir: ws, Minimal: []string{"/bin", "/sbin", "/usr", "/etc", "/lib",
			"/lib64", "/nix/store"}}),
	}
	return started(tb, host, r)
}

// BenchmarkMinimalRoot compares a start under a root of listed paths with one
// under the ordinary root.
func BenchmarkMinimalRoot(b *testing.B) {
	testenv.NeedUserNS(b)
	host := new(linux.Host)
	defer host.Close()
	ws := workspace(b)
	compare(b, []Variant{{"minimal", listed(b, host, ws)}, {"ordinary", confined(b, host, ws)}})
}
