// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"os"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// BenchmarkPlan guards: to look at the machine and to plan, which comes before each start, takes at most
// a third of what the kernel takes to start and end a program.
func BenchmarkPlan(b *testing.B) {
	repository := []string{".git", ".git/hooks", ".git/objects", ".git/refs", ".agents",
		".codex", ".sallyport"}
	for _, dirs := range [][]string{nil, repository} {
		b.Run(map[bool]string{true: "plain", false: "repository"}[dirs == nil], func(b *testing.B) {
			a := newArena(b)
			ws := a.base + "/plain"
			for _, d := range append([]string{""}, dirs...) {
				must(b, os.Mkdir(ws+"/"+d, 0o755))
			}
			if dirs != nil {
				write(b, ws+"/.git/HEAD", "ref: refs/heads/main\n")
				write(b, ws+"/.git/config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
			}
			f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			must(b, err)
			defer f.Close()
			in, out, err := os.Pipe() // as for output that is read
			must(b, err)
			defer in.Close()
			defer out.Close()
			spec := &executor.Spec{Args: []string{"/bin/true"}, Dir: ws, Env: []string{"PATH=/usr/bin:/bin"},
				Policy: bind(sandbox.WorkspaceWrite(ws), ws)}
			b.ReportAllocs()
			for b.Loop() {
				t := a.host.attempt(plan.LevelNative, spec, [3]*os.File{f, out, out})
				_, err := t.plan()
				t.release()
				must(b, err)
			}
		})
	}
}
