// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// pages is a client of a run with output, which answers with a page after another.
type pages []wire.RunReadResult

func (p *pages) Call(context.Context, string, any, any) error { return errors.ErrUnsupported }
func (p *pages) Close() error                                 { return nil }

func (p *pages) Repeat(_ context.Context, _ string, params, result any) error {
	want, _ := params.(map[string]any)["after"].(uint64)
	for _, page := range *p {
		if page.Next > want || page.Complete {
			*result.(*wire.RunReadResult) = page //nolint:errcheck // it is one
			return nil
		}
	}
	return nil
}

// page is a page with one chunk of so many bytes.
func page(offset uint64, n int, complete bool) wire.RunReadResult {
	chunk := wire.RunChunk{Offset: offset, Stream: "stdout", Chunk: make([]byte, n)}
	return wire.RunReadResult{Chunks: []wire.RunChunk{chunk}, Next: offset + uint64(n), Complete: complete}
}

// TestReplay: of a long output the end is shown, and what is before it is counted.
func TestReplay(t *testing.T) {
	for _, test := range []struct {
		name  string
		pages pages
		shown int
		said  string
	}{
		{"short", pages{page(0, 100, true)}, 100, ""},
		{"none", pages{{Complete: true}}, 0, ""},
		{"a page", pages{page(0, readBytes, false), page(readBytes, 10, true)}, maxReplay, "10 bytes of earlier output are not shown; sallyport logs 7 prints them"},
		{"long", pages{page(0, readBytes, false), page(readBytes, readBytes, false), page(2*readBytes, 5, false)}, maxReplay, "1048581 bytes of earlier output"},
	} {
		t.Run(test.name, func(t *testing.T) {
			said := ""
			env := &Env{Env: new(args.Env), Tell: func(lines ...string) { said += strings.Join(lines, "\n") }}
			a := &attachment{env: env, c: &test.pages, run: &wire.ListedRun{RunID: "7"},
				out: printer{env: env}}
			chunks, _, err := a.replay(t.Context(), &reader{c: a.c, id: "7"})
			shown := 0
			for _, c := range chunks {
				shown += len(c.Chunk)
			}
			if err != nil || shown != test.shown || (test.said == "") != (said == "") ||
				!strings.HasPrefix(said, test.said) {
				t.Errorf("%d bytes, %q, %v", shown, said, err)
			}
		})
	}
}

// TestShow: streams go where they belong, and what is missing is counted, never left out silently.
func TestShow(t *testing.T) {
	dir := t.TempDir()
	open := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	env := &Env{Env: &args.Env{Stdout: open("out"), Stderr: open("err")}}
	env.Tell = func(lines ...string) { _, _ = io.WriteString(env.Stderr, strings.Join(lines, "\n")+"\n") }
	p := printer{env: env, filters: [2]*filter{new(filter), nil}}
	if err := p.show([]wire.RunChunk{
		{Stream: "stdout", Chunk: []byte("a\x1b[6n")}, {Stream: "stderr", Offset: 6, Missing: 2, Chunk: []byte("b\n")}, {Stream: "stdout", Missing: 1, Chunk: []byte("c")},
	}); err != nil {
		t.Fatal(err)
	}
	out, _ := os.ReadFile(filepath.Join(dir, "out"))
	errs, _ := os.ReadFile(filepath.Join(dir, "err"))
	if string(out) != "ac" ||
		string(errs) != "2 bytes of output are no longer retained\nb\n1 byte of output is no longer retained\n" {
		t.Errorf("%q, %q", out, errs)
	}
}

// lists is a client of a server with runs of these IDs.
type lists []string

func (l lists) Call(_ context.Context, _ string, _, result any) error {
	if len(l) == 0 {
		return nil
	}
	return json.Unmarshal([]byte(`{"started":true,"runId":`+strconv.Quote(l[0])+`}`), result)
}

func (l lists) Repeat(ctx context.Context, method string, params, result any) error {
	if method == "run/start" {
		return l.Call(ctx, method, params, result)
	}
	for _, id := range l {
		all := result.(*wire.RunList) //nolint:errcheck // it is one
		all.Runs = append(all.Runs, wire.ListedRun{RunID: id})
	}
	return nil
}

func (l lists) Close() error { return nil }

// TestServerLines: what a server sends as one line is one line, and an ID is a number, with the name of a
// node in a fleet.
func TestServerLines(t *testing.T) {
	for _, id := range []string{"", "1\nsallyport: forged", "1\x1b[2J", "1;rm -rf x", "-1", "+1", "1 ", "0x1",
		"99999999999999999999999", "\u0661", "n-1", "-n-1-1", "n 1-1-1", "n-1-x", "n-1-1\n",
		strings.Repeat("n", 65) + "-1-1"} {
		if _, err := find(t.Context(), lists{"1", id}, "1"); err == nil ||
			strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "no number") {
			t.Errorf("a list with the ID %q: %v", id, err)
		}
		if _, _, err := start(t.Context(), lists{id}, new(wire.RunStart)); err == nil {
			t.Errorf("a start with the ID %q is accepted", id)
		}
	}
	if r, err := find(t.Context(), lists{"1", "18"}, "18"); err != nil || r.RunID != "18" {
		t.Errorf("%+v, %v", r, err)
	}
	const of = "n-1_b-4-18"
	if r, err := find(t.Context(), lists{"1", of}, of); err != nil || r.RunID != of {
		t.Errorf("%+v, %v", r, err)
	}
	const want = `a\nsallyport: forged\x1b[2J` + "\n\n⠀b\n"
	if got := screenText([]string{"a\nsallyport: forged\x1b[2J", "", "⠀b", "", ""}); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := screenText([]string{"", ""}); got != "" {
		t.Errorf("an empty screen is %q", got)
	}
}

func TestConditions(t *testing.T) {
	for _, test := range []struct{ in, want, err string }{
		{"exit", `{"exit":true}`, ""}, {"quiet=2s,input,port", `{"input":true,"port":true,"quietMs":2000}`, ""},
		{"port,match=a,b=c", `{"match":"a,b=c","port":true}`, ""},
		{"", "", `invalid condition ""`}, {"quiet", "", "invalid condition"}, {"quiet=x", "", "quiet: "}, {"quiet=0s", "", "at least 1ms"},
		{"match=", "", "invalid condition"}, {"port=80", "", "invalid condition"}, {"exit,", "", "invalid condition"},
	} {
		t.Run(test.in, func(t *testing.T) {
			var o Options
			err := o.condition(test.in)
			got, _ := json.Marshal(o.awaited())
			if test.err == "" && (err != nil || string(got) != test.want) {
				t.Errorf("%s, %v, want %s", got, err, test.want)
			}
			if test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("%v, want %s", err, test.err)
			}
		})
	}
}

// TestLeave: a run that did not start, and one that has ended, have their exit codes.
func TestLeave(t *testing.T) {
	for _, test := range []struct {
		result, said string
		code         int
	}{
		{`{"exit_code":3,"end":"exited"}`, "", 3}, {`{"exit_code":143,"signal":15,"end":"signaled"}`, "", 143},
		{`{"exit_code":127,"end":"not_found","error":"sallyport: x: not\nfound"}`, "x: not found", 127},
		{`{"exit_code":-1,"end":"refused"}`, "", 123}, {`{"exit_code":-1,"end":"forbidden"}`, "", 122}, {`{"exit_code":-1,"end":"unavailable"}`, "", 121},
		{`{"exit_code":-1,"end":"timed_out"}`, "", 124}, {`{"exit_code":-1,"end":"not_found"}`, "", 127}, {`{"exit_code":-1,"end":"other"}`, "", 125},
		{`{"exit_code":-1,"end":"lost"}`, "the machine that ran the command was lost; what became of the command is not known", 125},
		{`{"exit_code":255,"end":"lost","error":"the machine that ran the command was lost (n1); w"}`,
			"the machine that ran the command was lost (n1); w", 125},
	} {
		t.Run(test.result, func(t *testing.T) {
			said := ""
			err := leave(&Env{Tell: func(lines ...string) { said = lines[0] }},
				json.RawMessage(test.result), false)
			var code explain.ExitCode
			if !errors.As(err, &code) || int(code) != test.code || said != test.said {
				t.Errorf("%v, %q", err, said)
			}
		})
	}
	if err := leave(nil, json.RawMessage(`[]`), false); err == nil {
		t.Error("a list is no result")
	}
}

func TestTable(t *testing.T) {
	now := time.UnixMilli(1_000_000_000_000)
	code, end, denied, lost := 137, "timed_out", 2, "lost"
	got := table([]wire.ListedRun{
		{RunID: "1", Argv: []string{"sh", "-c", "echo \x1b[2J"}, Started: now.Add(-3 * time.Hour).UnixMilli(), Running: true},
		{RunID: "20", Argv: []string{"x"}, Started: now.Add(-90 * time.Second).UnixMilli(), ExitCode: &code, End: &end},
		{RunID: "3", Argv: []string{"y"}, Started: now.Add(time.Second).UnixMilli(), LastLine: "a\x1b\nb"},
		{RunID: "4", Argv: []string{"z"}, ExitCode: &code, End: &end, Denials: &denied,
			LastLine: strings.Repeat("ä", 50)},
		{RunID: "n1-1-5", Argv: []string{"l"}, ExitCode: &code, End: &lost},
	}, now)
	if strings.Contains(got, "\x1b") || !strings.HasPrefix(got, "ID       STATE") ||
		!regexp.MustCompile(`(?m)^20 +timed out \(137\) +1m ago +- +- +x$`).MatchString(got) ||
		!strings.Contains(got, "3h ago") || strings.Count(got, "\n") != 6 ||
		!regexp.MustCompile(`(?m)^3 +ended +0s ago +- +- +y +a.+b$`).MatchString(got) ||
		!regexp.MustCompile(`(?m)^n1-1-5   lost  `).MatchString(got) ||
		!regexp.MustCompile(`(?m)^4 +timed out \(137\), 2 denied .* z +ä{37}\.\.\.$`).MatchString(got) {
		t.Errorf("%s", got)
	}
}

// TestSignalName: what kill -s takes, as the protocol names it. What is no signal is for the server to
// refuse.
func TestSignalName(t *testing.T) {
	for given, want := range map[string]string{"TERM": "SIGTERM", "SIGINT": "SIGINT", "usr1": "SIGUSR1",
		"sighup": "SIGHUP", "9": "SIGKILL", "15": "SIGTERM", "0": "SIG", "-9": "SIG", "NONE": "SIGNONE"} {
		if got := signalName(given); got != want {
			t.Errorf("%s is %s, want %s", given, got, want)
		}
	}
}
