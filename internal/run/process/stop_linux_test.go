// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
)

// TestStopContinues checks that Stop continues a stopped command, so that it can handle
// SIGTERM.
func TestStopContinues(t *testing.T) {
	checkFDs(t)
	ready := make(chan struct{}, 10)
	cfg := Config{Grace: enough, Output: func(executor.Stream, []byte) { ready <- struct{}{} }}
	// A child reports when the command is stopped.
	p := start(t, cfg, sh(`trap 'echo bye; exit 5' TERM
		(while read -r stat </proc/$$/stat; do case $stat in *') T '*) echo ready; exit;; esac; done) &
		kill -STOP $$; while :; do read -r x; done`))
	<-ready
	p.Stop()
	if x := wait(t, p); x.Code != 5 || !x.Stopped {
		t.Errorf("exit %+v, want code 5 by its trap", x)
	}
}
