// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/e2e"
)

// A printer is an executor whose processes print in Start.
type printer struct{ ownExecutor }

type printed struct{ executor.Process }

func (printed) Output() executor.Output { return nil }

func (printer) Start(_ context.Context, spec *executor.Spec) (executor.Process, error) {
	for range 10 {
		spec.OnOutput(executor.Stdout, make([]byte, 64<<10))
	}
	return printed{}, nil
}

// TestUnreadRun: a run without a reader, and one whose reader has left, take turns with others that print
// much. One that is read does not.
func TestUnreadRun(t *testing.T) {
	turn := e2e.Floods(t)
	gone, read := newReader(printer{}), newReader(printer{})
	gone.leave()
	for name, c := range map[string]struct {
		by    executor.Executor
		turns bool
	}{
		"no reader": {unread{wrapped{printer{}}}, true}, "left": {gone, true}, "read": {read, false},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 { // a machine that stands still for 45 ms does so seldom
				begin := time.Now()
				_, err := c.by.Start(t.Context(), &executor.Spec{OnOutput: func(executor.Stream, []byte) {}})
				took := time.Since(begin)
				if err != nil || c.turns && took < 9*turn {
					t.Fatalf("10 outputs took %v, %v, want a turn of %v before each but the first",
						took, err, turn)
				}
				if c.turns || took < 9*turn {
					return
				}
			}
			t.Error("what is read waits for the turns of others")
		})
	}
}
