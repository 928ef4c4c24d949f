// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestPin: a pinned directory stays where it is, shows the mounts that are in it, and
// can be written to as before, with the attributes of the mount around it.
func TestPin(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, one := range []struct {
		name   string
		pin    bool
		script string
		want   string
	}{
		{"without", false, "mv middle away && echo moved", "moved"},
		{"move", true, "mv middle away 2>/dev/null || echo stays", "stays"},
		{"remove", true, "rm -r middle 2>/dev/null; test -d middle && echo stays", "stays"},
		{"write", true, "echo text >middle/new && cat middle/new", "text"},
		{"mount in it", true, "cat middle/inner/file; echo x 2>/dev/null >middle/inner/file || echo closed", "in the mount\nclosed"},
		{"attributes", true, "grep -c 'middle rw,nosuid,nodev' /proc/self/mountinfo", "1"},
	} {
		t.Run(one.name, func(t *testing.T) {
			if strings.Contains(one.script, "grep") {
				testenv.NeedProgram(t, "grep")
			}
			dir := t.TempDir()
			middle, other := filepath.Join(dir, "work", "middle"), filepath.Join(dir, "other")
			for _, d := range []string{filepath.Join(middle, "inner"), other} {
				if err := os.MkdirAll(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(other, "file"), []byte("in the mount\n"),
				0o644); err != nil {
				t.Fatal(err)
			}
			work := filepath.Join(dir, "work")
			steps := append(ownSteps(),
				Step{Op: OpClone, Tree: 1, Path: work},
				Step{Op: OpSetTree, Tree: 1, Private: true, Set: AttrNoSuid | AttrNoDev},
				Step{Op: OpAttach, Tree: 1, Path: work})
			if one.name == "mount in it" {
				steps = append(steps, Step{Op: OpClone, Tree: 2, Path: other},
					Step{Op: OpSetTree, Tree: 2, Private: true, Set: AttrReadOnly},
					Step{Op: OpAttach, Tree: 2, Path: filepath.Join(middle, "inner")})
			}
			if one.pin {
				steps = append(steps, Step{Op: OpPin, Path: middle, ID: identity(t, middle)})
			}
			steps = append(steps, Step{Op: OpStartCommand})
			s := &Script{Namespaces: NewUser | NewMount | NewPID,
				Steps: append(steps, second(shStep("cd "+work+" && { "+one.script+"; }"))...)}
			out, _ := output(t, launcher(t), s)
			if got := strings.TrimSpace(out); got != one.want {
				t.Errorf("got %q, want %q", got, one.want)
			}
		})
	}
}
