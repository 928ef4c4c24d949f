// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestDeniedEvents checks that the denials that an executor saw are completed and reported in
// events before the end and in the result, and that nothing is guessed after an observer.
func TestDeniedEvents(t *testing.T) {
	const words = "touch: cannot touch '/etc/x': Read-only file system\n"
	for _, test := range []struct {
		name     string
		exit     executor.Exit
		want     string // of the events
		denials  int
		omitted  int
		observed bool
	}{
		{"seen", executor.Exit{Code: 0, Denials: writes("/etc/hosts", "/w/.env"), DenialsOmitted: 7, Sandbox: executor.Sandbox{Observed: true}},
			"judged started denied /etc/hosts denied /w/.env exited ended", 2, 7, true},
		{"seen that there was none", executor.Exit{Code: 1, Sandbox: executor.Sandbox{Observed: true}}, "judged started exited ended", 0, 0, true},
		{"guessed", executor.Exit{Code: 1}, "judged started denied /etc/x exited ended", 1, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var heard []string
			r, _ := fakeRunner(event.SinkFunc(func(e event.Event) {
				if e.Body.Kind() != "output" { // comes when it comes
					heard = append(heard, e.Body.Kind())
				}
				if d, ok := e.Body.(event.Denied); ok {
					heard = append(heard, d.Denial.Path)
					if d.Denial.Rule != "/=read" {
						t.Errorf("the rule is %q", d.Denial.Rule)
					}
				}
			}), func(spec *executor.Spec, p *fakeProcess) {
				spec.OnOutput(executor.Stderr, []byte(words))
				p.exit = test.exit
			})
			r.Policy = sandbox.ReadOnly()
			res, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w"})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if got := strings.Join(heard, " "); got != test.want {
				t.Errorf("events %q, want %q", got, test.want)
			}
			about := res
			if len(res.Denials()) != test.denials || about.DenialsOmitted != test.omitted || about.Sandbox.Observed != test.observed {
				t.Errorf("%+v", about)
			}
			if len(test.exit.Denials) > 0 && test.exit.Denials[0].Rule != "" {
				t.Error("the executor's own list was changed")
			}
		})
	}
}

func writes(names ...string) []sandbox.Denial {
	var ds []sandbox.Denial
	for _, n := range names {
		ds = append(ds, sandbox.Denial{Access: sandbox.Access{Op: sandbox.Write, Path: n}, Source: sandbox.Notified})
	}
	return ds
}
