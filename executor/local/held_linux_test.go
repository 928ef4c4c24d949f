// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestHeldOutside checks that a run ends although a process outside of its tree holds the
// output of the command, and that what the command wrote is there.
func TestHeldOutside(t *testing.T) {
	for _, level := range survivorLevels {
		for _, file := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, file %v", levelName(level), file), func(t *testing.T) {
				e := executorAt(t, level)
				policy := sandbox.ReadOnly()
				if level == "" {
					policy = sandbox.FullAccess()
				}
				const lines = 5000
				spec := newSpec(policy, "sh", "-c",
					fmt.Sprintf("echo ready >&2; read -r x; i=0; while [ $i -lt %d ]; do echo $i; i=$((i+1)); done", lines))
				spec.PipeStdin, spec.Grace = true, -1
				var output strings.Builder
				ready := make(chan struct{})
				spec.OnOutput = func(s executor.Stream, b []byte) {
					if s == executor.Stderr {
						close(ready)
						return
					}
					output.Write(b)
				}
				name := filepath.Join(t.TempDir(), "output")
				if file {
					f, err := os.Create(name)
					if err != nil {
						t.Fatal(err)
					}
					defer f.Close()
					spec.Stdout = f
				}
				p := start(t, e, spec)
				<-ready
				holders := 0
				started, ok := p.(*command)
				if !ok {
					t.Fatalf("%T", p)
				}
				for _, pid := range started.child.Processes() {
					f, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/1", pid), os.O_WRONLY, 0)
					if err == nil {
						holders++
						defer f.Close()
					}
				}
				if holders == 0 {
					t.Fatal("nothing is held")
				}
				if err := p.CloseInput(); err != nil {
					t.Fatal(err)
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					_, _ = p.Wait()
				}()
				select {
				case <-done:
				case <-time.After(noneAfter):
					t.Fatal("it does not end")
				}
				got := output.String()
				if file {
					b, err := os.ReadFile(name)
					if err != nil {
						t.Fatal(err)
					}
					got = string(b)
				}
				if n := strings.Count(got, "\n"); n != lines {
					t.Errorf("%d lines came, want %d", n, lines)
				}
			})
		}
	}
}
