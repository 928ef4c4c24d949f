// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package explain

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// missing returns the error of a probe, and the fix.
func missing(have, fix string) error { return &sandbox.UnsupportedError{Have: have, Hint: fix} }

// A child is a command of one of the hosts.
type child interface {
	Wait() (code, signal int, err error)
	Kill() error
	WaitAll() error
	Close(*executor.Exit) error
	Sandbox() executor.Sandbox
}

// A trial is a line of a shell script that succeeds in a sandbox that does not hold, and
// what that means.
type trial struct{ script, broken string }

// run runs trials in a workspace below dir under the default policy, and with deny also
// with a denied file "secret" beside the workspace.
func run(start func(spec *executor.Spec, stdio [3]*os.File) (child, error), dir, shell string, deny bool,
	trials []trial) (string, error) {
	base, err := os.MkdirTemp(dir, "sallyport-doctor-")
	if err != nil {
		base, err = os.MkdirTemp("", "sallyport-doctor-")
	}
	base = hostfacts.RealPath(base)
	ws, secret := filepath.Join(base, "workspace"), filepath.Join(base, "secret")
	if err == nil {
		defer os.RemoveAll(base)
		err = errors.Join(os.Mkdir(ws, 0o700), os.WriteFile(secret, []byte("x"), 0o600))
	}
	if err != nil {
		return "", missing("no directory to try it in: "+err.Error(), "make room in the temporary directory")
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return "", err
	}
	defer null.Close()
	const first = 10
	var script strings.Builder
	for i, t := range trials {
		fmt.Fprintf(&script, "(%s) 2>/dev/null && exit %d\n", t.script, first+i)
	}
	script.WriteString("exit 0\n")
	policy := sandbox.WorkspaceWrite(ws)
	if deny {
		policy = policy.WithEntries(sandbox.PathEntry(secret, sandbox.LevelDeny))
	}
	c, err := start(&executor.Spec{
		Args: []string{shell, "-c", script.String()}, Dir: ws, Env: []string{"PATH=/usr/bin:/bin"},
		Policy: policy.Bind(sandbox.Places{Dir: ws, Workspaces: []string{ws}, SlashTmp: "/tmp"}),
	}, [3]*os.File{null, null, null})
	if err != nil {
		return "", err
	}
	code, _, err := c.Wait()
	err = errors.Join(err, c.Kill(), c.WaitAll(), c.Close(new(executor.Exit)))
	switch {
	case err != nil:
		return "", missing("a command was lost: "+err.Error(), "")
	case code >= first && code < first+len(trials):
		return "", missing("a command "+trials[code-first].broken, "do not rely on it here, and report this")
	case code != 0:
		return "", missing(fmt.Sprintf("a command did not run (exit %d)", code),
			"sallyport run -v prints how it is started; report this")
	}
	return fmt.Sprintf("a command wrote in its workspace and nowhere else (%s)",
		strings.Join(c.Sandbox().Mechanism, ", ")), nil
}
