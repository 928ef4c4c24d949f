// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"os"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestRights: of a command that failed, the words tell what no program has in a sandbox.
func TestRights(t *testing.T) {
	t.Parallel()
	const own, user, links, first, kernel = "see only their own", "another user", "settings of a sandbox",
		"priority", "over the kernel"
	root := func(want string) string { // what others lack outside too
		if os.Geteuid() != 0 {
			return ""
		}
		return want
	}
	for _, c := range []struct{ script, want string }{
		{"su -c true", user}, {"sudo -n make install", user}, {"make && sudo make install", user},
		{"nice -n -5 make", root(first)}, {"chattr +i a", root(kernel)},
		{"ip link set lo down", links}, {"ip link show", ""}, {"iptables -A INPUT -j DROP", links},
		{"gdb -p 1", own}, {"strace -p1", own}, {"perf record --pid=1", own}, {"kill -9 1", own},
		{"gdb -p 4999999", ""}, {"strace true", ""}, {"kill -9 4999999", ""}, {"lsof -p $PID", ""},
		{"echo su", ""}, {"grep -r sudo .", ""}, {"taskset 1 true", ""}, {"make", ""},
	} {
		r := runOf(sandbox.WorkspaceWrite("/w"), "/proc/1")
		r.OS, r.Local, r.Dir, r.Args = "linux", true, "/w", []string{"sh", "-c", c.script}
		r.Env = append(r.Env, "PATH=/nosuch")
		got := ""
		for _, d := range r.Rights(1, nil) {
			got += d.Rule
			if d.Source != sandbox.Guessed || !d.NoGrant || !strings.HasPrefix(d.Rule, NothingOpens) {
				t.Errorf("%s: %+v", c.script, d)
			}
		}
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.script, got, c.want)
		}
		if ds := r.Rights(0, nil); ds != nil {
			t.Errorf("%s: %+v of a command that succeeded", c.script, ds)
		}
	}
	r := runOf(sandbox.WorkspaceWrite("/w"))
	r.OS, r.Local, r.Args = "linux", true, []string{"su"}
	seen := []sandbox.Denial{{Access: sandbox.Access{Op: sandbox.Syscall, Call: "bpf"},
		Source: sandbox.Notified, Program: "/bin/su"}}
	if ds := r.Rights(1, seen); ds != nil {
		t.Errorf("%+v beside a fact", ds)
	}
}

// TestSystemLocks: what tools of the system lock needs the directory that they change.
func TestSystemLocks(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"/etc/.pwd.lock": "/etc", "/var/lib/dpkg/lock": "/var/lib/dpkg",
		"/srv/app/lock": "/srv/app/lock"} {
		r := runOf(sandbox.WorkspaceWrite("/w"), name)
		if got := r.needed(&writes(name)[0]); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestRemovedElsewhere: the tree of rm is found where the script has changed its directory.
func TestRemovedElsewhere(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"cd /o && rm -rf cache": "/o", "cd /o && rm -rf cache/old": "/o/cache",
		"cd /o/cache && rm -r old/f": "/o/cache/old",
		"cd /o && rm -rf other":      "/o/cache/old", "rm -rf $X": "/o/cache/old",
		"cd /o && echo cache && rm -r $X": "/o/cache/old",
	} {
		r := runOf(sandbox.WorkspaceWrite("/w"), "/o/cache/old/f")
		r.Dir, r.Args = "/w", []string{"sh", "-c", script}
		ds := writes("/o/cache/old/f")
		ds[0].Unlinks, ds[0].Program = true, "/bin/rm"
		if got := r.needed(&ds[0]); got != want {
			t.Errorf("%s: %s, want %s", script, got, want)
		}
	}
}
