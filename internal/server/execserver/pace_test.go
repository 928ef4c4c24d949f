// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/e2e"
)

// TestUnreadProcess: a process whose session has no connection takes turns with others that print much.
func TestUnreadProcess(t *testing.T) {
	_, p := printing(t, "")
	turn := e2e.Floods(t)
	begin := time.Now()
	for range 10 {
		p.onOutput(executor.Stdout, make([]byte, chunkSize))
	}
	if took := time.Since(begin); took < 9*turn {
		t.Errorf("10 outputs took %v, want a turn of %v before each but the first", took, turn)
	}
}
