// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/executor"
)

// TestTaskStopped: what asks for the end of a process ends a task.
func TestTaskStopped(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		stop func(*Task) error
		want executor.Exit
	}{
		{"by Stop", func(task *Task) error { task.Stop(); return nil },
			executor.Exit{Code: 143, Signal: 15, Stopped: true, LastSignal: 15}},
		{"by signals", func(task *Task) error {
			return errors.Join(task.Signal(28), task.Signal(2), task.Signal(15))
		}, executor.Exit{Code: 130, Signal: 2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			task := Perform(&executor.Spec{}, executor.Sandbox{},
				func(ctx context.Context, _, _ io.Writer) *executor.Exit {
					<-ctx.Done()
					return nil
				})
			if err := test.stop(task); err != nil {
				t.Error(err)
			}
			exit, err := task.Wait()
			if diff := cmp.Diff(&test.want, exit); diff != "" || err != nil {
				t.Errorf("%v (- want, + got): %s", err, diff)
			}
			if err := task.Signal(2); !errors.Is(err, os.ErrProcessDone) {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}
