// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestRequestRules: a command reaches what a rule permits, with headers that it never sees, and nothing
// else of the host, with the proxy's variables and without.
func TestRequestRules(t *testing.T) {
	t.Parallel()
	s := newCredentialStage(t, "")
	text, err := os.ReadFile(s.config)
	must(t, err)
	text = fmt.Appendf(text,
		"[network.mitm.rules.read]\nhosts = [%q, %q]\nmethods = [\"GET\"]\nquery = [\"q=pattern:open*\"]\nstrip = [\"Cookie\"]\nset = [\"Authorization: Bearer {one}\", \"X-Team: blue, green\"]\n", s.own.at, s.plain.at)
	must(t, os.WriteFile(s.config, text, 0o600))
	for _, tt := range []struct {
		name, script, prints, gets string
		reason                     string
	}{
		{"permitted", `curl -sSf "$OWN/?q=open1"`, "q=open1", "Bearer " + tokenValue + " : q=open1", ""},
		{"knows of no proxy", `env -i curl -sSf --cacert "$SSL_CERT_FILE" "$OWN/?q=open1"`, "q=open1", "Bearer " + tokenValue + " : q=open1", ""},
		{"another query", `curl -sS -o /dev/null -w '%{http_code} %header{x-proxy-error}' "$OWN/?q=shut"`, "403 blocked-by-mitm-hook", "", "mitm_hook_denied"},
		{"another method", `curl -sS -o /dev/null -w '%{http_code}' -X PUT "$OWN/?q=open"`, "403", "", "mitm_hook_denied"},
		{"no TLS in a tunnel", `curl -sS -p -x "$HTTP_PROXY" "http://${OWN#https://}/?q=open" || echo closed`, "closed", "", "mitm_required"},
		{"a host without rules", `curl -sS -X PUT "$OTHER/?q=shut"`, "q=shut", "", ""},
		{"a credential over plain HTTP", `curl -sS -o /dev/null -w '%{http_code}' "$PLAIN/?q=open"`, "403", "", "credential_misuse"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := s.script(t, tt.script)
			if !strings.Contains(r.Output, tt.prints) {
				t.Errorf("it printed %q", r.Output)
			}
			if got := s.own.take(); !strings.Contains(got, tt.gets) || tt.gets == "" && got != "" {
				t.Errorf("the server got %q", got)
			}
			if got := s.plain.take(); got != "" {
				t.Errorf("the server without TLS got %q", got)
			}
			refused := slices.ContainsFunc(r.NetworkDenials,
				func(d networkDenial) bool { return d.Reason == tt.reason })
			if refused != (tt.reason != "") || tt.reason == "" && len(r.NetworkDenials) > 0 {
				t.Errorf("denials %+v", r.NetworkDenials)
			}
		})
	}
	for _, tt := range []struct{ name, words, want string }{
		{"a rule permits it", "https://" + s.own.at + "/x?q=open", "  rule   read\n"},
		{"its credential", "https://" + s.own.at + "/x?q=open", "  secret one\n"},
		{"none does", "https://" + s.own.at + "/x?q=shut", ": denied: no rule for its requests permits it\n"},
		{"over plain HTTP", "http://" + s.plain.at + "/x?q=shut", ": denied: no rule for its requests permits it\n"},
		{"the host", s.own.at, "  rule   read: each request must match\n"},
	} {
		t.Run("net test: "+tt.name, func(t *testing.T) {
			if text := s.test(t, tt.words); !strings.Contains(text, tt.want) {
				t.Errorf("%s", text)
			}
		})
	}
}

// test is net test with the settings of the stage.
func (s *credentialStage) test(t *testing.T, words string) string {
	t.Helper()
	cmd := s.command(t, []string{"ONE_TOKEN=" + tokenValue})
	cmd.Args = []string{cmd.Args[0], "net", "test", "--config", s.config, words}
	out, _ := cmd.CombinedOutput() // the exit code is the answer
	return string(out)
}
