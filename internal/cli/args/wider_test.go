// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestWider: which flags of a run open more than those of another one, for example of a hook.
func TestWider(t *testing.T) {
	for _, test := range []struct{ settings, hook, run, want string }{
		{"", "", "", ""},
		{"", "", "-q --json -i", ""},
		{"", "", "--timeout 5s --memory 1GiB", ""},
		{"", "--timeout 5s", "", "limits.timeout"},
		{"", "--timeout 5s", "--timeout 6s", "limits.timeout"},
		{"", "--timeout 5s", "--timeout 4s", ""},
		{"", "--memory 1GiB", "--memory 1GiB", ""},
		{"", "", "-s read-only", ""},
		{"", "", "-s full-access", "sandbox"},
		{"", "-s read-only", "", "sandbox"},
		{"", "-s read-only", "-s workspace-write", "sandbox"},
		{"", "-s full-access", "", ""},
		{"sandbox = 'read-only'", "", "", ""},
		{"sandbox = 'read-only'", "", "-s workspace-write", "sandbox"},
		{"", "", "--deny x --deny-host a.b", ""},
		{"", "--deny x", "", "deny"}, {"", "--deny x", "--deny x --deny y", ""},
		{"", "--deny-host a.b", "", "network.deny"},
		{"", "", "--rw /usr", "write"},
		{"", "--rw /usr", "--rw /usr", ""},
		{"", "--rw /usr", "--rw /usr/share", "write"},
		{"", "", "--ro /usr", "read"},
		{"", "", "--grant git", "grants"},
		{"", "", "--allow unix", "allow"},
		{"", "", "--net host", "network.mode"},
		{"", "", "--net proxy", "network.mode"},
		{"", "--net host", "--net none", ""},
		{"", "", "--allow-host a.b", "network.mode"},
		{"", "--allow-host a.b", "--allow-host a.b", ""},
		{"", "--allow-host a.b", "--allow-host c.d", "network.allow"},
		{"", "", "--publish 3000", "network.publish"},
		{"", "", "--tmp host", "tmp"},
		{"", "", "--no-observer", "observer"},
		{"", "", "--no-caches", ""},
		{"", "", "--stage", ""}, {"", "--stage", "--stage=other", ""}, {"", "--stage", "", "stage"},
		{"stage = true", "", "--no-stage", "stage"},
		{"", "", "--level landlock", "level"},
		{"", "", "-e K=V", "environment.set"},
		{"", "--ro /usr", "", "read"}, {"", "", "-e KEY", "environment.pass"},
		{"", "", "--env-inherit none", ""},
		{"environment.inherit = 'core'", "", "--env-inherit all", "environment.inherit"},
		{"", "", "-a untrusted", ""},
		{"", "-a untrusted", "", "approval"},
		{"", "-a untrusted", "-a never", "approval"},
		{"", "", "--approver /bin/true", "hooks.approver"},
		{"", "", "--rules x.rules", "rules"}, {"", "", "-C /usr", "--cd"},
		{"", "-C /usr", "", "--cd"},
		{"", "-C /usr", "-C /usr", ""},
		{"", "", "--escalate", "--escalate"},
		{"", "", "--ask-for /etc", "--ask-for"},
		{"", "", "--fd 3", "--fd"},
		{"", "", "--join a", "--join"},
		{"", "--join a", "--join b", "--join"},
		{"", "--join a", "--join a", ""},
		{"", "", "--detach", "--detach"},
		{"", "", "--no-config", "--no-config"},
		{"", "", "--remote ws://127.0.0.1:1", "--remote"},
		{"", "", "-P :minimal", ""},
		{"", "-P :minimal", "-s read-only", "sandbox"},
		{"", "", "-P offline", ""},
		{"", "-P offline", "", "deny"},
		{"", "", "-P open", "network.mode"},
	} {
		w := newWorkbench(t, test.settings, "")
		hook, he, err := w.options(strings.Fields(test.hook)...)
		if err != nil {
			t.Fatalf("%q: %v", test.hook, err)
		}
		run, re, err := w.options(strings.Fields(test.run)...)
		if err != nil {
			t.Fatalf("%q: %v", test.run, err)
		}
		if got := run.Wider(re, &hook.Run, he); got != test.want {
			t.Errorf("%q, a hook with %q, a run with %q: %q, want %q", test.settings, test.hook, test.run,
				got, test.want)
		}
	}
}

// TestWiderOpensNothing compares all pairs of flags: what is not wider opens no path and no host.
func TestWiderOpensNothing(t *testing.T) {
	w := newWorkbench(t, "deny = ['/var/denied']\n"+
		"[network]\nmode = 'none'\nallow = ['listed.example.com']\n", "")
	places := sandbox.Places{Dir: w.dir, SlashTmp: "/tmp", Home: w.env.Variable("HOME")}
	paths := []string{w.dir + "/a", w.dir + "/.git/config", "/tmp/x", "/etc/hosts", "/usr/share/x",
		"/var/denied/x",
		"/var/offline/x", places.Home + "/x"}
	all := [][]string{{}}
	for _, f := range hostFlags {
		all = append(all, f.words)
	}
	for _, words := range []string{"--rw /usr/share", "--ro /etc", "--deny /etc", "-P :minimal",
		"--no-observer", "--protect-hard-links", "--memory 1GiB"} {
		all = append(all, strings.Fields(words))
	}
	narrow := 0
	for _, a := range all {
		for _, b := range all {
			hook, he, err := w.options(a...)
			run, re, also := w.options(b...)
			if err != nil || also != nil || run.Wider(re, &hook.Run, he) != "" {
				continue
			}
			narrow++
			outer, err := hook.Policy(w.dir, places.Home)
			inner, also := run.Policy(w.dir, places.Home)
			if err != nil || also != nil {
				t.Fatal(err, also)
			}
			outer, inner = outer.Bind(places), inner.Bind(places)
			opens := func(p string) bool { return inner.LevelAt(p) > outer.LevelAt(p) }
			if i := slices.IndexFunc(paths, opens); i >= 0 {
				t.Errorf("%q within %q opens %s", b, a, paths[i])
			}
			for _, r := range requestsOf() {
				x, err := Ask(he, aRule, r.host, r.method)
				y, also := Ask(re, aRule, r.host, r.method)
				if err != nil || also != nil {
					t.Fatal(err, also)
				}
				if y.Allowed() && !x.Allowed() {
					t.Errorf("%q within %q opens %s %s", b, a, r.method, r.host)
				}
			}
		}
	}
	if narrow < len(all) {
		t.Errorf("only %d pairs are not wider", narrow)
	}
}
