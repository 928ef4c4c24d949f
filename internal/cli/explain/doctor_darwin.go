// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"os"
	"path/filepath"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/otheros"
)

// A doctor tries commands with a Host of its own, whose private directory no other command
// sees.
type doctor struct{ host otheros.Host }

// close ignores errors: a private directory that stays is removed later.
func (d *doctor) close() { _ = d.host.Close() }

func (d *doctor) probes() []probe {
	return []probe{{"seatbelt", true, d.seatbelt}, {"private /tmp", true, privateTmp},
		{"whole sandbox", true, d.wholeSandbox}, {"process tree", false, processTree}}
}

func (d *doctor) seatbelt(context.Context) (string, error) {
	if m := d.host.Facts().Missing; len(m) > 0 {
		return "", missing(m[0].Have, m[0].Hint)
	}
	return plan.SandboxExec + " belongs to root and ran a program", nil
}

func privateTmp(context.Context) (string, error) {
	_, tmp, err := dirs.NewTmp()
	if err != nil {
		return "", err
	}
	defer func() { _ = tmp.Remove() }()
	f, err := os.CreateTemp(tmp.Path, "doctor-")
	if err != nil {
		return "", err
	}
	f.Close()
	return "created in " + filepath.Dir(tmp.Path), os.Remove(f.Name())
}

func processTree(context.Context) (string, error) {
	return "", missing("the process group is ended with the command; a process that leaves the group is neither found nor ended",
		"macOS has nothing better for an ordinary user; check for leftover processes after long runs")
}

// wholeSandbox runs a shell under the default policy with one denied file.
func (d *doctor) wholeSandbox(ctx context.Context) (string, error) {
	start := func(spec *executor.Spec, stdio [3]*os.File) (child, error) {
		return d.host.Start(ctx,
			spec, stdio)
	}
	return run(start, "", "/bin/bash", true, []trial{
		{"! echo >inside", "could not write to its workspace"},
		{"echo >../outside", "wrote outside of its workspace"},
		{": <../secret", "read a denied file"},
		{"mkdir .git", "created a protected name"},
		{"mkdir .GIT", "created a protected name in another spelling"},
		{"mv ../workspace ../moved", "moved its workspace"},
		{"echo >/dev/tcp/127.0.0.1/9", "reached a network"},
		{`! echo >"$TMPDIR/x"`, "could not write to its private temporary directory"},
	})
}
