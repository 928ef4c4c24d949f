// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
)

// TestApplyLimit checks when a limit that was exceeded is the end of a command.
func TestApplyLimit(t *testing.T) {
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
			exit := &executor.Exit{Code: test.code, Signal: test.signal, Limit: test.limit}
			applyLimit(exit)
			if exit.Code != test.wantCode || exit.Signal != test.wantSignal || exit.Limit != test.want {
				t.Errorf("%+v", exit)
			}
		})
	}
}
