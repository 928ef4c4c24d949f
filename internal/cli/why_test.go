// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/runlog"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// aRun is a record of a run that exited with 1.
func aRun(change func(*runlog.Record)) runlog.Record {
	r := runlog.Record{Version: 1, Start: time.Date(2026, 8, 1, 12, 0, 0, 0, time.Local)}
	r.Result = sallyport.Result{
		Run: "abc123", Args: []string{"make", "all"}, Dir: "/home/a/w",
		ExitCode: 1, End: "exited", Duration: 1500 * time.Millisecond, Attempts: make([]sallyport.Attempt, 1),
		Sandbox: sallyport.Sandbox{Mode: "workspace-write", Sandbox: executor.Sandbox{Level: "native", Mechanism: []string{"userns", "seccomp"}, Observed: true}},
	}
	if change != nil {
		change(&r)
	}
	return r
}

func TestHowEnded(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*runlog.Record)
		want   string
	}{
		{"exited", nil, "It exited with code 1 after 1.5s."},
		{"a signal", func(r *runlog.Record) { r.End, r.Signal, r.ExitCode = "signaled", 9, 137 }, "Signal 9 (killed) ended it after 1.5s."},
		{"time", func(r *runlog.Record) { r.End, r.ExitCode = "timed_out", 124 }, "Its time was up after 1.5s, and it was ended (exit code 124)."},
		{"canceled", func(r *runlog.Record) { r.End, r.ExitCode = "canceled", 125 }, "It was canceled after 1.5s (exit code 125)."},
		{"memory", func(r *runlog.Record) { r.End, r.ExitCode = "oom", 137 }, "It wanted more memory than it may have, and was ended after 1.5s (exit code 137)."},
		{"disk", func(r *runlog.Record) { r.End = "disk" }, "It wanted more disk than it may have, and was ended after 1.5s (exit code 1)."},
		{"forbidden", func(r *runlog.Record) {
			r.End, r.Attempts, r.ExitCode, r.Error = "forbidden", nil, 122, "forbidden: rule 3."
		}, "It did not run (exit code 122): forbidden: rule 3."},
		{"not found", func(r *runlog.Record) { r.End, r.Attempts, r.ExitCode = "not_found", nil, 127 }, "It did not run (exit code 127)."},
		{"failed", func(r *runlog.Record) { r.End, r.ExitCode, r.Error = "failed", 125, "the sandbox\ndid not hold" }, "It ended after 1.5s (failed, exit code 125): the sandbox did not hold."},
		{"an end of a later version", func(r *runlog.Record) { r.End = "bored" }, "It ended after 1.5s (bored, exit code 1): nobody knows how."},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := howEnded(aRun(test.change)); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

const explained = `Run abc123, 2026-08-01 12:00:00, in ~/w:
  make all

It exited with code 1 after 1.5s.
The limit of memory was met (1024, held by cgroup-v2).
Its sandbox was workspace-write, network none, at the native level (userns, seccomp).
Weaker than that level promises: the clock.
/w/.git appeared while the command ran (a new git repository) and was moved to /q; --grant git allows it.
2 processes outlived it and were ended: sleep (7), x (8).

It was kept from:
  writing /etc/hosts (EROFS, 3 times)
      by sh (process 12), seen while it happened
      rule: /=read
      allow with: --rw /etc/hosts
  reading /w/.env (EACCES)
      by process 13, seen while it happened
      rule: deny /w/**/.env
      no grant opens what is denied
  connecting to 192.0.2.1:443 (ENETUNREACH)
      seen while it happened
      rule: network=none
  and 5 things of which only the number is known

To let through what can be:
  sallyport run -s read-only --rw /etc/hosts -- make all
Only --net host opens the network, the whole of it.
`

func TestExplainRun(t *testing.T) {
	r := aRun(func(r *runlog.Record) {
		r.Flags = []string{"-s", "read-only"}
		r.Limits = []executor.Enforced{{Limit: "memory", Value: 1024, By: "cgroup-v2", Hit: true}, {Limit: "pids", Value: 9}}
		r.Sandbox.Weaker = []string{"the clock"}
		r.Quarantined = []executor.Quarantined{{Path: "/w/.git", MovedTo: "/q", Why: "a new git repository", Grant: "--grant git"}}
		r.Survivors = []executor.Survivor{{PID: 7, Name: "sleep"}, {PID: 8, Name: "x"}}
		ds := slices.Concat(
			seen(sandbox.Write, "/=read", "--rw /etc/hosts", "EROFS", "/etc/hosts"),
			seen(sandbox.Read, "deny /w/**/.env", "", "EACCES", "/w/.env"),
			seen(sandbox.Connect, "network=none", "", "ENETUNREACH", "192.0.2.1:443"))
		ds[0].Count, ds[0].Program, ds[0].PID, ds[1].PID = 3, "sh", 12, 13
		r.SetDenials(ds, 5)
	})
	if diff := cmp.Diff(explained, explainRun(r, "/home/a")); diff != "" {
		t.Error(diff)
	}
	for _, test := range []struct {
		name   string
		change func(*runlog.Record)
		want   string
	}{
		{"nothing refused", nil, "\nNothing was refused.\n"},
		{"nothing known", func(r *runlog.Record) { r.Sandbox.Observed = false }, "\nNothing is known to have been refused. It was not observed, so that is no proof.\n"},
		{"no sandbox", func(r *runlog.Record) {
			r.Sandbox = sallyport.Sandbox{Mode: "full-access", Network: sandbox.NetworkHost, Sandbox: executor.Sandbox{Level: "none"}}
		},
			"It ran without a sandbox: full-access, network host.\n\nNothing was there to refuse it anything.\n"},
		{"a guess", func(r *runlog.Record) { r.Sandbox.Observed = false; r.SetDenials(guess(""), 0) },
			"It was not observed. By what it printed it was probably kept from:\n  writing /etc/x (EROFS)\n      a guess from exit code and output\n      rule: /=read\n\nNo grant would allow it.\n"},
		{"all", func(r *runlog.Record) { r.SetDenials(seen(sandbox.Write, "/=read", "--rw /a/b", "", "/a/b"), 0) }, "\nTo let all of that through:\n  sallyport run --rw /a/b -- make all\n"},
		{"secrets", func(r *runlog.Record) {
			r.SetDenials(seen(sandbox.Write, "/=read", "--rw /a/b", "", "/a/b"), 0)
			r.Args = []string{"x", "--token=***"}
		}, "sallyport run --rw /a/b -- x '--token=***'\nIn place of *** stands what was not recorded.\n"},
		{"it did not run", func(r *runlog.Record) { r.Attempts, r.Error = nil, "why" }, "\nIt did not run (exit code 1): why.\n"},
		{"a socket", func(r *runlog.Record) { r.SetDenials(seen(sandbox.Connect, "unix sockets", "", "", "/run/s"), 0) }, "No grant would allow it.\nOnly --allow unix opens unix sockets, all of them.\n"},
		{"control characters", func(r *runlog.Record) { r.Args, r.Run, r.Dir = []string{"\x1b[2J"}, "\x1b[1m", "/\x07" },
			"Run \"\\x1b[1m\", 2026-08-01 12:00:00, in \"/\\a\":\n  $'\\033[2J'\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := explainRun(aRun(test.change), "/home/a")
			if !strings.HasSuffix(got, test.want) && !strings.HasPrefix(got, test.want) {
				t.Errorf("%s\nlacks\n%s", got, test.want)
			}
		})
	}
}

func TestCureCommand(t *testing.T) {
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
		{"a folder and what is in it", "", append(w("--rw /a/b"), w("--rw /a")...), "--rw /a"},
		{"reading in it", "", append(w("--ro /a/b"), w("--rw /a")...), "--rw /a"},
		{"writing in what is read", "", append(w("--rw /a/b"), w("--ro /a")...), "--rw /a/b --ro /a"},
		{"a protected name in it", "", append(w("--rw /a/.git/x"), w("--rw /a")...), "--rw /a/.git/x --rw /a"},
		{"flags that were there", "-s read-only --no-caches --deny /n -C /w", w("--rw /a"), "-s read-only --no-caches --deny /n -C /w --rw /a"},
		{"a flag that was there", "--grant git", w("--grant git --rw /a"), "--grant git --rw /a"},
		{"a flag that keeps it", "--ro /a --ro /b", w("--rw /a"), "--ro /b --rw /a"},
		{"an odd flag at the end", "-x", w("--rw /a"), "-x --rw /a"},
		{"what nobody can read", "", w("please"), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := aRun(func(r *runlog.Record) { r.Flags = strings.Fields(test.flags); r.SetDenials(test.ds, 0) })
			want := ""
			if test.want != "" {
				want = "sallyport run " + test.want + " -- make all"
			}
			if got := strings.Join(cureCommand(r), " "); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func withID(id string) runlog.Record { return runlog.Record{Result: sallyport.Result{Run: id}} }

func TestFindRun(t *testing.T) {
	log := runlog.Log{Records: []runlog.Record{withID("ab1"), withID("ab2"), withID("ab"), withID("cd")}}
	for _, test := range []struct{ id, want, err string }{
		{"", "cd", ""}, {"ab1", "ab1", ""}, {"ab", "ab", ""}, {"c", "cd", ""}, {"a", "", "the beginning of 3 runs"}, {"x", "", "no run whose identity begins"},
	} {
		t.Run(test.id, func(t *testing.T) {
			got, err := findRun(log, test.id)
			if got.Run != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%q, %v", got.Run, err)
			}
		})
	}
}

// TestMatter: whatever a flag of run is, it is recorded or known not to matter.
func TestMatter(t *testing.T) {
	ignored := []string{
		"--approval", "--command", "--shell", "--login", "--interactive", "--timeout", "--kill-after", // of the command itself
		"--json", "--jsonl", "--max-output", "--quiet", "--verbose", "--help",
	}
	for _, f := range runFlags(new(runOptions)) {
		if f.missing != "" || slices.Contains(ignored, f.name()) {
			continue
		}
		t.Run(f.long, func(t *testing.T) {
			var o runOptions
			value := "/x"
			switch {
			case len(f.words) > 0:
				value = f.words[len(f.words)-1]
			case f.toggle:
				value = ""
			case f.long == "grant":
				value = "git"
			case f.long == "allow":
				value = openings()[0].Name
			case f.long == "env":
				value = "NAME=secret"
			case slices.Contains([]string{"memory", "disk", "output"}, f.long):
				value = "67108864"
			case f.long == "cpus":
				value = "2.5"
			case f.long == "pids":
				value = "200"
			}
			for _, g := range runFlags(&o) {
				if g.long == f.long {
					if err := g.set(value); err != nil {
						t.Fatal(err)
					}
				}
			}
			got := o.matter()
			want := []string{f.name(), value}
			if f.short != 0 {
				want[0] = "-" + string(rune(f.short))
			}
			if f.value == "" {
				want = want[:1]
			}
			if f.long == "env" {
				want[1] = "NAME=***"
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
