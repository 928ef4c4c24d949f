// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// connects is a script that asks the proxy for hosts, and prints the status of each answer.
const connects = `at=${HTTP_PROXY##*:}; for h; do
	exec 3<>/dev/tcp/127.0.0.1/${at%/}
	printf 'CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n' $h $h >&3
	read -r -u 3 _ code _; echo $h $code
	exec 3>&-
done`

// TestManagedHosts: the server asks about each host; the client decides by its own policy, which may
// change meanwhile, and by its answers. Its result has what was refused.
func TestManagedHosts(t *testing.T) {
	testenv.NeedUserNS(t)
	testenv.NeedProgram(t, "bash")
	e := remote.New(remote.Options{URL: serveWeb(t, newServer(t)), Token: "secret"})
	closed(t, e)
	policy, err := network.New(network.Config{Mode: network.Full, Ask: true,
		Entries: []network.Entry{{Pattern: "known.invalid"}, {Pattern: "denied.invalid", Deny: true}}})
	if err != nil {
		t.Fatal(err)
	}
	live := network.NewLive(policy)
	var mu sync.Mutex
	var asked, told []string
	var out bytes.Buffer
	spec := &executor.Spec{
		Args: append([]string{"bash", "-c", connects, "bash"}, "known.invalid", "new.invalid",
			"other.invalid", "denied.invalid", "localhost", "new.invalid"),
		Dir: "/", Env: []string{"PATH=/usr/bin:/bin"},
		Policy: sandbox.ReadOnly().WithNetwork(sandbox.NetworkProxy), Network: live,
		OnOutput: func(_ executor.Stream, b []byte) { out.Write(b) },
		OnRecord: func(r network.Record) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprint(r.Host, " ", r.Decision, " ", r.Reason))
		},
		AskHost: func(_ context.Context, r network.Request) network.Decision {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, r.Host.String())
			if r.Host.String() == "other.invalid" { // and from now on the first one is denied
				_ = live.Update(func(p *network.Policy) (*network.Policy, error) {
					return p.Amend(network.Entry{Pattern: "new.invalid", Deny: true})
				})
				return network.Decision{Reason: network.NotAllowed, Source: network.Decider}
			}
			return network.Decision{Ruling: network.Allow}
		},
	}
	p, err := e.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	const answers = "known.invalid 502\nnew.invalid 502\nother.invalid 403\ndenied.invalid 403\n" +
		"localhost 403\nnew.invalid 403\n"
	if out.String() != answers {
		t.Errorf("%q", out.String())
	}
	mu.Lock()
	defer mu.Unlock()
	want := []string{ // names that are allowed have no address
		"known.invalid deny dns_failed", "new.invalid deny dns_failed", "other.invalid deny not_allowed",
		"denied.invalid deny denied",
		"localhost deny not_allowed_local", "new.invalid deny denied",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
	if got := strings.Join(asked, " "); got != "new.invalid other.invalid" {
		t.Errorf("asked about %s", got)
	}
	var denials []string
	for _, d := range exit.NetworkDenials {
		denials = append(denials, fmt.Sprint(d.Host, " ", d.Port, " ", d.Reason))
	}
	wantDenials := []string{"other.invalid 443 not_allowed", "denied.invalid 443 denied",
		"localhost 443 not_allowed_local", "new.invalid 443 denied"}
	if diff := cmp.Diff(wantDenials, denials); diff != "" {
		t.Error(diff)
	}
	failedHosts(t, exit, "known.invalid 443 true 1", "new.invalid 443 true 1")
}

// failedHosts compares the hosts that were allowed and not reached.
func failedHosts(t *testing.T, exit *executor.Exit, want ...string) {
	t.Helper()
	var failures []string
	for _, f := range exit.NetworkFailures {
		failures = append(failures, fmt.Sprint(f.Host, " ", f.Port, " ", f.Name, " ", f.Count))
	}
	if diff := cmp.Diff(want, failures); diff != "" {
		t.Error(diff)
	}
}

// TestManagedNone: a policy that opens nothing has no proxy, and none asks.
func TestManagedNone(t *testing.T) {
	testenv.NeedUserNS(t)
	e := remote.New(remote.Options{URL: serveWeb(t, newServer(t)), Token: "secret"})
	closed(t, e)
	none, err := network.New(network.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p, err := e.Start(t.Context(), &executor.Spec{
		Args: []string{"sh", "-c", "echo proxy:$HTTP_PROXY; cat /proc/net/dev | wc -l"}, Dir: "/",
		Env:    []string{"PATH=/usr/bin:/bin"},
		Policy: sandbox.ReadOnly().WithNetwork(sandbox.NetworkProxy), Network: network.NewLive(none),
		OnOutput: func(_ executor.Stream, b []byte) { out.Write(b) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil || out.String() != "proxy:\n3\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
