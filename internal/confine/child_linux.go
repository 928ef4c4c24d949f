// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A child is a process of the launcher with the plan that it was started by.
type child struct {
	proc *launch.Process
	plan *plan.Plan
	own  bool // has its own process namespace

	keep   *keeping
	bounds *bounds
	over   chan struct{}  // closed by Close
	watch  sync.WaitGroup // the goroutine of attend, which is over before proc is closed
	mu     sync.Mutex
	broken error     // why a wall is gone; guarded by mu
	after  Aftermath // written by Close
}

// execute performs a plan as its level needs it and returns what the launcher says:
// the child, and the part of it that every level has.
func (h *Host) execute(p *plan.Plan, stdin, stdout, stderr *os.File) (Child, *child, error) {
	if p.Pipes {
		b, err := h.launchBwrap(p, stdin, stdout, stderr)
		if err != nil {
			return nil, nil, err
		}
		return b, b.child, nil
	}
	c, err := h.launch(p, stdin, stdout, stderr)
	if err != nil {
		return nil, nil, err
	}
	return c, c, nil
}

// launch performs a plan and returns what the launcher says.
func (h *Host) launch(p *plan.Plan, stdin, stdout, stderr *os.File) (*child, error) {
	proc, err := h.launcher.Start(&p.Script, stdin, stdout, stderr)
	if err != nil {
		return nil, err
	}
	return &child{
		keep: &keeping{}, over: make(chan struct{}), proc: proc, plan: p,
		own: p.Script.Namespaces&launch.NewPID != 0,
	}, nil
}

func (c *child) PID() int { return c.proc.PID() }

func (c *child) Wait() (code, signal int, err error) {
	st, err := c.proc.Wait()
	switch {
	case err != nil:
		return -1, 0, err
	case st.Signaled():
		return 128 + int(st.Signal()), int(st.Signal()), nil
	}
	return st.ExitStatus(), 0, nil
}

func (c *child) WaitAll() error { return c.proc.WaitAll() }

func (c *child) Signal(sig syscall.Signal, tree bool) error {
	to := launch.ToGroup
	if tree {
		to = launch.ToTree
	}
	err := c.proc.Signal(sig, to)
	if tree && !c.own {
		// No process namespace: those that left the group are found by descent.
		for _, s := range c.alive() {
			signalDescendant(c.PID(), s.PID, sig)
		}
	}
	return err
}

// Kill ends the tree. Without a process namespace that takes several rounds,
// because a process may start others while we look.
func (c *child) Kill() error {
	if c.proc.Empty(0) {
		return nil
	}
	err := c.proc.KillTree(soonDead)
	if c.own {
		return err
	}
	const rounds = 64 // a tree that grows faster than this is left to the kernel's limits
	for range rounds {
		alive := c.alive()
		if len(alive) == 0 {
			break
		}
		for _, s := range alive {
			signalDescendant(c.PID(), s.PID, unix.SIGKILL)
		}
	}
	return err
}

// attend looks after what is kept around the command.
func (c *child) attend(k *keeping) {
	c.keep = k
	held := k.held
	if held == nil {
		return
	}
	c.watch.Go(func() {
		select {
		case <-held.Broken():
			c.mu.Lock()
			c.broken = held.Cause()
			c.mu.Unlock()
			_ = c.Kill() // WaitAll tells what became of it
		case <-c.over:
		}
	})
}

// Close ends what was kept. Names that came into being although they must not
// are moved away first.
func (c *child) Close() error {
	close(c.over)
	c.watch.Wait()
	found, err := c.keep.finish()
	var after Aftermath
	c.bounds.finish(c.proc, &after)
	c.mu.Lock()
	after.Quarantined, after.Denials, after.Broken = found, c.keep.denials, c.broken
	c.after = after
	if c.after.Broken == nil {
		c.after.Broken = err
	}
	c.mu.Unlock()
	return c.proc.Close()
}

func (c *child) Aftermath() Aftermath {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.after
}

func (c *child) Sandbox() executor.Sandbox {
	return executor.Sandbox{Level: c.plan.Level, Mechanism: c.plan.Mechanism, Weaker: c.plan.Weaker, Script: c.plan.Script.String(), Warnings: c.keep.warnings}
}

// Survivors walks the tree below the reaper by the kernel's lists of children.
func (c *child) Survivors() []executor.Survivor {
	// The reaper is asked first: it knows, and usually there are none.
	const soon = 2 * time.Millisecond
	if c.proc.Empty(soon) {
		return nil
	}
	return c.alive()
}

func (c *child) alive() []executor.Survivor {
	var out []executor.Survivor
	for _, pid := range descendants(c.PID()) {
		out = append(out, executor.Survivor{PID: pid, Name: oneLine(fmt.Sprintf("/proc/%d/comm", pid))})
	}
	return out
}

// descendants lists the processes below one, without those that have ended and
// only wait to be collected.
func descendants(root int) []int {
	var out []int
	queue := []int{root}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", at))
		if err != nil {
			continue
		}
		for _, t := range tasks {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", at, t.Name()))
			if err != nil {
				continue
			}
			for w := range strings.FieldsSeq(string(b)) {
				pid, err := strconv.Atoi(w)
				if err != nil {
					continue
				}
				queue = append(queue, pid)
				if !ended(pid) {
					out = append(out, pid)
				}
			}
		}
	}
	return out
}

// ended reports whether a process is a zombie or gone.
func ended(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	// The name in parentheses may hold anything; the state follows the last one.
	_, rest, ok := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
	return !ok || strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}

// signalDescendant signals a process after it has made sure, with a handle on
// it in hand, that it still is below root: a number alone could have been used
// again.
func signalDescendant(root, pid int, sig syscall.Signal) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	for _, d := range descendants(root) {
		if d == pid {
			_ = unix.PidfdSendSignal(fd, sig, nil, 0) // it may have ended by now
			return
		}
	}
}

// explain turns a failed step into what it means for a person.
func explain(r *Request, err error) error {
	var step *launch.StepError
	if !errors.As(err, &step) {
		return err
	}
	switch {
	case step.Index < 0:
		return namespaceError(step.Errno)
	case step.Step.Op == launch.OpExec:
		return startError(r.Args[0], step.Errno)
	case step.Step.Op == launch.OpChdir:
		return &DirError{Dir: r.Dir, Err: step.Errno}
	case step.Step.Op == launch.OpMapUser:
		return &sandbox.UnsupportedError{
			Need: "a user namespace of its own", Have: fmt.Sprintf("the kernel let one be made but not be used (%v)", step.Errno),
			Hint: namespaceHint(),
		}
	case step.Errno == syscall.ENOSYS:
		return &sandbox.UnsupportedError{
			Need: "the system call " + step.Call, Have: "this kernel, or a filter around this process, does not have it",
			Hint: "use Linux 5.19 or newer, outside of a container that filters it",
		}
	case step.Step.Op == launch.OpProc && errors.Is(step.Errno, fs.ErrPermission):
		return &sandbox.UnsupportedError{
			Need: "a fresh /proc", Have: procHave(),
			Hint: "start the container with an uncovered /proc (Docker: --security-opt systempaths=unconfined; Podman: --security-opt unmask=ALL)",
		}
	case step.Errno == syscall.EACCES && step.Step.ID != (launch.ID{}) && (step.Step.Op == launch.OpClone || step.Step.Op == launch.OpAttach):
		return &RootError{
			Path: step.Step.Path, Why: "cannot be reached inside a user namespace: a folder above it belongs to another user and is closed",
			Mend: "run as that user, or open the folders above it for others (chmod o+x)",
		}
	case step.Call == "compare", step.Errno == syscall.ELOOP:
		return &RootError{
			Path: step.Step.Path, Why: "was replaced while the sandbox was built, so the command did not run",
			Mend: "try again when nothing else changes it",
		}
	}
	return &sandbox.UnsupportedError{Need: "every wall of the sandbox", Have: err.Error(), Hint: seeDoctor}
}

// namespaceError says why the kernel made no namespaces.
func namespaceError(errno syscall.Errno) error {
	return &sandbox.UnsupportedError{
		Need: "a user namespace of its own", Have: fmt.Sprintf("the kernel refused to make one (%v)", errno),
		Hint: namespaceHint(),
	}
}

// seeDoctor is the hint where nothing better is known.
const seeDoctor = "see sallyport doctor"

// namespaceHint looks at the usual reasons.
func namespaceHint() string {
	if hint := strangeHint(oneLine("/proc/version")); hint != "" {
		return hint
	}
	switch {
	case oneLine("/proc/sys/user/max_user_namespaces") == "0":
		return "user.max_user_namespaces is 0 here: as root, sysctl user.max_user_namespaces=10000"
	case oneLine("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return "this kernel keeps user namespaces from ordinary users: as root, sysctl kernel.unprivileged_userns_clone=1"
	case oneLine("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "AppArmor keeps user namespaces from programs without a profile: load a profile for sallyport that allows userns, or as root, sysctl kernel.apparmor_restrict_unprivileged_userns=0"
	case seccompFiltered():
		return filterHint(container())
	}
	return seeDoctor
}

// seccompFiltered reports whether this process is under a filter itself.
func seccompFiltered() bool {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	return strings.Contains(string(b), "\nSeccomp:\t2")
}

// soonDead is how long killed processes may take to be gone: with the reaper alive
// it can be told how the command ended and what it used. A process in the middle of
// a slow write can take longer.
const soonDead = 100 * time.Millisecond
