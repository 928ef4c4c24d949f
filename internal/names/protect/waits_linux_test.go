// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/names/git"
)

// TestPointerIsPipe: a named pipe that an earlier command has put where a git directory
// points back does not keep the next start waiting.
func TestPointerIsPipe(t *testing.T) {
	for _, name := range []string{"gitdir", "config"} {
		dir := t.TempDir()
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
		answer := make(chan bool)
		go func() { answer <- mutual(&git.Repository{Dir: dir, Common: dir, Pointer: true}) }()
		select {
		case yes := <-answer:
			if yes {
				t.Errorf("%s: it points back", name)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s is waited for", name)
		}
	}
}
