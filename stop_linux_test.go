// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport_test

import (
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestOnStop: the caller hears that the command was stopped, as often as it was, and not of its
// children; it goes on when the caller says so.
func TestOnStop(t *testing.T) {
	testenv.NeedUserNS(t)
	for _, policy := range []sandbox.Policy{sandbox.WorkspaceWrite(), sandbox.FullAccess()} {
		t.Run(policy.Name(), func(t *testing.T) {
			runner := &sallyport.Runner{Policy: policy}
			defer runner.Close()
			cmd := sallyport.Script(`sleep 100 & kill -STOP $!; kill -TSTP $$; kill -STOP $$; kill -KILL $!; exit 7`)
			cmd.Dir, cmd.Shell = t.TempDir(), "sh"
			cmd.Tmp = "host"
			signals, stops := make(chan int, 8), 0
			cmd.Signals = signals
			cmd.OnStop = func() { stops++; signals <- int(syscall.SIGCONT) }
			res, err := runner.Run(t.Context(), cmd)
			if err != nil || res.ExitCode != 7 || stops != 2 {
				t.Errorf("%v, %v, %d stops", res, err, stops)
			}
		})
	}
}
