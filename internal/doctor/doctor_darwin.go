// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/darwin"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/internal/state"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Checks tries every part of the sandbox. Probes that ctx ends are not tried.
func Checks(ctx context.Context) []Check {
	d := new(doctor)
	checks := []Check{
		{Name: "seatbelt", Needed: true},
		{Name: "private /tmp", Needed: true},
		{Name: "whole sandbox", Needed: true},
		{Name: "process tree"},
	}
	for i, try := range []func(context.Context) (string, error){d.seatbelt, d.privateTmp, d.wholeSandbox, d.processTree} {
		c := &checks[i]
		if ctx.Err() != nil {
			c.Detail = "not tried: " + context.Cause(ctx).Error()
			continue
		}
		detail, err := try(ctx)
		var no *sandbox.UnsupportedError
		switch {
		case err == nil:
			c.OK, c.Detail = true, detail
		case errors.As(err, &no):
			c.Detail, c.Fix = no.Have, no.Hint
		default:
			c.Detail = err.Error()
		}
	}
	// What Close would report, a private folder that stays, is swept later.
	_ = d.host.Close()
	return checks
}

// A doctor tries things with a Host of its own, so that what it leaves in the
// private folder is never seen by a command.
type doctor struct {
	host darwin.Host
}

func (d *doctor) seatbelt(context.Context) (string, error) {
	if m := d.host.Facts().Missing; len(m) > 0 {
		return "", &sandbox.UnsupportedError{Need: m[0].Need, Have: m[0].Have, Hint: m[0].Hint}
	}
	return plan.SandboxExec + " belongs to root and ran a program", nil
}

func (d *doctor) privateTmp(context.Context) (string, error) {
	_, tmp, err := state.NewTmp()
	if err != nil {
		return "", err
	}
	defer func() { _ = tmp.Remove() }()
	dir := tmp.Path
	f, err := os.CreateTemp(dir, "doctor-")
	if err != nil {
		return "", err
	}
	f.Close()
	return "made in " + filepath.Dir(dir), os.Remove(f.Name())
}

func (d *doctor) processTree(context.Context) (string, error) {
	return "", &sandbox.UnsupportedError{
		Need: "a hold on every process of a command", Have: "the process group is ended with the command; what leaves the group is neither found nor ended",
		Hint: "macOS has nothing better for an ordinary user; look at what long runs leave behind",
	}
}

// wholeSandbox runs a shell under the default policy with one denied file: it
// must write in its workspace, must not write beside it, nor read what is
// denied, nor make a protected name in any spelling, nor move its workspace,
// nor reach a network.
func (d *doctor) wholeSandbox(ctx context.Context) (string, error) {
	base, err := os.MkdirTemp("", "sallyport-doctor-")
	if err != nil {
		return "", fmt.Errorf("no folder to try it in: %w", err)
	}
	defer os.RemoveAll(base)
	base = hostfacts.RealPath(base)
	ws := filepath.Join(base, "workspace")
	root, err := os.OpenRoot(base)
	if err != nil {
		return "", fmt.Errorf("no folder to try it in: %w", err)
	}
	defer root.Close()
	if err := errors.Join(root.Mkdir("workspace", 0o700), root.WriteFile("secret", []byte("x"), 0o600)); err != nil {
		return "", fmt.Errorf("no folder to try it in: %w", err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return "", err
	}
	defer null.Close()
	steps := []struct{ script, broken string }{
		{`echo >inside || exit 10`, "could not write to its workspace"},
		{`(echo >../outside) && exit 11`, "wrote outside of its workspace"},
		{`(: <../secret) && exit 12`, "read a denied file"},
		{`mkdir .git && exit 13`, "made a protected name"},
		{`mkdir .GIT && exit 14`, "made a protected name in another spelling"},
		{`mv ../workspace ../moved && exit 15`, "moved its workspace"},
		{`(echo >/dev/tcp/127.0.0.1/9) && exit 16`, "reached a network"},
		{`echo >"$TMPDIR/x" || exit 17`, "could not write to its private folder for temporary files"},
	}
	var script strings.Builder
	for _, s := range steps {
		script.WriteString(s.script + "\n")
	}
	script.WriteString("exit 0\n")
	policy := sandbox.WorkspaceWrite(ws).WithEntries(sandbox.PathEntry(filepath.Join(base, "secret"), sandbox.LevelDeny))
	c, err := d.host.Start(ctx, &executor.Spec{
		Args: []string{"/bin/bash", "-c", script.String()}, Dir: ws, Env: []string{"PATH=/usr/bin:/bin"},
		Policy: policy.Bind(sandbox.Places{Dir: ws, Workspaces: []string{ws}, SlashTmp: "/tmp"}),
	}, [3]*os.File{null, null, null})
	if err != nil {
		return "", err
	}
	code, _, err := c.Wait()
	err = errors.Join(err, c.Kill(), c.WaitAll(), c.Close(new(executor.Exit)))
	const first = 10
	switch {
	case err != nil:
		return "", fmt.Errorf("a command was lost: %w", err)
	case code >= first && code < first+len(steps):
		return "", &sandbox.UnsupportedError{Have: "a command " + steps[code-first].broken, Hint: "do not rely on it here, and report this"}
	case code != 0:
		return "", &sandbox.UnsupportedError{
			Have: fmt.Sprintf("a command did not run under the profile (exit %d)", code), Hint: "run sallyport run -v to see the profile, and report this",
		}
	}
	return fmt.Sprintf("a command wrote in its workspace and nowhere else (%s)", strings.Join(c.Sandbox().Mechanism, ", ")), nil
}
