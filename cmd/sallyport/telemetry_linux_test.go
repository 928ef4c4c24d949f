// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// A collector keeps the bodies of what is posted to it, by their paths. What they mean is tested in e2e.
type collector struct {
	*httptest.Server

	posted chan struct{} // has one for what was posted since it was taken

	mu     sync.Mutex
	bodies map[string][]byte
}

func newCollector(t testing.TB) *collector {
	c := &collector{posted: make(chan struct{}, 1), bodies: make(map[string][]byte)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bodies[r.URL.Path] = append(c.bodies[r.URL.Path], body...)
		select {
		case c.posted <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// has reports whether the traces hold the trace and the span of a traceparent.
func (c *collector) has(t testing.TB, traceparent string) bool {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	parts := strings.Split(traceparent, "-")
	if len(parts) != 4 {
		t.Fatalf("the context is %q", traceparent)
	}
	for _, part := range parts[1:3] {
		id, err := hex.DecodeString(part)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(c.bodies["/v1/traces"], id) {
			return false
		}
	}
	return true
}

const traced = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// enableTelemetry writes the settings of the user.
func (s seat) enableTelemetry(t *testing.T) {
	t.Helper()
	name := filepath.Join(s.home, ".config/sallyport/config.toml")
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("telemetry.enabled = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTelemetryRun: spans, metrics and records are sent where the settings say so, and the command is told
// where it belongs. Exit code and output are the same in any case.
func TestTelemetryRun(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	for _, test := range []struct {
		name        string
		enabled     bool
		flags       string
		variables   []string
		sent, child bool   // something is sent; the command gets a context of its own
		said        string // empty for nothing
	}{
		{"off", false, "", nil, false, false, ""},
		{"on", true, "", nil, true, true, ""},
		{"disabled", true, "", []string{"OTEL_SDK_DISABLED=true"}, false, true, ""},
		{"no collector", true, "", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"}, false, true, "sallyport: telemetry: not all "},
		{"no collector, quietly", true, "--quiet", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"}, false, true, ""},
		{"another protocol", true, "", []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc"}, false, true, "use http/protobuf"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, c := newSeat(t), newCollector(t)
			if test.enabled {
				s.enableTelemetry(t)
			}
			cmd := s.command(t, append(append([]string{"sallyport", "run"}, strings.Fields(test.flags)...), "-c",
				`echo "$TRACEPARENT $TRACESTATE"; exit 3`)...)
			cmd.Env = append(cmd.Env, append([]string{"TRACEPARENT=" + traced, "TRACESTATE=a=b",
				"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL}, test.variables...)...)
			var said strings.Builder
			cmd.Stderr = &said
			out, err := cmd.Output()
			if cmd.ProcessState.ExitCode() != 3 {
				t.Fatalf("%v: %s", err, &said)
			}
			got, state, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
			if state != "a=b" || got[:36] != traced[:36] || (got != traced) != test.child {
				t.Errorf("the command gets %q", out)
			}
			if test.sent != c.has(t, got) || len(c.bodies["/v1/traces"]) > 0 != test.sent {
				t.Errorf("%d bytes of traces", len(c.bodies["/v1/traces"]))
			}
			if test.sent && (len(c.bodies["/v1/metrics"]) == 0 || len(c.bodies["/v1/logs"]) == 0) {
				t.Error("metrics or records are missing")
			}
			if text := said.String(); test.said == "" && text != "" || !strings.Contains(text, test.said) {
				t.Errorf("it says %q", text)
			}
		})
	}
}

// TestTelemetryServers: a run of a client is in the trace that the client names, and counted for Prometheus.
func TestTelemetryServers(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	const echo = `echo "$TRACEPARENT"`
	for _, test := range []struct {
		name  string
		words []string
		lines []string
	}{
		{"mcp", []string{"mcp"}, []string{
			`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":{"cmd":%q},"_meta":{"traceparent":%q}}}`, echo, traced),
		}},
		{"exec-server", []string{"exec-server", "--listen", "stdio"}, []string{
			`{"id":1,"method":"initialize","params":{"clientName":"x","extensionMethods":true}}`,
			`{"method":"initialized"}`,
			fmt.Sprintf(`{"id":2,"method":"run/start","params":{"args":["-c",%q]},"trace":{"traceparent":%q}}`, echo, traced),
			`{"id":3,"method":"run/wait","params":{"runId":"%s","for":{"exit":true}}}`,
			`{"id":4,"method":"run/result","params":{"runId":"%s"}}`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, c := newSeat(t), newCollector(t)
			s.enableTelemetry(t)
			cmd := s.command(t, append(append([]string{"sallyport"}, test.words...), "--metrics", "127.0.0.1:0")...)
			cmd.Env = append(cmd.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			diagnosis, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			said := bufio.NewScanner(diagnosis)
			if !said.Scan() {
				t.Fatal(said.Err())
			}
			url, ok := strings.CutPrefix(said.Text(), "sallyport: metrics at ")
			if !ok {
				t.Fatalf("it says %q", said.Text())
			}
			answers := bufio.NewScanner(out)
			answers.Buffer(nil, 1<<20)
			child := converse(t, in, answers, test.lines)
			if child[:36] != traced[:36] || child == traced {
				t.Errorf("the command gets %q", child)
			}
			if text := scrape(t, url); !strings.Contains(text, `sallyport_tool_call_total{tool="unified_exec",success="true"} 1`) {
				t.Errorf("the metrics are\n%s", text)
			}
			_ = in.Close()
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			if !c.has(t, child) {
				t.Errorf("%s is not in the traces", child)
			}
		})
	}
}

// TestTelemetryElsewhere: a run of another server, or of the daemon, is in the trace of who started it, and
// so is its command. What is no trace context is not passed on, also not as a variable of another process.
func TestTelemetryElsewhere(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	const remote = "--remote URL -C WORK -t=false"
	both := []string{"TRACEPARENT=" + traced, "TRACESTATE=a=b"}
	for _, test := range []struct {
		name, flags string
		enabled     bool
		context     []string // variables of the caller
		want        string   // what the command gets; "child" is a span of its own in the trace
	}{
		{"remote", remote, false, both, traced + " a=b"},
		{"remote, with telemetry", remote, true, both, "child a=b"},
		{"remote, no context", remote, false, nil, ""},
		{"remote, malformed", remote, false, []string{"TRACEPARENT=" + traced[1:], "TRACESTATE=a=b"},
			""},
		{"remote, a malformed state", remote, false, []string{"TRACEPARENT=" + traced,
			"TRACESTATE=a\tb"}, traced},
		{"detach", "--detach", false, both, traced + " a=b"},
		{"detach, with telemetry", "--detach", true, both, "child a=b"},
		{"join, with telemetry", "--join here", true, both, "child a=b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, c := newParlor(t), newCollector(t)
			if test.enabled {
				d.enableTelemetry(t)
			}
			say := func(variables []string, words ...string) string {
				t.Helper()
				cmd := d.command(t, append([]string{"sallyport"}, words...)...)
				cmd.Env = append(append(cmd.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL), variables...)
				var said strings.Builder
				cmd.Stderr = &said
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%q: %v, %s", words, err, &said)
				}
				return strings.TrimSpace(string(out))
			}
			say(nil, "run", "--detach", "--", "true")
			socket := filepath.Join(d.runtime, "sallyport", "daemon.sock")
			flags := strings.NewReplacer("URL", "unix://"+socket, "WORK", d.work).Replace(test.flags)
			words := append([]string{"run"}, strings.Fields(flags)...)
			words = append(words, "-c", `echo "$TRACEPARENT $TRACESTATE"`)
			got := say(test.context, words...)
			if test.flags == "--detach" {
				id := got
				say(nil, "wait", id)
				got = say(nil, "logs", id)
			}
			if rest, ok := strings.CutPrefix(test.want, "child"); ok {
				if len(got) < len(traced) || got[:36] != traced[:36] || got[:len(traced)] == traced ||
					got[len(traced):] != rest {
					t.Errorf("the command gets %q", got)
				}
				endDaemon(d.runtime) // which sends what it has, also when it listens no more
				for !c.has(t, got[:len(traced)]) {
					<-c.posted
				}
			} else if got != test.want {
				t.Errorf("the command gets %q, want %q", got, test.want)
			}
		})
	}
}

// converse sends lines, waits for the answer of each, and returns the traceparent in one. A line with %s gets
// the ID of the run.
func converse(t *testing.T, in io.Writer, answers *bufio.Scanner, lines []string) (traceparent string) {
	t.Helper()
	type message struct {
		ID     *int
		Result struct{ RunID string }
	}
	run := ""
	for _, line := range lines {
		if strings.Contains(line, `"%s"`) {
			line = fmt.Sprintf(line, run)
		}
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Fatal(err)
		}
		var sent, got message
		if err := json.Unmarshal([]byte(line), &sent); err != nil {
			t.Fatal(err)
		}
		for sent.ID != nil && (got.ID == nil || *got.ID != *sent.ID) {
			got = message{}
			if !answers.Scan() {
				t.Fatal(answers.Err())
			}
			if err := json.Unmarshal(answers.Bytes(), &got); err != nil {
				t.Fatalf("%v: %s", err, answers.Text())
			}
			run += got.Result.RunID
			if at := strings.Index(answers.Text(), traced[:36]); at >= 0 {
				traceparent = answers.Text()[at : at+len(traced)]
			}
		}
	}
	if traceparent == "" {
		t.Fatalf("no context in %s", answers.Text())
	}
	return traceparent
}

// scrape returns what Prometheus gets.
func scrape(t *testing.T, url string) string {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, err)
	}
	return string(body)
}
