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
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/landlock"
	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/internal/limits"
	"github.com/sallyport-dev/sallyport/internal/linux"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/internal/seccomp"
	"github.com/sallyport-dev/sallyport/internal/state"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Checks tries every part of the sandbox. Probes that ctx ends are not tried.
func Checks(ctx context.Context) []Check {
	d := new(doctor)
	d.host.Only = plan.LevelNative
	defer d.close()
	var checks []Check
	for _, p := range append(d.needed(), d.told()...) {
		c := Check{Name: p.name, Needed: p.needed}
		if ctx.Err() != nil {
			c.Detail = "not tried: " + context.Cause(ctx).Error()
			checks = append(checks, c)
			continue
		}
		detail, err := p.try(ctx)
		if err != nil {
			c.Detail, c.Fix = cause(err)
		} else {
			c.OK, c.Detail = true, detail
		}
		checks = append(checks, c)
	}
	return checks
}

// A probe is one part of the sandbox and how to try it. The error says what is
// missing.
type probe struct {
	name   string
	needed bool
	try    func(ctx context.Context) (detail string, err error)
}

// A doctor tries things with a Host of its own, so that what it leaves in the
// private /tmp is never seen by a command.
type doctor struct {
	launcher launch.Launcher
	groups   limits.Groups
	host     linux.Host
}

// close ends what the probes have started. A private directory that cannot be removed is
// removed later.
func (d *doctor) close() {
	_ = d.launcher.Close()
	_ = d.groups.Close()
	_ = d.host.Close()
}

// A lackError says what a probe misses, and what to do about it.
type lackError struct {
	have string
	mend string
}

func (e *lackError) Error() string { return e.have }

// cause puts an error into the two sentences of a Check.
func cause(err error) (detail, mend string) {
	var lack *lackError
	if errors.As(err, &lack) {
		return lack.have, lack.mend
	}
	var no *sandbox.UnsupportedError
	if errors.As(err, &no) {
		if no.Hint == hostfacts.SeeDoctor {
			return no.Have, "nothing usual explains it; ask who runs this machine, or look at dmesg"
		}
		return no.Have, no.Hint
	}
	return err.Error(), ""
}

func (d *doctor) needed() []probe {
	return []probe{
		{"user namespace", true, d.userNamespace},
		{"mount namespace", true, d.mountNamespace},
		{"pid namespace", true, d.pidNamespace},
		{"network namespace", true, d.networkNamespace},
		{"other namespaces", true, d.otherNamespaces},
		{"landlock", true, d.landlock},
		{"seccomp filter", true, d.seccomp},
		{"private /tmp", true, d.privateTmp},
		{"whole sandbox", true, func(ctx context.Context) (string, error) { return wholeSandbox(ctx, &d.host) }},
	}
}

// perform performs steps in new namespaces, up to and without a program: the
// last step names none, so that the kernel refuses it when, and only when,
// everything before it was done. It returns nil in that case.
func (d *doctor) perform(ns launch.Namespaces, steps []launch.Step) error {
	err := d.refusal(ns, steps, nil)
	var step *launch.StepError
	if errors.As(err, &step) && step.Index >= 0 && step.Step.Op == launch.OpExec {
		return nil
	}
	return linux.Explain(&executor.Spec{Args: []string{"the probe"}}, err)
}

// refusal performs steps like perform and returns what the kernel said in the end.
func (d *doctor) refusal(ns launch.Namespaces, first, second []launch.Step) error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	s := &launch.Script{Namespaces: ns}
	if ns&launch.NewUser != 0 {
		s.Steps = append(s.Steps, launch.Step{Op: launch.OpMapUser, UID: os.Geteuid(), GID: os.Getegid()})
	}
	s.Steps = append(s.Steps, first...)
	s.Steps = append(s.Steps, launch.Step{Op: launch.OpStartCommand})
	s.Steps = append(s.Steps, second...)
	s.Steps = append(s.Steps, launch.Step{Op: launch.OpExec})
	p, err := d.launcher.Start(nil, s, launch.Files{Stdin: null, Stdout: null, Stderr: null})
	if err != nil {
		return err
	}
	// Not reached: no program has an empty name.
	return errors.Join(errors.New("an empty name was executed"), p.Kill(), p.WaitAll(), p.Close())
}

// stepOf returns the step that failed; nil when the error is of another kind.
func stepOf(err error) *launch.StepError {
	var step *launch.StepError
	if errors.As(err, &step) && step.Index >= 0 {
		return step
	}
	return nil
}

func (d *doctor) userNamespace(context.Context) (string, error) {
	if err := d.perform(launch.NewUser, nil); err != nil {
		return "", err
	}
	return fmt.Sprintf("made and mapped for user %d", os.Geteuid()), nil
}

// mountNamespace makes a file system in memory below / and the whole tree
// read-only; then a folder in it must be refused that could be made before.
func (d *doctor) mountNamespace(context.Context) (string, error) {
	const at = "/dev" // exists everywhere, and what happens there happens in our namespace only
	err := d.refusal(launch.NewUser|launch.NewMount, []launch.Step{
		{Op: launch.OpTmpfs, Tree: 1, Mode: 0o755},
		{Op: launch.OpAttach, Tree: 1, Path: at},
		{Op: launch.OpMkdir, Path: at + "/before", Mode: 0o755},
		{Op: launch.OpSetMount, Path: "/", Recursive: true, Private: true, Set: launch.AttrReadOnly | launch.AttrNoSuid | launch.AttrNoDev},
		{Op: launch.OpMkdir, Path: at + "/behind", Mode: 0o755},
	}, nil)
	switch step := stepOf(err); {
	case step != nil && step.Step.Path == at+"/behind" && step.Errno == syscall.EROFS:
		return "made, with the whole tree read-only", nil
	case step != nil && step.Step.Op == launch.OpExec:
		return "", &lackError{"a tree that was made read-only can still be written to", "this kernel cannot be trusted with a sandbox; use another one"}
	}
	return "", linux.Explain(&executor.Spec{Args: []string{"the probe"}}, err)
}

func (d *doctor) pidNamespace(context.Context) (string, error) {
	err := d.perform(launch.NewUser|launch.NewMount|launch.NewPID, []launch.Step{
		{Op: launch.OpProc, Tree: 1, Set: launch.AttrReadOnly},
		{Op: launch.OpAttach, Tree: 1, Path: "/proc"},
	})
	if err != nil {
		return "", err
	}
	return "made, with a fresh /proc", nil
}

func (d *doctor) networkNamespace(context.Context) (string, error) {
	if err := d.perform(launch.NewUser|launch.NewNet, []launch.Step{{Op: launch.OpLoopback}}); err != nil {
		return "", err
	}
	return "made, with loopback up", nil
}

func (d *doctor) otherNamespaces(context.Context) (string, error) {
	for _, ns := range []launch.Namespaces{launch.NewIPC, launch.NewUTS, launch.NewCgroup} {
		if err := d.perform(launch.NewUser|ns, nil); err != nil {
			have, mend := cause(err)
			return "", &lackError{fmt.Sprintf("%s: %s", ns, have), mend}
		}
	}
	return "ipc, uts and cgroup made", nil
}

// landlock opens the null device for writing, which anybody may, first without
// and then with a ruleset that allows nothing.
func (d *doctor) landlock(context.Context) (string, error) {
	facts := d.host.Facts()
	abi := landlock.ABI(facts.LandlockABI)
	if abi < landlock.LeastUseful {
		for _, m := range facts.Missing {
			if strings.HasPrefix(m.Need, "Landlock") {
				return "", &lackError{m.Have, m.Hint}
			}
		}
	}
	open := launch.Step{Op: launch.OpRefuseWrite, Path: os.DevNull}
	// No steps of a namespace, so that this does not depend on one.
	err := d.refusal(0, []launch.Step{{Op: launch.OpNoNewPrivs}}, []launch.Step{open})
	if step := stepOf(err); step == nil || step.Step.Op != launch.OpRefuseWrite {
		return "", &lackError{fmt.Sprintf("version %d, but %s does not open for writing, so nothing could be tried", abi, os.DevNull), "mend " + os.DevNull + " (mode 0666)"}
	}
	rules := &launch.Ruleset{Handled: abi.Writes(), Scoped: abi.Scopes()}
	err = d.refusal(0, []launch.Step{{Op: launch.OpNoNewPrivs}}, []launch.Step{{Op: launch.OpLandlock, Ruleset: rules}, open})
	switch step := stepOf(err); {
	case step != nil && step.Step.Op == launch.OpExec:
		return fmt.Sprintf("version %d, a write was refused", abi), nil
	case step != nil && step.Step.Op == launch.OpRefuseWrite:
		return "", &lackError{fmt.Sprintf("version %d takes rules but does not enforce them", abi), "use another kernel"}
	}
	return "", linux.Explain(&executor.Spec{Args: []string{"the probe"}}, err)
}

// seccomp asks for a set-uid bit on a file without a name: without a filter
// there is no such file, with the default filter the call itself is refused.
func (d *doctor) seccomp(context.Context) (string, error) {
	filter, err := filter(d.host.Facts().Arch, false)
	if err != nil {
		var arch *seccomp.UnsupportedArchError
		if errors.As(err, &arch) {
			return "", &lackError{err.Error(), "use amd64 or arm64"}
		}
		return "", err
	}
	call := launch.Step{Op: launch.OpChmod, Mode: syscall.S_ISUID | 0o700}
	err = d.refusal(0, []launch.Step{{Op: launch.OpNoNewPrivs}}, []launch.Step{call})
	if step := stepOf(err); step == nil || step.Step.Op != launch.OpChmod || step.Errno != syscall.ENOENT {
		return "", &lackError{fmt.Sprintf("nothing could be tried: %v", err), "run it outside of the filter around this process"}
	}
	err = d.refusal(0, []launch.Step{{Op: launch.OpNoNewPrivs}, {Op: launch.OpSeccomp, Filter: filter}}, []launch.Step{call})
	switch step := stepOf(err); {
	case step != nil && step.Step.Op == launch.OpChmod && step.Errno == syscall.EPERM:
		return fmt.Sprintf("the default filter (%d instructions) refused a call", len(filter)), nil
	case step != nil && step.Step.Op == launch.OpSeccomp:
		return "", &lackError{fmt.Sprintf("the kernel did not take the filter (%v)", step.Errno), "use a kernel with CONFIG_SECCOMP_FILTER"}
	}
	return "", &lackError{fmt.Sprintf("the filter was taken but refused nothing (%v)", err), "use another kernel"}
}

// privateTmp makes the folder and writes a little to a file without a name in it.
func (d *doctor) privateTmp(context.Context) (string, error) {
	const room = 1 << 20 // less than this helps nobody
	_, tmp, err := state.NewTmp()
	if err != nil {
		return "", &lackError{err.Error(), "set XDG_STATE_HOME to a folder of this user with room"}
	}
	defer func() { _ = tmp.Remove() }()
	dir := tmp.Path
	full := func(err error) error {
		return &lackError{fmt.Sprintf("nothing can be written to %s: %s", dir, hostfacts.Reason(err)), "make room there, or set XDG_STATE_HOME to a folder with room"}
	}
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EISDIR) {
		return "", full(err)
	}
	if err == nil { // where files without a name are unknown, the folder has to do
		err = unix.Fallocate(fd, 0, 0, room)
		if errors.Is(err, unix.EOPNOTSUPP) {
			_, err = unix.Pwrite(fd, make([]byte, room), 0)
		}
		unix.Close(fd)
		if err != nil {
			return "", full(err)
		}
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", full(err)
	}
	free := st.Bavail * uint64(st.Bsize) >> 20
	return fmt.Sprintf("made in %s, %d MiB free", filepath.Dir(dir), free), nil
}

// wholeSandbox runs a shell under the default policy: it must write in its
// workspace and must not write beside it.
func wholeSandbox(ctx context.Context, host *linux.Host) (string, error) {
	// Not in /tmp, if it can be helped: there a private folder would hide what
	// lies beside the workspace, and a refusal would prove nothing.
	base, err := os.MkdirTemp("/var/tmp", "sallyport-doctor-")
	if err != nil {
		base, err = os.MkdirTemp("", "sallyport-doctor-")
	}
	if err != nil {
		return "", &lackError{"no folder to try it in: " + err.Error(), "make room in the temporary directory"}
	}
	defer os.RemoveAll(base)
	base = hostfacts.RealPath(base)
	ws := filepath.Join(base, "workspace")
	if err := syscall.Mkdir(ws, 0o700); err != nil {
		return "", &lackError{"no folder to try it in: " + err.Error(), "make room in the temporary directory"}
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return "", err
	}
	defer null.Close()
	const script = `echo >inside || exit 3; (echo >../outside) 2>/dev/null && exit 4; exit 0`
	r := &executor.Spec{
		Args: []string{"/bin/sh", "-c", script}, Dir: ws, Env: []string{"PATH=/usr/bin:/bin"},
		Policy: sandbox.WorkspaceWrite(ws).Bind(sandbox.Places{Dir: ws, Workspaces: []string{ws}, SlashTmp: "/tmp"}),
	}
	c, err := host.Start(ctx, r, [3]*os.File{null, null, null})
	if err != nil {
		return "", err
	}
	code, _, err := c.Wait()
	_ = c.Kill() // the shell leaves nothing behind; if it did, WaitAll would block
	err = errors.Join(err, c.WaitAll(), c.Close(new(executor.Exit)))
	switch {
	case err != nil:
		return "", &lackError{"a command was lost: " + err.Error(), ""}
	case code == 4:
		return "", &lackError{"a command wrote outside of its workspace", "do not use it here, and report this"}
	case code != 0:
		return "", &lackError{fmt.Sprintf("a command could not write to its workspace (exit %d)", code), "report this"}
	}
	return fmt.Sprintf("a command wrote in its workspace and nowhere else (%s)", strings.Join(c.Sandbox().Mechanism, ", ")), nil
}

// filter compiles the default filter, with or without an observer.
func filter(arch string, observe bool) (launch.Filter, error) {
	p, err := seccomp.Program(seccomp.Options{Arch: arch, OwnPID: true, Observe: observe})
	return launch.Filter(p), err
}
