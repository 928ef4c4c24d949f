// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package otheros

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/names/protect"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Host starts commands on this machine. The zero Host is ready to use; its methods may be
// called from several goroutines at once.
type Host struct {
	once  sync.Once
	facts *plan.Host

	mu     sync.Mutex // guards what follows
	closed bool
	state  string
	tmp    *dirs.Tmp
}

var errClosed = errors.New("the executor of this machine is closed")

// Facts returns what is known about the machine. It looks once, by running a program under a
// profile that allows everything.
func (h *Host) Facts() *plan.Host {
	h.once.Do(func() {
		h.facts = plainFacts()
		if m := missing(); m != nil {
			h.facts.Missing = []plan.Missing{*m}
		}
	})
	return h.facts
}

// plainFacts are those that need no look.
func plainFacts() *plan.Host {
	return &plan.Host{System: runtime.GOOS, Arch: runtime.GOARCH, UID: os.Geteuid(), GID: os.Getegid()}
}

// missing returns why no command can be confined here, or nil.
func missing() *plan.Missing {
	lack := func(have string) *plan.Missing {
		return &plan.Missing{
			Need: "sandbox-exec, the program that puts a command under a Seatbelt profile", Have: have,
			Hint: "repair the installation of macOS",
		}
	}
	var st syscall.Stat_t
	if err := syscall.Lstat(plan.SandboxExec, &st); err != nil {
		return lack(fmt.Sprintf("lstat %s fails: %v", plan.SandboxExec, err))
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFREG || st.Uid != 0 || st.Mode&0o022 != 0 {
		return lack(plan.SandboxExec + " is not a file that only root can change")
	}
	out, err := exec.Command(plan.SandboxExec, "-p", "(version 1)(allow default)", "--",
		"/usr/bin/true").CombinedOutput()
	if err != nil {
		return &plan.Missing{
			Need: "a sandbox inside of the one around this process, if there is one",
			Have: fmt.Sprintf("%s fails (%v): %s", plan.SandboxExec, err, bytes.TrimSpace(out)),
			Hint: "Seatbelt does not nest: run sallyport outside of the other sandbox, or with full access if that one is enough",
		}
	}
	return nil
}

// Plan gathers what is at the paths of a policy and plans the command.
func (h *Host) Plan(spec *executor.Spec) (*plan.Plan, error) {
	program, err := hostfacts.Lookup(spec.Args[0], spec.Dir, spec.Env)
	if err != nil {
		return nil, err
	}
	r := &plan.Request{Spec: spec, Program: program, Env: spec.Env}
	if spec.Policy.Mode() != sandbox.Managed {
		return plan.Make(plainFacts(), r) // nothing has to be tried for it
	}
	if err := h.gather(r); err != nil {
		return nil, err
	}
	return plan.Make(h.Facts(), r)
}

// gather adds what a sandbox must know.
func (h *Host) gather(r *plan.Request) error {
	switch level := r.Spec.Level; level {
	case "", "landlock", plan.LevelSeatbelt:
	case "native", "bwrap":
		return &sandbox.UnsupportedError{
			Need: "the level " + level, Have: "macOS has no process and network namespaces",
			Hint: "leave the level out, or run it on Linux",
		}
	default:
		return &executor.RootError{Path: level, Why: "is not a sandbox level", Fix: "use " +
			plan.LevelSeatbelt}
	}
	if r.Spec.AskAccess != nil {
		return &sandbox.UnsupportedError{Need: "calls that wait for an answer",
			Have: "macOS has no observer of system calls", Hint: "leave out --ask-writes (--no-ask-writes)"}
	}
	if m := h.Facts().Missing; len(m) > 0 { // before anything is made
		return &sandbox.UnsupportedError{Need: m[0].Need, Have: m[0].Have, Hint: m[0].Hint}
	}
	res, err := r.Spec.Policy.Resolve()
	if err != nil {
		return err
	}
	if err := protect.CheckNamed(res.Named); err != nil {
		return err
	}
	isOpen := func(name string) bool {
		return strings.HasPrefix(name, grants.CredentialPrefix) || slices.Contains(grants.ToolGrants(), name)
	}
	if other := slices.DeleteFunc(slices.Clone(res.Named), isOpen); len(other) > 0 {
		return &sandbox.UnsupportedError{
			Need: fmt.Sprintf("the named grant %q", other[0]), Have: "it is not supported on macOS",
			Hint: "leave it out, and make the path writable instead",
		}
	}
	r.Root = res.Root
	homes := grants.Homes()
	if r.Rules, r.Patterns, err = protect.ByName(&res, homes,
		closed(dirs.ProtectedDirs(os.Getenv, homes))); err != nil {
		return err
	}
	return h.addTmp(r)
}

// addTmp adds the directory that takes the place of /tmp, and denies our own state.
func (h *Host) addTmp(r *plan.Request) error {
	const at = "/private/tmp"
	want := r.Spec.Tmp
	denied := func(u plan.Rule) bool { return u.Path == at && u.Level == sandbox.LevelDeny }
	switch {
	case want == "host", slices.ContainsFunc(r.Rules, denied):
		return nil
	case want == "" || want == "private":
	case filepath.IsAbs(want):
		real := hostfacts.RealPath(want)
		if st, err := os.Lstat(real); err != nil || !st.IsDir() {
			return &executor.RootError{Path: want,
				Why: "cannot take the place of /tmp, because it is not a directory", Fix: "create it first"}
		}
		r.Tmp = &plan.Tmp{At: at, Source: plan.Spot{Path: real, Kind: plan.KindDirectory}}
		return nil
	default:
		return &executor.RootError{Path: want, Why: "cannot take the place of /tmp",
			Fix: "use private, host, or an absolute path"}
	}
	dir, tmp, err := h.private()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(r.Rules, func(u plan.Rule) bool { return u.Path == dir }) {
		r.Rules = append(r.Rules, plan.Rule{Spot: plan.Spot{Path: dir, Kind: plan.KindDirectory},
			Level: sandbox.LevelDeny, Why: "sallyport's own state"})
		slices.SortFunc(r.Rules, func(a, b plan.Rule) int { return strings.Compare(a.Path, b.Path) })
	}
	r.Tmp = &plan.Tmp{At: at, Source: plan.Spot{Path: tmp, Kind: plan.KindDirectory}}
	return nil
}

// private returns the state directory and the private one for temporary files, which is made
// once.
func (h *Host) private() (dir, tmp string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return "", "", errClosed
	}
	if h.tmp == nil {
		if h.state, h.tmp, err = dirs.NewTmp(); err != nil {
			return "", "", err
		}
	}
	if dir, err = protect.KernelName(h.state); err == nil {
		tmp, err = protect.KernelName(h.tmp.Path)
	}
	return dir, tmp, err
}

// Start starts a command. The three descriptors become the command's own and stay the
// caller's to close. With a sandbox, Start returns when sandbox-exec has been executed, which
// reports its own errors on the command's standard error.
func (h *Host) Start(ctx context.Context, spec *executor.Spec, stdio [3]*os.File) (*process.Group, error) {
	h.mu.Lock()
	closed := h.closed
	h.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	p, err := h.Plan(spec)
	if err != nil {
		return nil, err
	}
	if err := process.WaitReady(ctx, spec); err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: p.Exec.Path, Args: p.Exec.Args, Env: p.Exec.Env, Dir: p.Exec.Dir, Stdin: stdio[0],
		Stdout: stdio[1], Stderr: stdio[2]}
	g, err := process.StartGroup(cmd, p.Sandbox(spec))
	if err != nil {
		return nil, hostfacts.StartError(spec.Args[0], err)
	}
	return g, nil
}

// Close refuses further starts and removes the private directory for temporary files. It may
// be called twice.
func (h *Host) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	h.closed = true
	if h.tmp == nil {
		return nil
	}
	if err := h.tmp.Remove(); err != nil {
		return fmt.Errorf("remove the private directory for temporary files: %w", err)
	}
	return nil
}

// closed adds sallyport's own program to the places that no command may write to.
func closed(places []string) []string {
	if own := hostfacts.OwnBuild(); own != "" {
		places = append(places, own)
	}
	return places
}
