// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/limits"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/linux/seccomp"
)

// A doctor holds what probes share. Commands never see its private /tmp.
type doctor struct {
	launcher launch.Launcher
	groups   limits.Groups
	host     linux.Host // for its facts
}

// close ignores errors: a private directory that stays is removed later.
func (d *doctor) close() {
	_ = d.launcher.Close()
	_ = d.groups.Close()
	_ = d.host.Close()
}

func (d *doctor) probes() []probe {
	return []probe{
		{"user namespace", true, d.userNamespace},
		{"mount namespace", true, d.mountNamespace},
		{"pid namespace", true, d.pidNamespace},
		{"network namespace", true, d.networkNamespace},
		{"other namespaces", true, d.otherNamespaces},
		{"landlock", true, d.landlock},
		{"seccomp filter", true, d.seccomp},
		{"private /tmp", true, privateTmp},
		{"whole sandbox", true, func(ctx context.Context) (string, error) { return tryLevel(ctx, plan.LevelNative) }},
		{"observer", false, d.observer},
		{"proxy", false, d.proxy},
		{"redirect", false, d.redirect},
		{"routes", false, d.routes},
		{"overlay", false, overlay},
		{"cgroups", false, d.cgroups},
		{"bwrap", false, findBwrap},
		{"surroundings", false, surroundings},
	}
}

// Levels runs a command at every sandbox level, each by itself. When ctx ends, the levels
// that are left are reported as not tried.
func Levels(ctx context.Context) []LevelCheck {
	var d doctor
	defer d.close()
	_, blind := d.observer(ctx)
	facts := *d.host.Facts()
	facts.Blind = blind != nil
	var out []LevelCheck
	for _, level := range []string{plan.LevelNative, plan.LevelBwrap, plan.LevelLandlock} {
		c := LevelCheck{Level: level}
		c.Holds, c.Lacks, c.Refuses = plan.Standing(&facts, level)
		if ctx.Err() != nil {
			c.Why = "not tried: " + context.Cause(ctx).Error()
		} else if _, err := tryLevel(ctx, level); err != nil {
			c.Why, c.Fix = describe(err)
		} else {
			c.Available = true
		}
		out = append(out, c)
	}
	return out
}

// tryLevel runs a shell at one level: it must write in its workspace and must not write
// beside it.
func tryLevel(ctx context.Context, level string) (string, error) {
	host := &linux.Host{Only: level}
	defer func() { _ = host.Close() }() // what it leaves is swept at the next start
	start := func(spec *executor.Spec, stdio [3]*os.File) (child, error) {
		return host.Start(ctx,
			spec, stdio)
	}
	// Not in /tmp if possible: a private /tmp would hide what lies beside the workspace,
	// and a denial would prove nothing.
	return run(start, "/var/tmp", "/bin/sh", false, []trial{
		{"! echo >inside", "could not write to its workspace"},
		{"echo >../outside", "wrote outside of its workspace"},
	})
}

// launch performs steps in new namespaces, those of second in the second task, up to and
// without a program: the last step names none, so that the kernel denies it if, and only
// if, everything before it was done. It returns the step that failed, or another error. Files
// are those beside the standard streams.
func (d *doctor) launch(ns launch.Namespaces, first, second []launch.Step,
	files launch.Files) (*launch.StepError, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	s := &launch.Script{Namespaces: ns}
	if ns&launch.NewUser != 0 {
		s.Steps = append(s.Steps, launch.Step{Op: launch.OpMapUser, UID: os.Geteuid(), GID: os.Getegid()})
	}
	s.Steps = append(append(s.Steps, first...), launch.Step{Op: launch.OpStartCommand})
	s.Steps = append(append(s.Steps, second...), launch.Step{Op: launch.OpExec})
	files.Stdin, files.Stdout, files.Stderr = null, null, null
	p, err := d.launcher.Start(nil, s, files)
	var step *launch.StepError
	switch {
	case err == nil: // not reached: no program has an empty name
		return nil, errors.Join(errors.New("an empty name was executed"), p.Kill(), p.WaitAll(), p.Close())
	case errors.As(err, &step) && step.Index >= 0:
		return step, nil
	}
	return nil, explainProbe(err)
}

// explainProbe returns what a failed launch means.
func explainProbe(err error) error {
	return linux.Explain(&executor.Spec{Args: []string{"the probe"}}, err)
}

// perform performs steps in new namespaces and returns why they cannot be performed.
func (d *doctor) perform(ns launch.Namespaces, steps ...launch.Step) error {
	step, err := d.launch(ns, steps, nil, launch.Files{})
	if err == nil && step.Step.Op != launch.OpExec {
		err = explainProbe(step)
	}
	return err
}

func (d *doctor) userNamespace(context.Context) (string, error) {
	return fmt.Sprintf("created and mapped for user %d", os.Geteuid()), d.perform(launch.NewUser)
}

// mountNamespace makes a file system in memory below / and the whole tree
// read-only; then a directory in it must be denied that could be created before.
func (d *doctor) mountNamespace(context.Context) (string, error) {
	const at = "/dev" // exists everywhere, and what happens there happens in our namespace only
	step, err := d.launch(launch.NewUser|launch.NewMount, []launch.Step{
		{Op: launch.OpTmpfs, Tree: 1, Mode: 0o755},
		{Op: launch.OpAttach, Tree: 1, Path: at},
		{Op: launch.OpMkdir, Path: at + "/before", Mode: 0o755},
		{Op: launch.OpSetMount, Path: "/", Recursive: true, Private: true, Set: launch.AttrReadOnly | launch.AttrNoSuid | launch.AttrNoDev},
		{Op: launch.OpMkdir, Path: at + "/behind", Mode: 0o755},
	}, nil, launch.Files{})
	switch {
	case err != nil:
		return "", err
	case step.Step.Path == at+"/behind" && step.Errno == syscall.EROFS:
		return "created, with the whole tree read-only", nil
	case step.Step.Op == launch.OpExec:
		return "", missing("a read-only tree can still be written to",
			"this kernel is not safe for a sandbox; use another one")
	}
	return "", explainProbe(step)
}

func (d *doctor) pidNamespace(context.Context) (string, error) {
	return "created, with a new /proc", d.perform(launch.NewUser|launch.NewMount|launch.NewPID,
		launch.Step{Op: launch.OpProc, Tree: 1, Set: launch.AttrReadOnly},
		launch.Step{Op: launch.OpAttach, Tree: 1, Path: "/proc"})
}

func (d *doctor) networkNamespace(context.Context) (string, error) {
	return "created, with loopback up", d.perform(launch.NewUser|launch.NewNet,
		launch.Step{Op: launch.OpLoopback})
}

func (d *doctor) otherNamespaces(context.Context) (string, error) {
	for _, ns := range []launch.Namespaces{launch.NewIPC, launch.NewUTS, launch.NewCgroup} {
		if err := d.perform(launch.NewUser | ns); err != nil {
			have, fix := describe(err)
			return "", missing(fmt.Sprintf("%s: %s", ns, have), fix)
		}
	}
	return "ipc, uts and cgroup created", nil
}

// landlock opens the null device for writing, which every user may, first without
// and then with a ruleset that allows nothing. It depends on no namespace.
func (d *doctor) landlock(context.Context) (string, error) {
	facts := d.host.Facts()
	abi := launch.LandlockABI(facts.LandlockABI)
	for _, m := range facts.Missing {
		if abi < launch.LandlockLeastUseful && strings.HasPrefix(m.Need, "Landlock") {
			return "", missing(m.Have, m.Hint)
		}
	}
	quiet, open := []launch.Step{{Op: launch.OpNoNewPrivs}},
		launch.Step{Op: launch.OpRefuseWrite, Path: os.DevNull}
	step, err := d.launch(0, quiet, []launch.Step{open}, launch.Files{})
	if err != nil || step.Step.Op != launch.OpRefuseWrite {
		return "", missing(fmt.Sprintf("version %d, but %s cannot be opened for writing, so it was not tried",
			abi, os.DevNull), "give "+os.DevNull+" the mode 0666")
	}
	rules := launch.Step{Op: launch.OpLandlock, Ruleset: &launch.Ruleset{Handled: abi.Writes(),
		Scoped: abi.Scopes()}}
	step, err = d.launch(0, quiet, []launch.Step{rules, open}, launch.Files{})
	switch {
	case err != nil:
		return "", err
	case step.Step.Op == launch.OpExec:
		return fmt.Sprintf("version %d, it denied a write", abi), nil
	case step.Step.Op == launch.OpRefuseWrite:
		return "", missing(fmt.Sprintf("version %d takes rules but does not enforce them", abi),
			"use another kernel")
	}
	return "", explainProbe(step)
}

// seccomp asks for a set-uid bit on a file without a name: without a filter
// there is no such file, with the default filter the call itself is denied.
func (d *doctor) seccomp(context.Context) (string, error) {
	filter, err := d.filter(false)
	if err != nil {
		return "", err
	}
	quiet, call := launch.Step{Op: launch.OpNoNewPrivs},
		launch.Step{Op: launch.OpChmod, Mode: syscall.S_ISUID | 0o700}
	step, err := d.launch(0, []launch.Step{quiet}, []launch.Step{call}, launch.Files{})
	if err == nil && (step.Step.Op != launch.OpChmod || step.Errno != syscall.ENOENT) {
		err = step
	}
	if err != nil {
		return "", missing(fmt.Sprintf("not tried: %v", err),
			"run sallyport outside of the filter around this process")
	}
	step, err = d.launch(0, []launch.Step{quiet, {Op: launch.OpSeccomp, Filter: filter}}, []launch.Step{call},
		launch.Files{})
	switch {
	case err != nil:
		return "", err
	case step.Step.Op == launch.OpChmod && step.Errno == syscall.EPERM:
		return fmt.Sprintf("the default filter (%d instructions) denied a call", len(filter)), nil
	case step.Step.Op == launch.OpSeccomp:
		return "", missing(fmt.Sprintf("the kernel did not take the filter (%v)", step.Errno),
			"use a kernel with CONFIG_SECCOMP_FILTER")
	}
	return "", missing(fmt.Sprintf("the kernel took the filter, and it denied nothing (%v)", step),
		"use another kernel")
}

// filter returns the default filter, with an observer or without.
func (d *doctor) filter(observe bool) (launch.Filter, error) {
	p, err := seccomp.Program(seccomp.Options{Arch: d.host.Facts().Arch, OwnPID: true, Observe: observe})
	var arch *seccomp.UnsupportedArchError
	if errors.As(err, &arch) {
		err = missing(err.Error(), "use amd64 or arm64")
	}
	return launch.Filter(p), err
}

// privateTmp makes the directory and allocates a little for a file without a name in it.
func privateTmp(context.Context) (string, error) {
	const room = 1 << 20 // less is not enough for anything
	_, tmp, err := dirs.NewTmp()
	if err != nil {
		return "", missing(err.Error(), "set XDG_STATE_HOME to a directory of this user with room")
	}
	defer func() { _ = tmp.Remove() }()
	var st unix.Statfs_t
	fd, err := unix.Open(tmp.Path, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	switch {
	case err == nil:
		err = unix.Fallocate(fd, 0, 0, room)
		if errors.Is(err, unix.EOPNOTSUPP) {
			_, err = unix.Pwrite(fd, make([]byte, room), 0)
		}
		unix.Close(fd)
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EISDIR):
		err = nil // no files without a name there; the directory was made
	}
	if err == nil {
		err = unix.Statfs(tmp.Path, &st)
	}
	if err != nil {
		return "", missing(fmt.Sprintf("cannot write to %s: %s", tmp.Path, hostfacts.Reason(err)),
			"make room there, or set XDG_STATE_HOME to a directory with room")
	}
	return fmt.Sprintf("created in %s, %d MiB free", filepath.Dir(tmp.Path),
		st.Bavail*uint64(st.Bsize)>>20), nil
}
