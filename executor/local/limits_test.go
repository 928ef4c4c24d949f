// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/confine"
)

// TestLimited says when a limit that was met is the end of a command.
func TestLimited(t *testing.T) {
	for _, test := range []struct {
		name         string
		code, signal int
		limit        string
		wantCode     int
		wantSignal   int
		want         string
	}{
		{"none", 1, 0, "", 1, 0, ""},
		{"refused a process and failed", 2, 0, executor.LimitPIDs, 2, 0, executor.LimitPIDs},
		{"refused a process and went well", 0, 0, executor.LimitPIDs, 0, 0, ""},
		{"killed with its reaper", -1, 0, executor.LimitMemory, 137, 9, executor.LimitMemory},
		{"lost for another reason", -1, 0, "", -1, 0, ""},
		{"killed by its reaper", 137, 9, executor.LimitDisk, 137, 9, executor.LimitDisk},
	} {
		t.Run(test.name, func(t *testing.T) {
			exit := &executor.Exit{Code: test.code, Signal: test.signal}
			limited(exit, &confine.Aftermath{Limit: test.limit, Limits: []executor.Enforced{{Limit: "x"}}})
			if exit.Code != test.wantCode || exit.Signal != test.wantSignal || exit.Limit != test.want || len(exit.Limits) != 1 {
				t.Errorf("%+v", exit)
			}
		})
	}
}

func TestRefusesLimits(t *testing.T) {
	var e Executor
	defer e.Close()
	var bad *executor.LimitError
	if _, err := e.Start(context.Background(), &executor.Spec{Args: []string{"true"}, Resources: executor.Resources{PIDs: -1}}); !errors.As(err, &bad) {
		t.Errorf("%v", err)
	}
}
