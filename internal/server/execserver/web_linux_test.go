// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// webServer starts the web server of the recorded scenarios and returns its URL.
func webServer(t *testing.T) string {
	t.Helper()
	ok := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				body, _ := io.ReadAll(r.Body)
				slices.Reverse(body)
				w.WriteHeader(http.StatusCreated)
				_, _ = w.Write(body)
				return
			}
			value := r.Header.Get("X-A")
			if value == "" {
				value = "-"
			}
			w.Header().Add("X-Multi", "1")
			w.Header().Add("X-Multi", "2")
			w.WriteHeader(status)
			fmt.Fprintf(w, "ok %s", value)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", ok(http.StatusOK))
	mux.HandleFunc("/err", ok(http.StatusInternalServerError))
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(1500 * time.Millisecond): // as in the record
			ok(http.StatusOK)(w, r)
		}
	})
	mux.HandleFunc("/redir", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/ok")
		w.WriteHeader(http.StatusFound)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// delta waits until the body of a stream is as long as recorded, or over.
func (s *scenario) delta(c *talk, want *message) {
	s.t.Helper()
	stream := func() (seqs []uint64, last message) {
		for _, m := range c.messages {
			if m.Method == want.Method && m.Params.RequestID == want.Params.RequestID {
				seqs, last = append(seqs, m.Params.Seq), m
			}
		}
		return seqs, last
	}
	c.wait(s.t, "a part of "+want.Params.RequestID,
		func() bool { seqs, _ := stream(); return len(seqs) >= int(want.Params.Seq) })
	c.mu.Lock()
	defer c.mu.Unlock()
	seqs, last := stream()
	for i, seq := range seqs {
		if seq != uint64(i+1) {
			s.t.Errorf("numbers %d of %s", seqs, want.Params.RequestID)
		}
	}
	if want.Params.Done && !reflect.DeepEqual(last.Params, want.Params) {
		s.t.Errorf("%+v, want %+v", last.Params, want.Params)
	}
}

// web compares what differs from machine to machine.
func (s *scenario) web(method string, gotText, wantText json.RawMessage) {
	s.t.Helper()
	type result struct {
		Status  int
		Headers []struct{ Name, Value string }
		Body    []byte `json:"bodyBase64"`

		UserHomeDir, CodexHomeDir, Hostname string
		Config, Requirements                any
	}
	var got, want result
	if err := errors.Join(json.Unmarshal(gotText, &got), json.Unmarshal(wantText, &want)); err != nil {
		s.t.Fatal(err)
	}
	for _, r := range []*result{&got, &want} {
		r.Headers = slices.DeleteFunc(r.Headers, func(h struct{ Name, Value string }) bool {
			return !slices.Contains([]string{"x-multi", "location", "content-length"}, h.Name)
		})
		slices.SortStableFunc(r.Headers,
			func(a, b struct{ Name, Value string }) int { return strings.Compare(a.Name, b.Name) })
		for _, text := range []*string{&r.UserHomeDir, &r.CodexHomeDir, &r.Hostname} {
			if *text != "" {
				*text = "set"
			}
		}
	}
	if !reflect.DeepEqual(got, want) {
		s.t.Errorf("%s: %s, want %s", method, gotText, wantText)
	}
}

// webClient returns a client of a server that allows HTTP with the variables.
func webClient(t *testing.T, allow bool, names ...string) *caller {
	t.Helper()
	o := options()
	o.AllowHTTP, o.HTTPEnv = allow, names
	o.Environ = append(o.Environ, "WEB_TOKEN=t0ps3cret", "WEB_OTHER=0ther")
	c := &caller{t: t, speaker: connect(t, run(t, o))}
	c.greet(nil)
	return c
}

// fetched makes a request with the members in addition to those that are needed.
func (c *caller) fetched(url string, more map[string]any) message {
	params := map[string]any{"method": "GET", "url": url, "requestId": "r"}
	for name, value := range more {
		params[name] = value
	}
	return c.call("http/request", params)
}

// secret returns headers with the value of a variable.
func secret(name string) map[string]any {
	return map[string]any{"headers": []any{map[string]any{"name": "X-Key", "value": "Bearer ",
		"valueEnvVar": name}}}
}

// visits are the requests that a web server has seen.
type visits struct {
	mu    sync.Mutex
	lines []string
}

func (v *visits) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lines = append(v.lines, fmt.Sprintf("%s %s key=%q auth=%q from=%q", r.Method, r.URL.Path,
		r.Header.Get("X-Key"), r.Header.Get("Authorization"), r.Referer()))
}

func (v *visits) all() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return strings.Join(v.lines, "\n")
}

// TestHTTPClosed: without the flags nothing is sent, and no variable is.
func TestHTTPClosed(t *testing.T) {
	seen := new(visits)
	web := httptest.NewServer(seen)
	defer web.Close()
	for _, test := range []struct {
		name  string
		allow bool
		names []string
		more  map[string]any
		url   string
		want  string // of the error
	}{
		{"not allowed", false, []string{"*"}, nil, web.URL, "http/request is not allowed by this exec-server; start it with `--allow-http`"},
		{"no variable allowed", true, nil, secret("WEB_TOKEN"), web.URL, "start the exec-server with `--allow-http-env WEB_TOKEN`"},
		{"another variable allowed", true, []string{"WEB_OTHER", "WEB_", "web_token"}, secret("WEB_TOKEN"), web.URL, "--allow-http-env WEB_TOKEN"},
		{"missing, not allowed", true, nil, secret("WEB_NONE"), web.URL, "--allow-http-env WEB_NONE"},
		{"missing", true, []string{"*"}, secret("WEB_NONE"), web.URL, "http/request header X-Key requires executor environment variable WEB_NONE"},
		{"a file", true, nil, nil, "file:///etc/passwd", "http/request only supports http and https URLs, got file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := webClient(t, test.allow, test.names...)
			m := c.fetched(test.url, test.more)
			if m.Error == nil || !strings.Contains(m.Error.Message, test.want) ||
				strings.Contains(m.Error.Message, "s3cret") {
				t.Errorf("%s, %+v, want the error %q", m.Result, m.Error, test.want)
			}
		})
	}
	if got := seen.all(); got != "" {
		t.Errorf("the web server was asked: %s", got)
	}
}

// TestHTTPSecrets: what a header has from a variable goes to the server of the URL only.
func TestHTTPSecrets(t *testing.T) {
	here, there := new(visits), new(visits)
	other := httptest.NewServer(nil)
	defer other.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("/same", func(w http.ResponseWriter,
		r *http.Request) {
		http.Redirect(w, r, "/end", http.StatusFound)
	})
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/end", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/round", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/back", http.StatusFound)
	})
	mux.HandleFunc("/file", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "file:///etc/passwd")
		w.WriteHeader(http.StatusFound)
	})
	mux.Handle("/end", here)
	web := httptest.NewServer(mux)
	defer web.Close()
	far := http.NewServeMux()
	far.HandleFunc("/back", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, web.URL+"/end",
			http.StatusFound)
	})
	far.Handle("/end", there)
	other.Config.Handler = far

	headers := map[string]any{"headers": []any{
		map[string]any{"name": "x-key", "value": "Bearer ", "valueEnvVar": "WEB_TOKEN"},
		map[string]any{"name": "Authorization", "value": "Basic a"},
	}}
	for _, test := range []struct{ name, path, here, there, err string }{
		{"the same server", "/same", `GET /end key="Bearer t0ps3cret" auth="Basic a" from="` + web.URL + `/same"`, "", ""},
		{"another server", "/away", "", `GET /end key="" auth="" from=""`, ""},
		{"back from another server", "/round", `GET /end key="" auth="" from=""`, "", ""},
		{"a file", "/file", "", "", "only supports http and https URLs, got file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			here.lines, there.lines = nil, nil
			c := webClient(t, true, "WEB_TOKEN")
			m := c.fetched(web.URL+test.path, headers)
			switch {
			case test.err != "":
				if m.Error == nil || m.Error.Code != -32603 || !strings.Contains(m.Error.Message, test.err) {
					t.Errorf("%s, %+v", m.Result, m.Error)
				}
			case m.Error != nil:
				t.Errorf("%+v", m.Error)
			}
			if here.all() != test.here || there.all() != test.there {
				t.Errorf("here %s\nwant %s\nthere %s\nwant %s", here.all(), test.here,
					there.all(), test.there)
			}
		})
	}
}

// largeBody is more bytes than one answer carries.
const largeBody = 17 << 20

// bodies starts a web server of large and slow bodies. Its channel tells which slow ones have ended.
func bodies(t *testing.T) (url string, gone chan struct{}) {
	t.Helper()
	gone = make(chan struct{}, 100)
	mux := http.NewServeMux()
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		part := bytes.Repeat([]byte("x"), 1<<20)
		for range largeBody / len(part) {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server notices the end of a connection after that
		fmt.Fprint(w, "a")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		gone <- struct{}{}
	})
	mux.HandleFunc("/short", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		fmt.Fprint(w, "a")
	})
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	return web.URL, gone
}

// streamed are the members of a request for a stream.
var streamed = map[string]any{"streamResponse": true}

// TestHTTPBodies: no body takes more memory than it may.
func TestHTTPBodies(t *testing.T) {
	web, _ := bodies(t)
	t.Run("too long for one answer", func(t *testing.T) {
		c := webClient(t, true)
		if m := c.fetched(web+"/large", nil); m.Error == nil || m.Error.Code != -32603 ||
			!strings.Contains(m.Error.Message, "set `streamResponse`") {
			t.Errorf("%d bytes, %+v", len(m.Result), m.Error)
		}
		if m := c.call("environment/status", nil); m.Error != nil {
			t.Errorf("afterwards: %+v", m.Error)
		}
	})
	t.Run("streamed", func(t *testing.T) {
		c := webClient(t, true)
		if m := c.fetched(web+"/large", streamed); m.Error != nil {
			t.Fatalf("%+v", m.Error)
		}
		last := c.bodyEnd("r")
		total := 0
		for _, m := range c.events {
			total += len(m.Params.DeltaBase64)
		}
		if total != largeBody || last.Error != nil {
			t.Errorf("%d bytes, want %d; %v", total, largeBody, last.Error)
		}
		if m := c.fetched(web+"/short", streamed); m.Error != nil {
			t.Errorf("the ID again: %+v", m.Error)
		}
		if last := c.bodyEnd("r"); last.Error == nil || !strings.Contains(*last.Error, "unexpected EOF") {
			t.Errorf("a body that is cut: %+v", last)
		}
	})
}

// TestHTTPSlow: a slow body holds up nothing else, and requests are bounded.
func TestHTTPSlow(t *testing.T) {
	web, gone := bodies(t)
	t.Run("slow", func(t *testing.T) {
		c := webClient(t, true)
		if m := c.fetched(web+"/slow", streamed); m.Error != nil {
			t.Fatalf("%+v", m.Error)
		}
		c.post(map[string]any{"id": "unstreamed", "method": "http/request",
			"params": map[string]any{"method": "GET", "url": web + "/slow", "requestId": "u"}})
		if m := c.call("environment/status", nil); m.Error != nil {
			t.Errorf("another request meanwhile: %+v", m.Error)
		}
		if m := c.fetched(web+"/short", nil); m.Error == nil || m.Error.Code != -32602 ||
			!strings.Contains(m.Error.Message, "requestId `r` is in use") {
			t.Errorf("the ID again: %+v", m.Error)
		}
		if m := c.fetched(web+"/slow", map[string]any{"requestId": "t", "timeoutMs": 50}); m.Error == nil ||
			!strings.Contains(m.Error.Message, "no complete answer within timeoutMs") {
			t.Errorf("in time: %+v", m.Error)
		}
		if err := c.close(); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			<-gone // the requests end with the connection
		}
	})
	t.Run("many", func(t *testing.T) {
		c := webClient(t, true)
		refused := func(m *message) bool { return m.Error != nil }
		for i := range 33 {
			c.post(map[string]any{"id": i + 100, "method": "http/request",
				"params": map[string]any{"method": "GET", "url": web + "/slow", "requestId": "u"}})
		}
		if m := c.until(refused); m.Error.Code != -32600 ||
			!strings.Contains(m.Error.Message, "limit of http requests (32) reached") {
			t.Errorf("%+v", m.Error)
		}
	})
	t.Run("large bodies of requests", func(t *testing.T) {
		c := webClient(t, true)
		body := strings.Repeat("eHh4", wire.MaxFrame/4-1<<10)
		for i := range 3 {
			c.sends(fmt.Sprintf(`{"id":%d,"method":"http/request","params":{"method":"POST","url":%q,"requestId":"u","bodyBase64":"`, i+100, web+"/slow") + body + `"}}`)
		}
		if m := c.until(func(m *message) bool { return m.Error != nil }); m.Error.Code != -32600 ||
			!strings.Contains(m.Error.Message, "in progress take 33554432 bytes") {
			t.Errorf("%+v", m.Error)
		}
	})
}

// bodyEnd waits for the end of a stream.
func (c *caller) bodyEnd(id string) *struct{ Error *string } {
	m := c.until(func(m *message) bool { return m.Params.RequestID == id && m.Params.Done })
	return &struct{ Error *string }{m.Params.Error}
}

// TestDiscover: a root has an error unless it is known to have nothing.
func TestDiscover(t *testing.T) {
	c := webClient(t, false)
	dir := t.TempDir()
	sandbox := map[string]any{"permissions": map[string]any{"type": "disabled"},
		"windowsSandboxLevel": "disabled"}
	m := c.call("capabilityRoots/discoverV1", map[string]any{"roots": []any{
		map[string]any{"id": "empty", "path": "file://" + dir},
		map[string]any{"id": "full", "path": "file:///"},
		map[string]any{"id": "file", "path": "file:///proc/self/status"},
		map[string]any{"id": "confined", "path": "file://" + dir, "sandbox": sandbox},
		map[string]any{"id": "relative", "path": "a"},
	}})
	var result struct {
		Roots []struct {
			ID, Error string
		}
	}
	if m.Error != nil || json.Unmarshal(m.Result, &result) != nil || len(result.Roots) != 5 {
		t.Fatalf("%s, %+v", m.Result, m.Error)
	}
	for i, want := range []string{"", "not supported", "not a directory", "in a sandbox", "invalid URI"} {
		if got := result.Roots[i]; !strings.Contains(got.Error, want) || want == "" && got.Error != "" {
			t.Errorf("%s: %q, want %q", got.ID, got.Error, want)
		}
	}
}
