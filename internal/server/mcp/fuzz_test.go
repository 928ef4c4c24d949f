// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// allowed are the settings that the arguments of exec may give.
var allowed = []string{"shell", "login", "limits.timeout", "environment.set", "environment.inherit"}

// FuzzArguments: what a model says becomes flags that ask, and none that opens.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		`{"cmd":"x"}`, `{"cmd":"--rw=/","workdir":"../..","env":{"A":"--rw=/"},"shell":"sh --rw=/"}`,
		`{"cmd":"x","prefix_rule":["a","--","--rw","/"]}`, `{"cmd":"x","justification":"--rw /"}`,
		`{"cmd":"x","sandbox_permissions":"with_additional_permissions",` +
			`"additional_permissions":{"read":["-s"],"write":["../x","~/y"],"hosts":["a:1"]}}`,
		`{"cmd":"x","timeout_ms":1e3,"yield_time_ms":-5,"max_output_tokens":1e9,` +
			`"wait_for":["match=a,b","quiet=1s"]}`,
		`{"cmd":"x","cmd":"y"}`, `[]`, `{"cmd":null}`, "{\"cmd\":\"\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	s := &Server{opts: Options{Root: "/w"}, shell: func() string { return "sh" }}
	known := tools()[0].known
	f.Fuzz(func(t *testing.T, data []byte) {
		a := read("exec", data, known)
		if a.err != nil {
			return
		}
		x := a.execution(s)
		if a.err != nil {
			if said := a.err.Error(); !utf8.ValidString(said) && strings.ContainsRune(said, 0x1b) {
				t.Errorf("%q", said)
			}
			return
		}
		var o args.Options
		words, err := syntax.ParseFlags(o.Flags(), x.flags)
		if err != nil {
			return
		}
		if len(words) > 0 || len(o.Local) > 0 || len(o.Writable)+len(o.Readable)+len(o.Denied)+len(
			o.Grants) > 0 ||
			o.Sandbox != "" || o.Dir != "" || o.Config != "" || o.NoConfig || len(o.Cmd.Allow) > 0 {
			t.Errorf("%q: %q opens something", data, x.flags)
		}
		for name, values := range o.Given {
			if len(values) > 0 && !slices.Contains(allowed, name) {
				t.Errorf("%q sets %s", data, name)
			}
		}
		if x.workdir != "" && !strings.HasPrefix(x.workdir, "/") || x.yield < 250e6 || x.yield > 300e9 ||
			x.tokens < 0 {
			t.Errorf("%+v", x)
		}
	})
}

// FuzzLines: however output is cut, its lines are the same, follow each other and have no control characters.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\r\nb\rc\n\x1b[31md\x1b[0m\n\ne"), uint(3))
	f.Add([]byte("\r\r\n\n\x1b]0;t\x07x\r"), uint(1))
	all := func(parts ...[]byte) (got []string) {
		at, last := uint64(0), uint64(0)
		l := lineReader{plain: text.Plain{Returns: true}, yield: func(l line) bool {
			if l.start != last || l.end < l.start {
				got = append(got, "out of order")
			}
			last = l.end
			got = append(got, string(l.text))
			return true
		}}
		for _, p := range parts {
			at += uint64(len(p))
			l.take(p, at)
		}
		if l.given {
			l.finish(false, at)
		}
		if last > at {
			got = append(got, "beyond the end")
		}
		return got
	}
	f.Fuzz(func(t *testing.T, data []byte, cut uint) {
		i := int(cut % uint(len(data)+1)) //nolint:gosec // it is small
		whole, parts := all(data), all(data[:i], data[i:])
		if !slices.Equal(whole, parts) || slices.Contains(whole, "out of order") || slices.Contains(whole,
			"beyond the end") {
			t.Errorf("%q cut at %d: %q, whole %q", data, i, parts, whole)
		}
		for _, l := range whole {
			if strings.ContainsAny(l, "\r\n\x1b\x07") {
				t.Errorf("%q: %q", data, l)
			}
		}
	})
}

// FuzzQuoted: the length in JSON is not underestimated.
func FuzzQuoted(f *testing.F) {
	f.Add("a\"\\\n\t\x00\u2028<>&é€", 5)
	f.Fuzz(func(t *testing.T, s string, most int) {
		s = strings.ToValidUTF8(s, "")
		data, err := json.Marshal(s)
		if err != nil || len(data)-2 > quoted(s) {
			t.Errorf("%q has %d bytes, not %d", s, len(data)-2, quoted(s))
		}
		for _, part := range []string{first(s, most), last(s, most)} {
			if quoted(part) > max(most, 0) || !strings.Contains(s, part) || !utf8.ValidString(part) {
				t.Errorf("%q of %q", part, s)
			}
		}
	})
}

// FuzzHost: only the listener itself is named by what is let in.
func FuzzHost(f *testing.F) {
	for _, seed := range []string{"127.0.0.1:80", "localhost:80", "[::1]:80", "evil.example:80",
		"127.0.0.1.evil:80", ":80", "0:80"} {
		f.Add(seed)
	}
	at := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}
	f.Fuzz(func(t *testing.T, host string) {
		if !listens(at, host) {
			return
		}
		name, _, err := net.SplitHostPort(host)
		if ip := net.ParseIP(strings.Split(name, "%")[0]); err != nil || name != "localhost" &&
			(ip == nil || !ip.IsLoopback()) {
			t.Errorf("%q is let in", host)
		}
	})
}

// FuzzMessages: whatever comes in lines, each line is a message or is answered, and only the end of the input
// ends the connection.
func FuzzMessages(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `x`, `[]`, `[{"jsonrpc":"2.0","id":1,"method":"ping"},5]`,
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"error":"x"}`, `{"":[`,
		"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}\n\r\n[[]]",
		`{"jsonrpc":"2.0","method":"` + cancels + `","params":{"requestId":1}}`,
	} {
		f.Add([]byte(seed + "\n" + seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		ended, canceled, asked := false, false, 0
		c := newConnection(io.NopCloser(bytes.NewReader(data)), &out, func() { ended = true })
		defer c.Close()
		for {
			m, err := c.Read(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			req, ok := m.(*jsonrpc.Request)
			if !ok || !req.IsCall() {
				canceled = canceled || ok && req.Method == cancels
				continue
			}
			asked++
			if err := c.Write(t.Context(), &jsonrpc.Response{ID: req.ID, Result: []byte("{}")}); err != nil {
				t.Fatal(err)
			}
		}
		if !ended || len(c.asked) != 0 {
			t.Errorf("%q: ended %v, %d open", data, ended, len(c.asked))
		}
		refused := 0
		for line := range bytes.Lines(out.Bytes()) {
			list := line
			if line[0] != '[' {
				list = slices.Concat([]byte("["), line, []byte("]"))
			}
			var answers []struct {
				Version string `json:"jsonrpc"`
				Result  json.RawMessage
				Error   *jsonrpc.Error
			}
			if err := json.Unmarshal(list, &answers); err != nil || len(answers) == 0 {
				t.Fatalf("%q: %v", line, err)
			}
			for _, a := range answers {
				if a.Version != "2.0" || (a.Error == nil) == (a.Result == nil) {
					t.Errorf("%q", line)
				}
				if a.Error == nil {
					asked--
				} else if refused++; a.Error.Message == "" {
					t.Errorf("%q says nothing", line)
				}
			}
		}
		for line := range bytes.Lines(data) {
			if line = bytes.TrimSpace(line); len(line) > 0 && !json.Valid(line) {
				refused--
			}
		}
		if asked != 0 && !canceled || refused < 0 {
			t.Errorf("%q: %d without answer, %d refusals: %q", data, asked, refused, out.Bytes())
		}
	})
}
