// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// wrapped is a request for the level of the system's bubblewrap.
func wrapped(rules ...Rule) *Request {
	return request(rules...).with(func(r *Request) {
		r.Level = LevelBwrap
		r.Guard = launch.Filter{0x7fff000000000006}
		r.Bwrap = &Bwrap{Program: "/usr/bin/bwrap", File: "/state/nothing", Directory: "/state/none"}
		r.Env = append(r.Env, "LD_PRELOAD=/w/evil.so", "no-assignment", "=nameless")
	})
}

// words are the options that a plan gives to bubblewrap.
func words(t *testing.T, p *Plan) []string {
	t.Helper()
	for _, s := range p.Script.Steps {
		if s.Op == launch.OpMemory && s.Value == bwrapArgs {
			return strings.Split(strings.TrimSuffix(string(s.Data), "\x00"), "\x00")
		}
	}
	t.Fatal("no options")
	return nil
}

func TestBwrapRefuses(t *testing.T) {
	cases := []struct {
		name    string
		request *Request
		need    string
	}{
		{"none installed", wrapped().with(func(r *Request) { r.Bwrap = nil }), "bubblewrap"},
		{"listed root", wrapped().with(func(r *Request) { r.Root = deny }), "root"},
		{"writable root", wrapped().with(func(r *Request) { r.Root = write }), "root"},
		{"proxy", wrapped().with(network(sandbox.NetworkProxy)), "proxy"},
		{"writable /proc", wrapped(rule("/proc", write, KindDirectory)), "system"},
		{"denied device", wrapped(rule("/dev/tty", deny, KindOther)), "system"},
		{"too many words", wrapped().with(func(r *Request) { r.Env = strings.Fields(strings.Repeat("A=1 ", 4000)) }), "bubblewrap can take"},
		{"reopened below a denied directory", wrapped(rule("/v", deny, KindDirectory), rule("/v/in", read, KindDirectory)), "/v/in=read below the denied /v"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p, err := Make(host(t, "ubuntu-abi7"), c.request)
			var no *sandbox.UnsupportedError
			if !errors.As(err, &no) || p != nil {
				t.Fatalf("got %v, %v; want an *UnsupportedError and no plan", p, err)
			}
			if !strings.Contains(no.Need, c.need) || no.Have == "" || no.Hint == "" {
				t.Errorf("need %q, have %q, hint %q", no.Need, no.Have, no.Hint)
			}
		})
	}
}

// TestBwrapEnvironment: bubblewrap is not confined and gets no environment; the
// command gets all of its own, and none of it as words that others can read.
func TestBwrapEnvironment(t *testing.T) {
	p, err := Make(host(t, "ubuntu-abi7"), wrapped(rule("/w", write, KindDirectory)))
	if err != nil {
		t.Fatal(err)
	}
	steps := p.Script.Steps
	exec := steps[len(steps)-1]
	if len(exec.Env) != 0 || strings.Contains(strings.Join(exec.Argv, " "), "evil") {
		t.Errorf("%q %q", exec.Argv, exec.Env)
	}
	got := strings.Join(words(t, p), " ")
	if !strings.Contains(got, "--clearenv --setenv PATH /bin --setenv LD_PRELOAD /w/evil.so") ||
		strings.Contains(got, "nameless") {
		t.Error(got)
	}
	if s := p.Script.String(); strings.Contains(s, "evil") {
		t.Errorf("the printed script shows the environment:\n%s", s)
	}
}

// TestBwrapOrder: what lies in a directory is mounted after it, and the directories in
// memory are made read-only after what is in them.
func TestBwrapOrder(t *testing.T) {
	p, err := Make(host(t, "nixos"), wrapped(rule("/w", write, KindDirectory),
		rule("/w/a", read, KindDirectory), rule("/w/a/b", write, KindDirectory),
		rule("/run/user/1000/w", write, KindDirectory)))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(words(t, p), " ")
	last := -1
	for _, part := range []string{
		"--ro-bind / /", "--dev /dev", "--proc /proc", "--ro-bind /proc/sys /proc/sys", "--tmpfs /run",
		"--bind /state/tmp.1 /tmp",
		"--bind /run/user/1000/w", "--bind /w /w", "--ro-bind /w/a /w/a", "--bind /w/a/b /w/a/b",
		"--remount-ro /run", "--seccomp", "--clearenv",
	} {
		at := strings.Index(got, part)
		if at <= last {
			t.Errorf("%s is at %d, after %d in\n%s", part, at, last, got)
		}
		last = at
	}
}

// TestBwrapNoPointInRoots: no mount needs a point that is not there, but those
// in directories of ours.
func TestBwrapNoPointInRoots(t *testing.T) {
	p, err := Make(host(t, "ubuntu-abi7"), wrapped(rule("/w", write, KindDirectory),
		rule("/w/.codex", read, KindMissing), rule("/w/x", deny, KindMissing),
		rule("/tmp/w", write, KindDirectory), rule("/tmp/w/.git", read, KindDirectory)))
	if err != nil {
		t.Fatal(err)
	}
	if got := words(t, p); slices.Contains(got, "/w/.codex") || slices.Contains(got, "/w/x") {
		t.Error(got)
	}
	if len(p.Points) != 1 || p.Points[0].Path != "w" || p.Points[0].Below != "/state/tmp.1" {
		t.Errorf("%+v", p.Points)
	}
}

// TestFilesRefused: descriptors are passed on or refused, not left out.
func TestFilesRefused(t *testing.T) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		h, r := host(t, "ubuntu-abi7"), wrapped()
		h.System = system
		r.Spec.Files = map[int]*os.File{63: nil}
		_, err := Make(h, r)
		var unsupported *sandbox.UnsupportedError
		if !errors.As(err, &unsupported) || !strings.HasPrefix(unsupported.Need, "descriptors beyond") {
			t.Errorf("%s: %v", system, err)
		}
	}
}
