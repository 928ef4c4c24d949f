// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// Values of credentials, which are no real ones.
const (
	tokenValue = "ghp_" + "9aB3cD4eF5gH6iJ7kL8mN9oP0qR1sT2uV3wX"
	fileValue  = "q7-" + "Secret-In-A-File-42"
)

// An echo is a server that repeats what it gets, and keeps it.
type echo struct {
	at  string // HOST:PORT
	mu  sync.Mutex
	got string
	to  string // where it redirects to; empty for nowhere
}

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	user, password, _ := r.BasicAuth()
	text := fmt.Sprintf("%s %s:%s %s %s", r.Header.Get("Authorization"), user, password, r.URL.RawQuery, body)
	e.mu.Lock()
	e.got += text + "\n"
	to := e.to
	e.mu.Unlock()
	w.Header().Set("X-Echo", text)
	w.WriteHeader(http.StatusEarlyHints)
	if to != "" {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	}
	_, _ = io.WriteString(w, text)
}

// take returns what came since it was called last.
func (e *echo) take() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	got := e.got
	e.got = ""
	return got
}

// A credentialStage has a credential for a server with TLS, one of a file for another, and a server
// without TLS.
type credentialStage struct {
	*managedStage
	own, other, plain echo
	config, file      string
}

func newCredentialStage(t *testing.T, more string) *credentialStage {
	t.Helper()
	testenv.RunAsOrdinary(t)
	testenv.NeedProgram(t, "curl")
	s := &credentialStage{managedStage: newManagedStage(t)}
	var authorities []byte
	for _, one := range []*echo{&s.own, &s.other, &s.plain} {
		server := httptest.NewUnstartedServer(one)
		server.EnableHTTP2 = true
		if one == &s.plain {
			server.Start()
		} else {
			server.StartTLS()
			authorities = append(authorities,
				pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})...)
		}
		t.Cleanup(server.Close)
		_, port, err := net.SplitHostPort(server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		one.at = "127.0.0.1:" + port // which is in the certificate
	}
	s.config, s.file = filepath.Join(s.root, "c.toml"), filepath.Join(s.root, "home", "secret")
	text := fmt.Sprintf("[network]\nallow = [%q, %q, %q]\nmitm.extra_ca = [%q]\n"+
		"[network.credentials.one]\nenv = \"ONE_TOKEN\"\nhosts = [%q]\n%s\n"+
		"[network.credentials.two]\nenv = \"TWO\"\nfile = %q\nhosts = [%q]\n",
		s.own.at, s.other.at, s.plain.at, filepath.Join(s.root, "ca.pem"), s.own.at, more, s.file, s.other.at)
	for name, text := range map[string]string{s.config: text, s.file: fileValue + "\n",
		filepath.Join(s.root, "ca.pem"): string(authorities)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// script runs a script with the credentials, and returns what it printed and the result of --json.
func (s *credentialStage) script(t *testing.T, script string, words ...string) *managedResult {
	t.Helper()
	cmd := s.command(t, []string{"ONE_TOKEN=" + tokenValue, "TWO=of the caller"},
		append(append([]string{"--json", "--config", s.config}, words...),
			"-c", "OWN=https://"+s.own.at+" OTHER=https://"+s.other.at+" PLAIN=http://"+s.plain.at+
				"\n"+script)...)
	out, err := cmd.CombinedOutput()
	var r managedResult
	if jerr := json.Unmarshal(out, &r); jerr != nil {
		t.Fatalf("%q: %v, %v", out, err, jerr)
	}
	for _, value := range []string{tokenValue, fileValue} {
		if strings.Contains(string(out), value) {
			t.Errorf("the command knows %q: %s", value, out)
		}
	}
	return &r
}

// TestCredentials: the server gets the value, and the command only the dummy, whatever it does.
func TestCredentials(t *testing.T) {
	t.Parallel()
	s := newCredentialStage(t, `where = ["header", "basic", "bearer", "query", "body"]`)
	for _, c := range []struct {
		name, script string
		from         *echo
		gets         string // the server
	}{
		{"bearer", `curl -sS -i -H "Authorization: Bearer $ONE_TOKEN" $OWN`, &s.own, "Bearer " + tokenValue},
		{"HTTP/1.1", `curl -sS -i --http1.1 -H "Authorization: Bearer $ONE_TOKEN" $OWN`, &s.own, "Bearer " + tokenValue},
		{"basic", `curl -sS -i -u "me:$ONE_TOKEN" $OWN`, &s.own, "me:" + tokenValue},
		{"the query", `curl -sS -i "$OWN/?a=$ONE_TOKEN"`, &s.own, "a=" + tokenValue},
		{"the body", `curl -sS -i -d "x=$ONE_TOKEN&y" $OWN`, &s.own, "x=" + tokenValue + "&y"},
		{"a body in pieces", `{ printf %s "$ONE_TOKEN" | cut -c1-20 | tr -d '\n'; printf %s "$ONE_TOKEN" | cut -c21-; } | curl -sS -i -T - $OWN`, &s.own, tokenValue},
		{"a part", `curl -sS -i -r 0-20 -H "Authorization: Bearer $ONE_TOKEN" $OWN`, &s.own, tokenValue},
		{"of a file", `curl -sS -i -H "Authorization: Bearer $TWO" $OTHER`, &s.other, fileValue},
		{"without a proxy", `curl -sS -i --noproxy '*' -H "Authorization: Bearer $ONE_TOKEN" $OWN`, &s.own, tokenValue},
		{"trust by the file of the system", `env -i curl -sS -i -x http://127.0.0.1:3128 -H "Authorization: Bearer $ONE_TOKEN" $OWN`, &s.own, tokenValue},
		{"trust by the variables", `curl -sS -i --cacert "$SSL_CERT_FILE" -H "Authorization: Bearer $ONE_TOKEN" $OWN`, &s.own, tokenValue},
		{"python", `python3 -c 'import os, urllib.request as u
print(u.urlopen(u.Request(os.environ["U"], headers={"Authorization": "Bearer " + os.environ["ONE_TOKEN"]})).read().decode())'`, &s.own, "Bearer " + tokenValue},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.Contains(c.script, "--noproxy") {
				s.needRedirect(t)
			}
			if strings.HasPrefix(c.script, "python3") {
				testenv.NeedProgram(t, "python3")
			}
			r := s.script(t, "export U=$OWN; echo \"$ONE_TOKEN\"; "+c.script)
			if got := c.from.take(); !strings.Contains(got, c.gets) {
				t.Errorf("the server got %q: %s", got, r.Output)
			}
			dummy, _, _ := strings.Cut(r.Output, "\n")
			if len(dummy) != len(tokenValue) || !strings.HasPrefix(dummy, "ghp_") || c.from == &s.own &&
				strings.Count(r.Output, dummy) < 2 {
				t.Errorf("%s", r.Output)
			}
		})
	}
}

// TestCredentialsClosed: what is not for a host does not get there, and the command finds the value nowhere.
func TestCredentialsClosed(t *testing.T) {
	t.Parallel()
	s := newCredentialStage(t, "")
	for _, c := range []struct{ name, script, rule string }{
		{"another host", `curl -sS -H "Authorization: Bearer $ONE_TOKEN" $OTHER`, "credential one"},
		{"another host, basic", `curl -sS -u "x:$ONE_TOKEN" $OTHER`, "credential one"},
		{"another host, body", `curl -sS -d "$ONE_TOKEN" $OTHER`, "credential one"},
		{"another host, body, HTTP/1.1", `curl -sS --http1.1 -d "$ONE_TOKEN" $OTHER`, "credential one"},
		{"another host, path", `curl -sS "$OTHER/$ONE_TOKEN"`, "credential one"},
		{"of a file", `curl -sS -H "X: $TWO" $OWN`, "credential two"},
		{"plain", `curl -sS -H "Authorization: Bearer $ONE_TOKEN" $PLAIN`, "credential one"},
		{"plain, basic", `curl -sS -u "$ONE_TOKEN:" $PLAIN`, "credential one"},
		{"plain, query", `curl -sS "$PLAIN/?$ONE_TOKEN"`, "credential one"},
		{"plain, body", `curl -sS -d "$ONE_TOKEN" $PLAIN`, "credential one"},
		{"variables", `env; cat /proc/*/environ /proc/*/cmdline`, ""},
		{"the file", `cat ` + s.file + `; cat < ` + s.file + `; ln ` + s.file + ` x; cat x`, ""},
		{"body by default", `curl -sS -d "$ONE_TOKEN" "$OWN/?$ONE_TOKEN"`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.script(t, c.script)
			got := s.own.take() + s.other.take() + s.plain.take()
			if strings.Contains(got, tokenValue) || strings.Contains(got, fileValue) || c.rule != "" &&
				strings.Contains(got, "ghp_") {
				t.Errorf("a server got %q", got)
			}
			var refused []string
			for _, d := range r.Denials {
				if strings.HasPrefix(d.Rule, "credential") {
					refused = append(refused, d.Rule)
				}
			}
			if strings.Join(refused, " ") != c.rule || c.rule != "" &&
				(len(r.NetworkDenials) != 1 || r.NetworkDenials[0].Reason != "credential_misuse") {
				t.Errorf("%+v, %+v: %s", r.Denials, r.NetworkDenials, r.Output)
			}
			if c.rule != "" && !strings.Contains(r.Output, "credential_misuse") {
				t.Errorf("the program is not told: %s", r.Output)
			}
		})
	}
	// Nothing that is asked for gives the value to the command.
	for _, words := range [][]string{{"-e", "ONE_TOKEN"}, {"-e", "ONE_TOKEN=x"}, {"--net", "none"},
		{"--net", "host"}, {"--login"}} {
		s.script(t, "env", words...)
	}
	// A redirect to another host carries the dummy, and is refused.
	s.own.mu.Lock()
	s.own.to = "https://" + s.other.at + "/"
	s.own.mu.Unlock()
	r := s.script(t, `curl -sS -L --location-trusted -H "Authorization: Bearer $ONE_TOKEN" $OWN`)
	if got := s.other.take(); got != "" || !strings.Contains(r.Output, "credential_misuse") ||
		!strings.Contains(s.own.take(), tokenValue) {
		t.Errorf("%q, %s", got, r.Output)
	}
}

// TestCredentialsInvalid: nothing runs with a credential that cannot be kept.
func TestCredentialsInvalid(t *testing.T) {
	t.Parallel()
	s := newCredentialStage(t, "")
	run := func(token string) string {
		out, err := s.command(t, []string{"ONE_TOKEN=" + token}, "--config", s.config, "--", "act",
			"variable", "ONE_TOKEN").CombinedOutput()
		if err == nil {
			return string(out)
		}
		return fmt.Sprintf("%v: %s", err, out)
	}
	if got, want := run("abc1234"),
		"exit status 125: sallyport: network.credentials.one: its value has 7 bytes, and the minimum is 8"; !strings.HasPrefix(got, want) || strings.Contains(got, "abc1234") {
		t.Errorf("%q, want %q", got, want)
	}
	if got := run(""); !strings.HasSuffix(got, "ONE_TOKEN=\n") { // it is not set, and so no credential
		t.Errorf("%q", got)
	}
	if err := os.Remove(s.file); err != nil {
		t.Fatal(err)
	}
	if got, want := run(tokenValue), "exit status 125: sallyport: network.credentials.two: cannot read "+
		s.file; !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
