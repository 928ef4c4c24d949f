// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/internal/protect"
	"github.com/sallyport-dev/sallyport/internal/state"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Host starts processes on this machine. The zero Host is ready to use; its
// methods may be called from several goroutines at once. Close ends it.
type Host struct {
	once  sync.Once
	facts *plan.Host

	mu     sync.Mutex
	closed bool
	state  string
	tmp    *state.Tmp
}

// Facts is what is known about the machine. It is found out once, by running a
// program under a profile that allows everything.
func (h *Host) Facts() *plan.Host {
	h.once.Do(func() {
		h.facts = plainFacts()
		if m := seatbeltMissing(); m != nil {
			h.facts.Missing = []plan.Missing{*m}
		}
	})
	return h.facts
}

// plainFacts are those that need no look.
func plainFacts() *plan.Host {
	return &plan.Host{System: runtime.GOOS, Arch: runtime.GOARCH, UID: os.Geteuid(), GID: os.Getegid()}
}

// seatbeltMissing says why no command can be confined here, or nil.
func seatbeltMissing() *plan.Missing {
	const need = "sandbox-exec, the program that puts a command under a Seatbelt profile"
	var st syscall.Stat_t
	err := syscall.Lstat(plan.SandboxExec, &st)
	switch {
	case err != nil:
		return &plan.Missing{Need: need, Have: fmt.Sprintf("%s cannot be looked at: %v", plan.SandboxExec, err), Hint: "repair the installation of macOS"}
	case st.Mode&syscall.S_IFMT != syscall.S_IFREG, st.Uid != 0, st.Mode&0o022 != 0:
		return &plan.Missing{Need: need, Have: plan.SandboxExec + " is not a file that only root can change", Hint: "repair the installation of macOS"}
	}
	out, err := exec.Command(plan.SandboxExec, "-p", "(version 1)(allow default)", "--", "/usr/bin/true").CombinedOutput()
	if err != nil {
		return &plan.Missing{
			Need: "a sandbox inside of the one around this process, if there is one",
			Have: fmt.Sprintf("%s fails (%v): %s", plan.SandboxExec, err, bytes.TrimSpace(out)),
			Hint: "Seatbelt does not nest: run sallyport outside of the other sandbox, or with full access if that one is enough",
		}
	}
	return nil
}

// Plan looks at the files that a request names and plans the launch.
func (h *Host) Plan(r *executor.Spec) (*plan.Plan, error) {
	if err := check(r); err != nil {
		return nil, err
	}
	pr, err := request(r)
	if err != nil {
		return nil, err
	}
	if r.Policy.Mode() != sandbox.Managed {
		return plan.Make(plainFacts(), pr) // nothing has to be tried for it
	}
	if err := h.confined(r, pr); err != nil {
		return nil, err
	}
	return plan.Make(h.Facts(), pr)
}

// confined adds what a sandbox needs to know.
func (h *Host) confined(r *executor.Spec, pr *plan.Request) error {
	switch r.Level {
	case "", "landlock", plan.LevelSeatbelt:
	case "native", "bwrap":
		return &sandbox.UnsupportedError{
			Need: "the level " + r.Level, Have: "macOS has no process and network namespaces", Hint: "leave the level out, or run it on Linux",
		}
	default:
		return &executor.RootError{Path: r.Level, Why: "is not a sandbox level", Fix: "use " + plan.LevelSeatbelt}
	}
	if m := h.Facts().Missing; len(m) > 0 { // before anything is made
		return &sandbox.UnsupportedError{Need: m[0].Need, Have: m[0].Have, Hint: m[0].Hint}
	}
	res, err := r.Policy.Resolve()
	if err != nil {
		return err
	}
	if err := protect.CheckNamed(res.Named); err != nil {
		return err
	}
	if len(res.Named) > 0 {
		return &sandbox.UnsupportedError{
			Need: fmt.Sprintf("the named grant %q", res.Named[0]), Have: "it is not built for macOS", Hint: "leave it out; --rw with a path opens that path",
		}
	}
	pr.Root = res.Root
	if pr.Rules, pr.Patterns, err = protect.ByName(&res); err != nil {
		return err
	}
	pr.Tmp, err = h.tmpFor(r.Tmp, pr)
	return err
}

// tmpFor decides which folder takes the place of /tmp, and hides our own state.
func (h *Host) tmpFor(want string, pr *plan.Request) (*plan.Tmp, error) {
	const at = "/private/tmp"
	denied := func(r plan.Rule) bool { return r.Path == at && r.Level == sandbox.LevelDeny }
	switch {
	case want == "host", slices.ContainsFunc(pr.Rules, denied):
		return nil, nil
	case want == "" || want == "private":
	case filepath.IsAbs(want):
		real := hostfacts.RealPath(want)
		if st, err := os.Lstat(real); err != nil || !st.IsDir() {
			return nil, &executor.RootError{Path: want, Why: "cannot take the place of /tmp, because it is not a folder", Fix: "create it first"}
		}
		return &plan.Tmp{At: at, Source: plan.Spot{Path: real, Kind: plan.KindFolder}}, nil
	default:
		return nil, &executor.RootError{Path: want, Why: "cannot take the place of /tmp", Fix: "use private, host, or an absolute path"}
	}
	folder, dir, err := h.private()
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(pr.Rules, func(r plan.Rule) bool { return r.Path == folder }) {
		pr.Rules = append(pr.Rules, plan.Rule{
			Spot: plan.Spot{Path: folder, Kind: plan.KindFolder}, Level: sandbox.LevelDeny, Why: "sallyport's own state",
		})
		slices.SortFunc(pr.Rules, func(a, b plan.Rule) int { return strings.Compare(a.Path, b.Path) })
	}
	return &plan.Tmp{At: at, Source: plan.Spot{Path: dir, Kind: plan.KindFolder}}, nil
}

// private returns the state folder and the private one for temporary files,
// which is made once.
func (h *Host) private() (folder, dir string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return "", "", errClosed
	}
	if h.tmp == nil {
		if h.state, h.tmp, err = state.NewTmp(); err != nil {
			return "", "", err
		}
	}
	if folder, err = protect.KernelName(h.state); err == nil {
		dir, err = protect.KernelName(h.tmp.Path)
	}
	return folder, dir, err
}

// Start plans a request and performs the plan. The three descriptors become
// the command's own; they stay the caller's to close. With a sandbox, Start
// returns when sandbox-exec has been executed; what it cannot do it says on
// the command's standard error.
func (h *Host) Start(ctx context.Context, r *executor.Spec, stdin, stdout, stderr *os.File) (Child, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	h.mu.Lock()
	closed := h.closed
	h.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	p, err := h.Plan(r)
	if err != nil {
		return nil, err
	}
	if err := wait(ctx, r); err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: p.Exec.Path, Args: p.Exec.Args, Env: p.Exec.Env, Dir: p.Exec.Dir, Stdin: stdin, Stdout: stdout, Stderr: stderr}
	return startGroup(r, cmd, executor.Sandbox{Level: p.Level, Mechanism: p.Mechanism, Weaker: p.Weaker, Script: p.Exec.String()})
}

// Close refuses further starts and removes the private folder for temporary
// files. It may be called twice.
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
		return fmt.Errorf("remove the private folder for temporary files: %w", err)
	}
	return nil
}

// members lists the processes of a group that are alive.
func members(pgid int) []executor.Survivor {
	const zombie = 5 // SZOMB of <sys/proc.h>
	procs, err := unix.SysctlKinfoProcSlice("kern.proc.pgrp", pgid)
	if err != nil {
		return nil
	}
	var out []executor.Survivor
	for i := range procs {
		if p := &procs[i].Proc; p.P_stat != zombie {
			out = append(out, executor.Survivor{PID: int(p.P_pid), Name: unix.ByteSliceToString(p.P_comm[:])})
		}
	}
	return out
}
