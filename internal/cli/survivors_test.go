// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
)

func TestLeftRunning(t *testing.T) {
	tests := []struct {
		name  string
		names []string
		want  string
	}{
		{"one", []string{"sleep"}, "ended one process that the command left running: sleep"},
		{"several", []string{"sleep", "node", "sleep"}, "ended 3 processes that the command left running: sleep (2), node"},
		{"no name", []string{""}, "ended one process that the command left running: ?"},
		{"hostile name", []string{"a\x1b[2J\n\xff"}, "ended one process that the command left running: a?[2J??"},
		{"many", []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}, "ended 9 processes that the command left running: a, b, c, d, e, f, g, h, ..."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var left []executor.Survivor
			for _, n := range tt.names {
				left = append(left, executor.Survivor{PID: 1, Name: n})
			}
			if got := leftRunning(left); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
