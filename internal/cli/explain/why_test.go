// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// seen returns denials of one kind that were seen.
func seen(op sandbox.Op, rule, grant, errno string, targets ...string) []sandbox.Denial {
	var ds []sandbox.Denial
	for _, target := range targets {
		d := sandbox.Denial{Access: sandbox.Access{Op: op, Path: target}, Errno: errno,
			Source: sandbox.Notified, Rule: rule, Grant: grant}
		if op == sandbox.Connect || op == sandbox.Bind {
			d.Path, d.Addr = "", target
		}
		ds = append(ds, d)
	}
	return ds
}

// guess is a denial that was inferred.
func guess(grant string) []sandbox.Denial {
	return []sandbox.Denial{{Access: sandbox.Access{Op: sandbox.Write, Path: "/etc/x"}, Errno: "EROFS",
		Rule: "/=read", Grant: grant}}
}

// aRun is a record of a run that exited with 1.
func aRun(change func(*Record)) Record {
	r := Record{Version: 1, Start: time.Date(2026, 8, 1, 12, 0, 0, 0, time.Local)}
	r.Result = sallyport.Result{
		Run: "abc123", Args: []string{"make", "all"}, Dir: "/home/a/w",
		ExitCode: 1, End: "exited", Duration: 1500 * time.Millisecond, Attempts: make([]sallyport.Attempt, 1),
		Sandbox: event.Sandbox{Mode: "workspace-write",
			Sandbox: executor.Sandbox{Level: "native", Mechanism: []string{"userns", "seccomp"},
				Observed: true}},
	}
	if change != nil {
		change(&r)
	}
	return r
}

func TestEnding(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Record)
		want   string
	}{
		{"exited", nil, "Exited with code 1 after 1.5s."},
		{"a signal", func(r *Record) { r.End, r.Signal, r.ExitCode = "signaled", 9, 137 }, "Killed by signal 9 (killed) after 1.5s."},
		{"time", func(r *Record) { r.End, r.ExitCode = "timed_out", 124 }, "Timed out after 1.5s (exit code 124)."},
		{"canceled", func(r *Record) { r.End, r.ExitCode = "canceled", 125 }, "Canceled after 1.5s (exit code 125)."},
		{"memory", func(r *Record) {
			r.End, r.ExitCode = "oom", 137
			r.Limits = []executor.Enforced{{Limit: "memory", Value: 512 << 20}}
		}, "Killed: memory limit exceeded (512 MiB), after 1.5s (exit code 137)."},
		{"disk", func(r *Record) { r.End = "disk" }, "Killed: disk limit exceeded, after 1.5s (exit code 1)."},
		{"forbidden", func(r *Record) {
			r.End, r.Attempts, r.ExitCode, r.Error = "forbidden", nil, 122, "forbidden: rule 3."
		}, "Did not run (exit code 122): forbidden: rule 3."},
		{"not found", func(r *Record) { r.End, r.Attempts, r.ExitCode = "not_found", nil, 127 }, "Did not run (exit code 127)."},
		{"failed", func(r *Record) { r.End, r.ExitCode, r.Error = "failed", 125, "the sandbox\ndid not hold" }, "Ended (failed) after 1.5s (exit code 125): the sandbox did not hold."},
		{"lost", func(r *Record) { r.End, r.ExitCode, r.Attempts = "lost", 125, nil }, "Lost after 1.5s (exit code 125): the machine that ran the command was lost; what became of the command is not known."},
		{"an end of a later version", func(r *Record) { r.End = "bored" }, "Ended (bored) after 1.5s (exit code 1): unknown reason."},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := ending(aRun(test.change)); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

const explained = `Run abc123, 2026-08-01 12:00:00, in ~/w:
  make all

Exited with code 1 after 1.5s.
Limit reached: memory 1 KiB (by cgroup-v2).
Sandbox: workspace-write, network none, level native (userns, seccomp).
Weaker: the clock.
Quarantined /w/.git (a new git repository): moved to /q; allow with --grant git.
Changed through hard links: /w/f and 3 more (also reachable under other names; --protect-hard-links denies this).
Ended 2 leftover processes: sleep (7), x (8).

Blocked:
  write /etc/hosts (EROFS, 3 times)
      by sh (process 12), observed
      rule: /=read
      allow with: --rw /etc/hosts
  read /w/.env (EACCES)
      by process 13, observed
      rule: deny /w/**/.env
      the policy denies it; no grant allows it
  connect to 192.0.2.1:443 (ENETUNREACH)
      observed
      rule: network=none
      allow with: --net host (opens the whole network)
  write /data (EROFS)
      observed
      rule: /=read
      allow with: -s full-access (warning: builds no sandbox at all)
  and 5 more, which were only counted

Allow what flags can allow:
  sallyport run -s read-only --rw /etc/hosts --net host -- make all
Allow it in this project from now on:
  sallyport config allow --rw /etc/hosts --net host
Wider than what was denied: --net host (opens the whole network).
The rest is allowed outside of the sandbox only: -s full-access.

Blocked, and known to be harmless:
  write ~/.config/go (EROFS): telemetry counters of Go
`

// TestExplainHost: a host that is part of a named grant is told with it, and the suggestion stays
// the host alone.
func TestExplainHost(t *testing.T) {
	const hint = "      part of: --grant net:npm (fetching npm, pnpm and Yarn packages from the npm registry)\n"
	for _, test := range []struct {
		name, addr, grant string
		source            sandbox.Source
		want              bool
	}{
		{"a host of a grant", "registry.npmjs.org:443", "--allow-host registry.npmjs.org:443", sandbox.Proxied, true},
		{"another port", "registry.npmjs.org:80", "--allow-host registry.npmjs.org:80", sandbox.Proxied, false},
		{"another host", "example.org:443", "--allow-host example.org:443", sandbox.Proxied, false},
		{"one that an entry denies", "registry.npmjs.org:443", "", sandbox.Proxied, false},
		{"no proxy", "registry.npmjs.org:443", "--allow-host registry.npmjs.org:443", sandbox.Notified, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := aRun(func(r *Record) {
				ds := seen(sandbox.Connect, "network=proxy", test.grant, "", test.addr)
				ds[0].Source = test.source
				r.SetDenials(ds, 0)
			})
			text := Explain(r, "/home/a", r.Dir)
			if strings.Contains(text, hint) != test.want || strings.Contains(text, "sallyport run --grant") {
				t.Errorf("%s", text)
			}
			if test.grant != "" && !strings.Contains(text, "sallyport run "+test.grant+" -- make all\n") {
				t.Errorf("no suggestion of the host alone:\n%s", text)
			}
		})
	}
}

func TestExplain(t *testing.T) {
	r := aRun(func(r *Record) {
		r.Flags = []string{"-s", "read-only"}
		r.Limits = []executor.Enforced{{Limit: "memory", Value: 1024, By: "cgroup-v2", Hit: true},
			{Limit: "pids", Value: 9}}
		r.Sandbox.Weaker = []string{"the clock"}
		r.HardLinks, r.HardLinksOmitted = []executor.HardLink{{Path: "/w/f", Links: 2}}, 3
		r.Quarantined = []executor.Quarantined{{Path: "/w/.git", MovedTo: "/q", Why: "a new git repository",
			Grant: "--grant git"}}
		r.Survivors = []executor.Survivor{{PID: 7, Name: "sleep"}, {PID: 8, Name: "x"}}
		ds := slices.Concat(
			seen(sandbox.Write, "/=read", "--rw /etc/hosts", "EROFS", "/etc/hosts"),
			seen(sandbox.Read, "deny /w/**/.env", "", "EACCES", "/w/.env"),
			seen(sandbox.Connect, "network=none", "", "ENETUNREACH", "192.0.2.1:443"),
			seen(sandbox.Write, "/=read", "", "EROFS", "/data", "/home/a/.config/go"))
		ds[2].Wider, ds[3].Wider, ds[4].Harmless = "--net host", "-s full-access", "telemetry counters of Go"
		ds[0].Count, ds[0].Program, ds[0].PID, ds[1].PID = 3, "sh", 12, 13
		r.SetDenials(ds, 5)
	})
	if diff := cmp.Diff(explained, Explain(r, "/home/a", r.Dir)); diff != "" {
		t.Error(diff)
	}
	for _, test := range []struct {
		name   string
		change func(*Record)
		want   string
	}{
		{"nothing refused", nil, "\nNothing was denied.\n"},
		{"a limit", func(r *Record) {
			r.Limits = []executor.Enforced{{Limit: executor.LimitPIDs, Value: 10,
				By: executor.ByRlimit, Hit: true}}
		}, "\nBeyond what the limit denied, nothing was denied.\n"},
		{"a limit that was not reached", func(r *Record) {
			r.Limits = []executor.Enforced{{Limit: executor.LimitPIDs, Value: 10, By: executor.ByRlimit}}
		}, "\nNothing was denied.\n"},
		{"only counted", func(r *Record) { r.SetDenials(nil, 3) }, "\nBlocked: 3 operations, which were only counted.\n"},
		{"hidden", func(r *Record) { r.Sandbox.Hidden = []string{"credentials:gh"} }, "\nNo denial is known; attempts to read what is hidden are not observed.\n"},
		{"only harmless", func(r *Record) {
			ds := seen(sandbox.Write, "/=read", "", "EROFS", "/home/a/.config")
			ds[0].Harmless = "telemetry counters of Go"
			r.SetDenials(ds, 0)
		}, "(userns, seccomp).\n\nBlocked, and known to be harmless:\n  write ~/.config (EROFS): telemetry counters of Go\n"},
		{"nothing known", func(r *Record) { r.Sandbox.Observed = false }, "\nNo denial is known, but the program was not observed.\n"},
		{"no sandbox", func(r *Record) {
			r.Sandbox = event.Sandbox{Mode: "full-access", Network: sandbox.NetworkHost,
				Sandbox: executor.Sandbox{Level: "none"}}
		},
			"No sandbox: full-access, network host.\n\nNo sandbox was active, so nothing was denied.\n"},
		{"a guess", func(r *Record) { r.Sandbox.Observed = false; r.SetDenials(guess(""), 0) },
			"Probably blocked (inferred from the output, because the program was not observed):\n  write /etc/x (EROFS)\n      inferred from exit code and output\n      rule: /=read\n\n"},
		{"all", func(r *Record) { r.SetDenials(seen(sandbox.Write, "/=read", "--rw /a/b", "", "/a/b"), 0) }, "\nAllow all of it:\n  sallyport run --rw /a/b -- make all\nAllow it in this project from now on:\n  sallyport config allow --rw /a/b\n"},
		{"secrets", func(r *Record) {
			r.SetDenials(seen(sandbox.Write, "/=read", "--rw /a/b", "", "/a/b"), 0)
			r.Args = []string{"x", "--token=***"}
		}, "sallyport run --rw /a/b -- x '--token=***'\n*** replaces values that were not recorded.\nAllow it in this project from now on:\n  sallyport config allow --rw /a/b\n"},
		{"it did not run", func(r *Record) { r.Attempts, r.Error = nil, "why" }, "\nDid not run (exit code 1): why.\n"},
		{"a socket", func(r *Record) {
			ds := seen(sandbox.Connect, "unix sockets", "", "", "/run/s")
			ds[0].Wider = "--allow unix"
			r.SetDenials(ds, 0)
		}, "Allow all of it:\n  sallyport run --allow unix -- make all\nAllow it in this project from now on:\n  sallyport config allow --allow unix\nWider than what was denied: --allow unix (opens all unix sockets).\n"},
		{"control characters", func(r *Record) { r.Args, r.Run, r.Dir = []string{"\x1b[2J"}, "\x1b[1m", "/\x07" },
			"Run \"\\x1b[1m\", 2026-08-01 12:00:00, in \"/\\a\":\n  $'\\033[2J'\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Explain(aRun(test.change), "/home/a", aRun(nil).Dir)
			if !strings.HasSuffix(got, test.want) && !strings.HasPrefix(got, test.want) {
				t.Errorf("%s\nlacks\n%s", got, test.want)
			}
		})
	}
}

func TestCommand(t *testing.T) {
	w := func(grant string) []sandbox.Denial { return seen(sandbox.Write, "r", grant, "", "/x") }
	for _, test := range []struct {
		name  string
		flags string
		ds    []sandbox.Denial
		want  string
	}{
		{"nothing", "", nil, ""},
		{"no grant", "", w(""), ""},
		{"one", "", w("--rw /a"), "--rw /a"},
		{"the same twice", "", append(w("--grant git"), w("--grant git --rw /w/.git/config")...), "--grant git --rw /w/.git/config"},
		{"a directory and what is in it", "", append(w("--rw /a/b"), w("--rw /a")...), "--rw /a"},
		{"reading in it", "", append(w("--ro /a/b"), w("--rw /a")...), "--rw /a"},
		{"writing in what is read", "", append(w("--rw /a/b"), w("--ro /a")...), "--rw /a/b --ro /a"},
		{"a protected name in it", "", append(w("--rw /a/.git/x"), w("--rw /a")...), "--rw /a/.git/x --rw /a"},
		{"flags that were there", "-s read-only --no-caches --deny /n -C /w", w("--rw /a"), "-s read-only --no-caches --deny /n -C /w --rw /a"},
		{"a flag that was there", "--grant git", w("--grant git --rw /a"), "--grant git --rw /a"},
		{"a flag that keeps it", "--ro /a --ro /b", w("--rw /a"), "--ro /b --rw /a"},
		{"an odd flag at the end", "-x", w("--rw /a"), "-x --rw /a"},
		{"an unreadable grant", "", w("please"), ""},
		{"an opening", "", append(w("--allow userns"), w("--allow userns")...), "--allow userns"},
		{"a network that was chosen", "--net none --rw /b", w("--net host"), "--rw /b --net host"},
		{"no network, and a host", "--net none --rw /b", w("--allow-host a.b:443"), "--rw /b --allow-host a.b:443"},
		{"a managed network, and a host", "--net proxy --rw /b", w("--allow-host a.b:443"), "--net proxy --rw /b --allow-host a.b:443"},
		{"a relative directory", "-C sub", w("--rw /a"), "-C /home/a/w --rw /a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := aRun(func(r *Record) { r.Flags = strings.Fields(test.flags); r.SetDenials(test.ds, 0) })
			want := ""
			if test.want != "" {
				want = "sallyport run " + test.want + " -- make all"
			}
			if got := strings.Join(AllowingCommand(r, r.Dir), " "); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// TestCommandElsewhere: in another directory the commands name the one of the run.
func TestCommandElsewhere(t *testing.T) {
	r := aRun(func(r *Record) { r.SetDenials(seen(sandbox.Write, "r", "--rw /a", "", "/a"), 0) })
	want := "sallyport run -C /home/a/w --rw /a -- make all"
	if got := strings.Join(AllowingCommand(r, "/elsewhere"), " "); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	want = "sallyport config allow -C /home/a/w --rw /a"
	if got := strings.Join(KeepingCommand(r, "/elsewhere"), " "); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestKeep: the project keeps what a setting can open, and nothing of the run's own flags.
func TestKeep(t *testing.T) {
	denied := func(grant, wider string) []sandbox.Denial {
		ds := seen(sandbox.Write, "r", grant, "", "/x")
		ds[0].Wider = wider
		return ds
	}
	for _, test := range []struct {
		name string
		ds   []sandbox.Denial
		want string
	}{
		{"nothing denied", nil, ""},
		{"nothing allows it", denied("", ""), ""},
		{"outside of the sandbox only", denied("", "-s full-access"), ""},
		{"a host", denied("--allow-host example.org", ""), "--allow-host example.org"},
		{"each flag", slices.Concat(denied("--grant git --rw /a", ""), denied("--ro /b", ""), denied("", "--allow unix"), denied("", "--net host")),
			"--grant git --rw /a --ro /b --allow unix --net host"},
		{"a part of it", slices.Concat(denied("--allow-host example.org", ""), denied("--rw /a", ""), denied("", "-s full-access")),
			"--allow-host example.org --rw /a"},
		{"harmless", func() []sandbox.Denial {
			ds := denied("--rw /a", "")
			ds[0].Harmless = "a history"
			return ds
		}(), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := aRun(func(r *Record) {
				r.Flags = []string{"-s", "read-only", "--ro",
					"/a"}
				r.SetDenials(test.ds, 0)
			})
			want := ""
			if test.want != "" {
				want = "sallyport config allow " + test.want
			}
			if got := strings.Join(KeepingCommand(r, r.Dir), " "); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
