// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
)

// TestStartedBytes: what a message would change is refused, or left out and named.
func TestStartedBytes(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, test := range []struct {
		name, dir string
		words     []string
		url, want string // in the error; empty for none
	}{
		{"words", "/w", []string{"cat", "\xff"}, "", "UTF-8"},
		{"words for another machine", "/w", []string{"\xff"}, "ws://x:1", "UTF-8"},
		{"directory", "/\xff", []string{"cat"}, "", "UTF-8"},
		{"directory of this machine", "/\xff", []string{"cat"}, "ws://x:1", ""},
		{"no directory", "", []string{"cat"}, "", "no longer exists"},
		{"valid", "/wé", []string{"cat", "é"}, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var said string
			env := &Env{
				Env: &args.Env{Stdin: null, Stdout: null, Dir: test.dir,
					Environ: []string{"A=1", "BAD=\xff", "A=2", "C="}},
				Tell: func(lines ...string) { said += strings.Join(lines, " ") },
			}
			run := new(args.Options)
			run.Server.URL = test.url
			got, err := started(env, run, test.words)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Fatalf("%v, want %q", err, test.want)
			}
			if got != nil && got.Env != nil && (!maps.Equal(got.Env, map[string]string{"A": "2", "C": ""}) ||
				!strings.Contains(said, "BAD")) {
				t.Errorf("%v, said %q", got.Env, said)
			}
		})
	}
}

// TestSandboxes: the list for people.
func TestSandboxes(t *testing.T) {
	if got := (Sandboxes{}).String(); got != "" {
		t.Errorf("%q for none", got)
	}
	left := int64(599_900)
	got := Sandboxes{{Name: "db", Workspace: "/w", Network: "none", Running: 2},
		{Name: "web", Workspace: "/a b", Network: "host", IdleLeft: &left}}.String()
	lines := strings.Split(got, "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "NAME   NETWORK   STARTED") ||
		!strings.HasSuffix(lines[1], " ago   2         -           /w") ||
		!strings.HasSuffix(lines[2], `   0         10m         "/a b"`) &&
			!strings.HasSuffix(lines[2], `   0         10m         /a b`) {
		t.Errorf("%s", got)
	}
}
