// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestVanishing: repositories that another program makes and removes in the workspace all the
// while do not stop a run.
func TestVanishing(t *testing.T) {
	testenv.NeedUserNS(t)
	ws := t.TempDir()
	stop := make(chan struct{})
	var others sync.WaitGroup
	for i := range 2 {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				top := filepath.Join(ws, "a"+strconv.Itoa(i))
				git := filepath.Join(top, "work", ".git")
				for _, dir := range []string{"hooks", "objects", "refs"} {
					_ = os.MkdirAll(filepath.Join(git, dir), 0o755)
				}
				_ = os.WriteFile(filepath.Join(git, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644)
				_ = os.WriteFile(filepath.Join(git, "config"), []byte("[core]\n\tbare = false\n"), 0o644)
				_ = os.RemoveAll(top)
			}
		})
	}
	r := newRunner(t, sandbox.WorkspaceWrite())
	for range 50 {
		c := Command("true")
		c.Dir = ws
		if _, err := r.Run(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	others.Wait()
}
