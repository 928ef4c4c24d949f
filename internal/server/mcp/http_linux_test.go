// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport/internal/server/mcp"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

const secret = "the-token"

// serveHTTP serves a workspace, and returns the URL.
func serveHTTP(t *testing.T) string {
	t.Helper()
	testenv.NeedUserNS(t)
	l, err := mcp.Listen("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	o := options(t, t.TempDir())
	o.Hidden = []string{filepath.Join(t.TempDir(), "token")}
	if err := os.WriteFile(o.Hidden[0], []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	server := mcp.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	url, done := make(chan string, 1), make(chan error, 1)
	go func() {
		done <- server.ServeHTTP(ctx, l, secret, func(u string) error { url <- u; return nil })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return <-url
}

// bearer adds a token to requests.
type bearer struct {
	token string
	http.Transport
}

func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.Transport.RoundTrip(r)
}

// dial connects a client of a revision over HTTP.
func dial(t *testing.T, url, revision string, o *sdk.ClientOptions) *client {
	t.Helper()
	through := &bearer{token: secret}
	t.Cleanup(through.CloseIdleConnections)
	s, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).Connect(context.Background(),
		&sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: through}},
		&sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &client{t: t, ClientSession: s}
}

// TestHTTP: sessions outlive a connection, for each revision, and clients are asked.
func TestHTTP(t *testing.T) {
	url := serveHTTP(t)
	var questions atomic.Int32
	asked := answers(func(context.Context, *sdk.ElicitParams) (*sdk.ElicitResult,
		error) {
		questions.Add(1)
		return accept("approved"), nil
	})
	for _, revision := range []string{"2025-03-26", "2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			c := dial(t, url, revision, asked)
			if v := c.InitializeResult().ProtocolVersion; v != revision {
				t.Errorf("it speaks %s", v)
			}
			id := c.call("exec", members{"cmd": "echo up; read x; echo got $x", "keep_stdin": true,
				"wait_for": []string{"match=up"}}).ok(t).SessionID
			before := questions.Load()
			if c.call("exec", escalated("true")).exits(t, 0); questions.Load() != before+1 {
				t.Errorf("%d questions", questions.Load()-before)
			}
			_ = c.Close()
			again := dial(t, url, revision, asked)
			f := again.call("write", members{"session_id": id, "chars": "y\n", "wait_for": []string{"exit"},
				"yield_time_ms": 30_000}).exits(t, 0)
			equal(t, "output", f.Output, "got y\n")
		})
	}
}

// TestHTTPGuard: origin, host and token, in this order.
func TestHTTPGuard(t *testing.T) {
	url := serveHTTP(t)
	host := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp")
	port := host[strings.LastIndex(host, ":"):]
	const ours = "Bearer " + secret
	for name, test := range map[string]struct {
		token, origin, host string
		status              int
	}{
		"no token":                {"", "", "", 401},
		"wrong token":             {"Bearer other", "", "", 401},
		"longer token":            {ours + "x", "", "", 401},
		"empty token":             {"Bearer ", "", "", 401},
		"another scheme":          {"Basic " + secret, "", "", 401},
		"web page":                {ours, "https://evil.example", "", 403},
		"web page without token":  {"", "https://evil.example", "", 403},
		"null origin":             {ours, "null", "", 403},
		"origin like loopback":    {ours, "http://127.0.0.1.evil.example", "", 403},
		"origin of a file":        {ours, "file://localhost", "", 403},
		"loopback origin":         {ours, "http://localhost:3000", "", 400},
		"loopback address origin": {ours, "http://[::1]:3000", "", 400},
		"rebound name":            {ours, "", "evil.example" + port, 403},
		"rebound without token":   {"", "", "evil.example" + port, 403},
		"another port":            {ours, "", "127.0.0.1:1", 403},
		"no port":                 {ours, "", "127.0.0.1", 403},
		"localhost":               {ours, "", "localhost" + port, 400},
		"right":                   {ours, "", "", 400},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequest(http.MethodPost, url, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			for name, value := range map[string]string{"Authorization": test.token, "Origin": test.origin} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
			r.Host, r.Close = test.host, true
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			said, _ := io.ReadAll(res.Body)
			if res.StatusCode != test.status {
				t.Errorf("status %d, want %d: %s", res.StatusCode, test.status, said)
			}
		})
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestToken: the file is made for this user alone, and refused when others can read it.
func TestToken(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	token, err := mcp.Token(file)
	if err != nil || len(token) < 20 {
		t.Fatalf("%q, %v", token, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if again, err := mcp.Token(file); again != token || err != nil {
		t.Errorf("%q, %v", again, err)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := mcp.Token(file); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Error(err)
	}
	if testenv.IsRoot() {
		theirs := filepath.Join(dir, "theirs")
		if err := errors.Join(os.WriteFile(theirs, []byte("token\n"), 0o600), os.Chown(theirs, 65534, -1)); err != nil {
			t.Fatal(err)
		}
		if _, err := mcp.Token(theirs); err == nil || !strings.Contains(err.Error(), "another user") {
			t.Error(err)
		}
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), dangling); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{empty, dangling, dir, filepath.Join(dir, "missing", "token")} {
		if token, err := mcp.Token(bad); err == nil {
			t.Errorf("%s: %q", bad, token)
		}
	}
}

// TestListenAddress: only loopback, unless that is said.
func TestListenAddress(t *testing.T) {
	for address, ok := range map[string]bool{"127.0.0.1:0": true, "localhost:0": true, "[::1]:0": true,
		"0.0.0.0:0": false, ":0": false,
		"[::]:0": false, "example.com:0": false, "127.0.0.1": false, "": false, "127.0.0.1:99999": false} {
		l, err := mcp.Listen(address, false)
		if (err == nil) != ok && !strings.HasPrefix(address, "[::1]") {
			t.Errorf("%q: %v", address, err)
		}
		if err == nil {
			_ = l.Close()
		}
	}
	l, err := mcp.Listen("0.0.0.0:0", true)
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}
