// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestLinksProtectable: hard links are protected, or the command does not run.
func TestLinksProtectable(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Host, *Request)
		want   string
	}{
		{"native", func(*Host, *Request) {}, ""},
		{"no observer", func(_ *Host, r *Request) { r.Observe = false }, "turn the observer on"},
		{"observer not available", func(_ *Host, r *Request) { r.Observe, r.Unobserved = false, "a reason" }, "a reason"},
		{"bwrap", func(_ *Host, r *Request) { r.Level = LevelBwrap }, "only the native level"},
		{"landlock", func(_ *Host, r *Request) { r.Level = LevelLandlock }, "only the native level"},
		{"macOS", func(h *Host, _ *Request) { h.System = "darwin" }, "only the native level"},
		{"Windows", func(h *Host, _ *Request) { h.System = "windows" }, "only the native level"},
		{"full access", func(_ *Host, r *Request) { r.Spec.Policy = sandbox.FullAccess() }, "builds no sandbox"},
		{"namespaces", func(_ *Host, r *Request) { r.Spec.Allow = []string{"userns"} }, "do not open userns"},
		{"old Landlock", func(h *Host, _ *Request) { h.LandlockABI = LandlockLeast - 1 }, "Linux 6.2"},
		{"below /dev", func(_ *Host, r *Request) { r.Rules = append(r.Rules, rule("/dev/shm", write, KindDirectory)) }, "makes /dev/shm writable"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, r := host(t, "ubuntu-abi7"), request(rule("/w", write, KindDirectory))
			r.Spec.ProtectHardLinks, r.Observe = true, true
			test.change(h, r)
			p, err := Make(h, r)
			var no *sandbox.UnsupportedError
			switch {
			case test.want == "" && err != nil:
				t.Fatal(err)
			case test.want == "":
			case !errors.As(err, &no) || p != nil || !strings.Contains(err.Error(), test.want):
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// TestLinksRules: where hard links are protected, no rule lets the command open a file in a
// shared place for writing, also none for a private place around it.
func TestLinksRules(t *testing.T) {
	h, r := host(t, "ubuntu-abi7"), request(rule("/tmp/w", write, KindDirectory), rule("/f", write, KindFile))
	r.Spec.ProtectHardLinks, r.Observe = true, true
	p, err := Make(h, r)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(p.Script.Steps, func(s launch.Step) bool { return s.Op == launch.OpLandlock })
	for _, u := range p.Script.Steps[i].Ruleset.Rules {
		private := u.Path == "" || within(u.Path, "/dev") || u.Path == "/proc"
		if opens := u.Access&(launch.LandlockWriteFile|launch.LandlockTruncate) != 0; opens != private {
			t.Errorf("%+v: opens files %v", u, opens)
		}
	}
}
