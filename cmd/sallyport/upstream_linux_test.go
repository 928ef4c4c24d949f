// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// upstreamLog is a proxy on this machine that answers plain HTTP itself, makes no tunnel to a host that
// begins with "no", and to others one that ends at once. It notes requests.
type upstreamLog struct {
	mu   sync.Mutex
	seen []string
}

func (u *upstreamLog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	u.seen = append(u.seen, r.Method+" "+r.RequestURI+" "+r.Header.Get("Proxy-Authorization"))
	u.mu.Unlock()
	switch {
	case r.Header.Get("Proxy-Authorization") != "Basic ZGV2OnMzY3JldA==":
		w.WriteHeader(http.StatusProxyAuthRequired)
	case strings.HasPrefix(r.Host, "no"):
		w.WriteHeader(http.StatusForbidden)
	case r.Method != http.MethodConnect:
		_, _ = io.WriteString(w, "by the proxy")
	}
}

// take returns what was noted since the last call.
func (u *upstreamLog) take() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	seen := u.seen
	u.seen = nil
	slices.Sort(seen)
	return seen
}

// TestUpstream: hosts are reached by the proxy that the caller's variables or settings name, those on this
// machine are not, and the command neither knows the proxy nor reaches it.
func TestUpstream(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	s := newManagedStage(t)
	log := new(upstreamLog)
	server := httptest.NewServer(log)
	t.Cleanup(server.Close)
	at := strings.TrimPrefix(server.URL, "http://")
	origin := originOf(t, "hello")
	const auth = " Basic ZGV2OnMzY3JldA=="
	env := []string{"HTTP_PROXY=http://dev:s3cret@" + at, "https_proxy=dev:s3cret@" + at,
		"NO_PROXY=direct.example"}
	run := func(want string, seen []string, env []string, words ...string) {
		t.Helper()
		out, err := s.command(t, env, words...).Output()
		if string(out) != want {
			t.Errorf("%v: %s", err, cmp.Diff(want, string(out)))
		}
		if diff := cmp.Diff(seen, log.take()); diff != "" {
			t.Errorf("the proxy got %s", diff)
		}
	}
	run("200 by the proxy\n200 \n502 \n200 hello\n403 blocked-by-allowlist\n403 blocked-by-allowlist\nHTTP_PROXY=http://127.0.0.1:3128\nhttps_proxy=http://127.0.0.1:3128\n",
		[]string{"CONNECT api.invalid:443" + auth, "CONNECT no.invalid:443" + auth,
			"GET http://api.invalid/x" + auth}, env,
		"--allow-host", "**.invalid", "--allow-host", origin, "--", "act", "fetch", "http://api.invalid/x",
		"tunnel", "api.invalid:443", "tunnel", "no.invalid:443",
		"fetch", "http://"+origin+"/", "fetch", "http://refused.test/", "fetch", "http://"+at+"/", "variable",
		"HTTP_PROXY", "variable", "https_proxy")

	// Without a network the command does not have the password either, and nothing else changes.
	for _, more := range [][]string{nil, {"-e", "HTTP_PROXY", "-e", "https_proxy"}} {
		run("HTTP_PROXY=\nhttps_proxy=\nNO_PROXY=direct.example\n", nil, env,
			slices.Concat(more, []string{"--", "act", "variable", "HTTP_PROXY", "variable", "https_proxy",
				"variable", "NO_PROXY"})...)
	}
	run("", nil, []string{"HTTP_PROXY=ftp://dev:s3cret@x"}, "--", "true")

	// What cannot be used stops the run before it, and does not tell the password.
	out, err := s.command(t, []string{"ALL_PROXY=http://dev:s3cret@x:y"}, "--allow-host", "api.invalid", "--",
		"act", "variable", "ran").CombinedOutput()
	if want := "sallyport: invalid upstream proxy in ALL_PROXY: it is no URL; write http://[USER:PASSWORD@]HOST:PORT, socks5h://HOST:PORT, or none, or set network.upstream\n"; string(out) != want || err == nil {
		t.Errorf("%q, %v, want %q", out, err, want)
	}
}

// TestUpstreamRedirected: programs that know of no proxy are led to the same upstream.
func TestUpstreamRedirected(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	s := newManagedStage(t)
	s.needRedirect(t)
	log := new(upstreamLog)
	server := httptest.NewServer(log)
	t.Cleanup(server.Close)
	env := []string{"ALL_PROXY=http://dev:s3cret@" + strings.TrimPrefix(server.URL, "http://")}
	out, err := s.command(t, env, "--allow-host", "api.invalid", "--", "act", "direct",
		"http://api.invalid/x").Output()
	if string(out) != "200 by the proxy\n" {
		t.Errorf("%q, %v", out, err)
	}
	if diff := cmp.Diff([]string{"GET http://api.invalid/x Basic ZGV2OnMzY3JldA=="}, log.take()); diff != "" {
		t.Error(diff)
	}
}
