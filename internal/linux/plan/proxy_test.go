// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestProxyVariables: a command gets the variables that lead to the proxy where there is one, and
// keeps its own elsewhere. The socket listens where the variables lead, before the command starts.
func TestProxyVariables(t *testing.T) {
	const own, ours = "HTTPS_PROXY=http://192.0.2.1:8080", "HTTPS_PROXY=http://127.0.0.1:3128"
	for n, want := range map[sandbox.Network]string{sandbox.NetworkNone: own, sandbox.NetworkProxy: ours,
		sandbox.NetworkHost: own} {
		t.Run(n.String(), func(t *testing.T) {
			r := request().with(network(n)).with(func(r *Request) { r.Env = []string{"PATH=/bin", own} })
			p, err := Make(host(t, "ubuntu-abi7"), r)
			if err != nil {
				t.Fatal(err)
			}
			steps := p.Script.Steps
			if env := steps[len(steps)-1].Env; !slices.Contains(env, want) ||
				!slices.Contains(env, "PATH=/bin") ||
				slices.Contains(env, own) == slices.Contains(env, ours) {
				t.Errorf("the environment is %q", env)
			}
			at := slices.IndexFunc(steps, func(s launch.Step) bool { return s.Op == launch.OpListen })
			start := slices.IndexFunc(steps,
				func(s launch.Step) bool { return s.Op == launch.OpStartCommand })
			if proxied := n == sandbox.NetworkProxy; proxied != (at >= 0) || at > start || proxied &&
				steps[at].Path != "127.0.0.1:3128" {
				t.Errorf("it listens in step %d, and starts in step %d", at, start)
			}
			if private := p.Script.Namespaces&launch.NewNet != 0; private != (n != sandbox.NetworkHost) {
				t.Errorf("namespaces %s", p.Script.Namespaces)
			}
		})
	}
}
