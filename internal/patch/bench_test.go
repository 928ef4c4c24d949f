// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

const (
	benchFiles  = 50
	benchChunks = 4 // of each file
	benchLines  = 400
)

// benchTree makes the files, and returns the patch in both languages.
func benchTree(b *testing.B, tree string) (ours, gits string) {
	var p, g strings.Builder
	p.WriteString("*** Begin Patch\n")
	for i := range benchFiles {
		name := fmt.Sprintf("d%d/f%d", i%5, i)
		var content strings.Builder
		for line := range benchLines {
			fmt.Fprintf(&content, "line %d of %d\n", line, i)
		}
		put(b, filepath.Join(tree, name), content.String())
		fmt.Fprintf(&p, "*** Update File: %s\n", name)
		fmt.Fprintf(&g, "--- a/%s\n+++ b/%s\n", name, name)
		for c := range benchChunks {
			at := (c + 1) * 80
			chunk := fmt.Sprintf(" line %d of %d\n-line %d of %d\n+new\n line %d of %d\n",
				at, i, at+1, i, at+2, i)
			p.WriteString("@@\n" + chunk)
			fmt.Fprintf(&g, "@@ -%d,3 +%d,3 @@\n%s", at+1, at+1, chunk)
		}
	}
	p.WriteString("*** End Patch")
	return p.String(), g.String()
}

// BenchmarkApply compares 200 chunks in 50 files with git apply. Both are timed as a user has them: git with
// its process, this with parsing, planning and journal. The bar is 1.5 of git's time.
func BenchmarkApply(b *testing.B) {
	b.Run("ours", func(b *testing.B) {
		journals := testenv.RealTemp(b)
		for b.Loop() {
			b.StopTimer()
			tree := b.TempDir()
			text, _ := benchTree(b, tree)
			b.StartTimer()
			if _, err := applyText(text, Options{Dir: tree, Allow: within(tree)}, journals); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("git", func(b *testing.B) {
		git, err := exec.LookPath("git")
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			b.StopTimer()
			tree := b.TempDir()
			_, text := benchTree(b, tree)
			cmd := exec.Command(git, "apply", "--unidiff-zero", "-")
			cmd.Dir, cmd.Stdin = tree, bytes.NewBufferString(text)
			b.StartTimer()
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v %s", err, out)
			}
		}
	})
}
