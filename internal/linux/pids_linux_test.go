// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/testenv"
)

// byResourceLimit is an arena in which an ordinary user's limit on processes is held by a
// resource limit.
func byResourceLimit(t *testing.T) *arena {
	testenv.RunAsOrdinary(t)
	testenv.NeedOrdinaryUser(t)
	a := newArena(t)
	a.host.groups.Disabled = true
	return a
}

// TestPIDsReached: where a resource limit holds the limit on processes, it is known exactly
// whether the command has met it.
func TestPIDsReached(t *testing.T) {
	a := byResourceLimit(t)
	python := testenv.NeedProgram(t, "python3")
	threads := func(n string) []string {
		return []string{python, "-c", `
import sys, threading
stop = threading.Event()
try:
    for _ in range(` + n + `):
        threading.Thread(target=stop.wait, daemon=True).start()
except RuntimeError as e:
    sys.exit(str(e))
finally:
    stop.set()
`}
	}
	const zombies = `
import os, sys
try:
    for _ in range(%s):
        if os.fork() == 0: os._exit(0)
except OSError as e:
    sys.exit(str(e))
`
	for _, test := range []struct {
		name  string
		args  []string
		allow []string
		blind bool
		by    string
		end   string
	}{
		{name: "as many as allowed", args: sh(`for i in 1 2 3 4 5 6 7; do sleep 60 & done; exit 3`), by: "rlimit"},
		{name: "one more", args: sh(`for i in 1 2 3 4 5 6 7 8; do sleep 60 & done; exit 3`), by: "rlimit!", end: executor.LimitPIDs},
		{name: "many one after the other", args: sh(`i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i+1)); done; exit 3`), by: "rlimit"},
		{name: "one more, and the command goes on", args: sh(`(for i in 1 2 3 4 5 6 7 8; do sleep 60 & done) 2>/dev/null; exit 0`), by: "rlimit!"},
		{name: "as many threads as allowed", args: threads("7"), by: "rlimit"},
		{name: "one more thread", args: threads("8"), by: "rlimit!", end: executor.LimitPIDs},
		{name: "processes that have ended", args: []string{python, "-c", strings.ReplaceAll(zombies, "%s", "7")}, by: "rlimit"},
		{name: "one more of them", args: []string{python, "-c", strings.ReplaceAll(zombies, "%s", "8")}, by: "rlimit!", end: executor.LimitPIDs},
		{name: "with namespaces", args: sh(`for i in 1 2 3 4 5 6 7 8; do sleep 60 & done; exit 3`), allow: []string{"userns"}, by: "rlimit!", end: executor.LimitPIDs},
		{name: "without an observer it is not known", args: sh(`for i in 1 2 3 4 5 6 7 8; do sleep 60 & done; exit 3`), blind: true, by: "rlimit"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, err := a.tryBounded(t, executor.Resources{PIDs: 8}, &job{args: test.args, allow: test.allow, blind: test.blind})
			must(t, err)
			if b.by(executor.LimitPIDs) != test.by || b.after.Limit != test.end || b.lost != nil || len(b.after.Denials) > 0 {
				t.Errorf("by %q, ended by %q, want %q and %q; exit %d, %q, %+v", b.by(executor.LimitPIDs), b.after.Limit, test.by, test.end, b.code, b.out, b.after.Denials)
			}
			// The kernel agrees: its answer, or ours, is what the program got.
			if refused := strings.Contains(b.out, "fork") || strings.Contains(b.out, "thread") || strings.Contains(b.out, "unavailable"); refused != (test.by == "rlimit!" || test.blind) && !strings.Contains(test.name, "goes on") {
				t.Errorf("a process was refused: %v; %q", refused, b.out)
			}
		})
	}
}

// TestForkBomb: processes that make others for ever are held by the limit, can be ended, and
// cost the observer nothing that grows.
func TestForkBomb(t *testing.T) {
	a := byResourceLimit(t)
	b, err := a.tryBounded(t, executor.Resources{PIDs: 60}, &job{args: sh(`
bomb() { while :; do (bomb) & done; }
(bomb) 2>/dev/null & sleep 1; exit 3`)})
	must(t, err)
	if b.code != 3 || b.lost != nil || b.by(executor.LimitPIDs) != "rlimit!" || b.after.Limit != executor.LimitPIDs || len(b.after.Denials) > 0 {
		t.Errorf("exit %d, %v, by %q, ended by %q, %q, %+v", b.code, b.lost, b.by(executor.LimitPIDs), b.after.Limit, b.out, b.after.Denials)
	}
}
