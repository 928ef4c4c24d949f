// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unique"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/internal/limits"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/internal/process"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A child is a process of the launcher. It does not keep the plan that it was started
// by, which is large, and the child may live for days.
type child struct {
	proc *launch.Process
	host *Host
	// What the plan said about the sandbox.
	level             string
	mechanism, weaker []string
	script            words
	own               bool // has its own process namespace

	commandEnded atomic.Bool // Wait has returned

	terminal *os.File // the master end; nil without one

	keep     *keeping
	seen     *watching
	bounds   *limits.Bounds
	mu       sync.Mutex
	closing  bool           // Close has begun; guarded by mu
	watch    sync.WaitGroup // what was noticed and is seen to, which is over before proc is closed; added to under mu while not closing
	broken   error          // why a wall is gone; guarded by mu
	outgrown error          // why the tree goes on; guarded by mu
	after    Aftermath      // written by Close
}

// execute performs a plan as its level needs it and returns what the launcher says:
// the child, and the part of it that every level has. A preforked task, or nil, is used
// where it fits.
func (h *Host) execute(p *plan.Plan, pre *launch.Preforked, files launch.Files) (Child, *child, error) {
	if p.Pipes {
		b, err := h.launchBwrap(p, files)
		if err != nil {
			return nil, nil, err
		}
		return b, b.child, nil
	}
	c, err := h.launch(p, pre, files)
	if err != nil {
		return nil, nil, err
	}
	return c, c, nil
}

// launch performs a plan and returns what the launcher says.
func (h *Host) launch(p *plan.Plan, pre *launch.Preforked, files launch.Files) (*child, error) {
	var masters *masterInbox
	if p.Has(launch.OpTerminal) {
		var err error
		if masters, err = awaitMaster(); err != nil {
			return nil, err
		}
		defer masters.close()
		files.Terminal = masters.theirs
	}
	proc, err := h.launcher.Start(pre, &p.Script, files)
	if err != nil {
		return nil, err
	}
	c := &child{
		host: h, keep: &keeping{}, proc: proc,
		level: p.Level, mechanism: p.Mechanism, weaker: p.Weaker, script: wordsOf(&p.Script),
		own: p.Script.Namespaces&launch.NewPID != 0,
	}
	if masters != nil {
		if c.terminal, err = masters.take(); err != nil {
			_ = c.Kill()
			return nil, errors.Join(err, proc.WaitAll(), proc.Close())
		}
	}
	h.alive.Add(1)
	return c, nil
}

// Terminal is the master end of the command's terminal.
func (c *child) Terminal() *os.File { return c.terminal }

// Processes are those below the reaper.
func (c *child) Processes() []int {
	var out []int
	c.proc.WhileThere(func() { out = process.PIDsBelow(c.PID()) })
	return out
}

func (c *child) PID() int { return c.proc.PID() }

func (c *child) Wait() (code, signal int, err error) {
	st, err := c.proc.Wait()
	c.commandEnded.Store(true)
	switch {
	case errors.Is(err, launch.ErrLost):
		return -1, 0, nil // the tree was killed before the command ended
	case err != nil:
		return -1, 0, err
	case st.Signaled():
		return 128 + int(st.Signal()), int(st.Signal()), nil
	}
	return st.ExitStatus(), 0, nil
}

func (c *child) WaitAll() error {
	c.mu.Lock()
	outgrown := c.outgrown
	c.mu.Unlock()
	if outgrown != nil {
		return outgrown // it would not come to an end
	}
	return c.proc.WaitAll()
}

func (c *child) Signal(sig syscall.Signal, tree bool) error {
	to := launch.ToGroup
	if tree {
		to = launch.ToTree
	}
	err := c.proc.Signal(sig, to)
	if tree && !c.own {
		// No process namespace: those that left the group are found by descent.
		c.proc.WhileThere(func() { process.SignalBelow(c.PID(), sig) })
	}
	return err
}

// Kill ends the tree. Without a process namespace that takes rounds, because a
// process may start others while we look.
func (c *child) Kill() error {
	if c.proc.Empty(0) {
		return nil
	}
	err := c.proc.KillTree(soonDead)
	if c.own {
		return err
	}
	return errors.Join(c.hunt(), err)
}

// hunt kills the tree in rounds; WaitAll tells when that fails.
func (c *child) hunt() error {
	err := process.KillBelow(c.proc, c.commandEnded.Load)
	if err != nil {
		c.mu.Lock()
		c.outgrown = err
		c.mu.Unlock()
	}
	return err
}

// attend looks after what is kept around the command.
func (c *child) attend(k *keeping) {
	c.keep = k
	k.names.Started()
	k.names.OnBroken(func(cause error) {
		c.unlessClosing(func() {
			c.mu.Lock()
			c.broken = cause
			c.mu.Unlock()
			_ = c.Kill() // WaitAll tells what became of it
		})
	})
	c.seen.onFailed(func() {
		c.unlessClosing(func() { _ = c.Kill() }) // Close says why
	})
}

// unlessClosing calls f, which Close waits for, or does nothing when that has begun.
func (c *child) unlessClosing(f func()) {
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		return
	}
	c.watch.Add(1)
	c.mu.Unlock()
	defer c.watch.Done()
	f()
}

// Close ends what was kept. Names that came into being although they must not
// are moved away first.
func (c *child) Close() error {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.watch.Wait()
	found, err := c.keep.names.Finish()
	c.keep.release()
	report := c.seen.close()
	if c.seen == nil {
		report.Denials = c.keep.names.Denials() // what was noticed; who is observed is known better
	}
	var after Aftermath
	if c.bounds != nil {
		after.Limits, after.Limit, after.Usage = c.bounds.Finish(c.proc.Usage())
		c.proc.OnCollected(c.bounds.Release)
	}
	c.mu.Lock()
	after.Quarantined, after.Denials, after.Omitted, after.Broken = found, report.Denials, report.Omitted, c.broken
	c.after = after
	if c.after.Broken == nil && report.Err != nil {
		c.after.Broken = fmt.Errorf("the observer of system calls failed: %w", report.Err)
	}
	if c.after.Broken == nil {
		c.after.Broken = err
	}
	c.mu.Unlock()
	defer c.host.alive.Add(-1)
	return c.proc.Close()
}

func (c *child) Aftermath() Aftermath {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.after
}

func (c *child) Sandbox() executor.Sandbox {
	return executor.Sandbox{
		Level: c.level, Mechanism: c.mechanism, Weaker: c.weaker, Script: c.script.String(),
		Warnings: c.keep.names.Warnings(), Observed: c.seen != nil,
	}
}

// words are a launch in words. Commands that run in one folder differ in the last step,
// which is what they execute, and have the rest in common: a table of the process holds
// it once.
type words struct {
	common unique.Handle[string]
	last   string
}

func wordsOf(s *launch.Script) words {
	text := s.String()
	at := strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n') + 1
	return words{unique.Make(text[:at]), strings.Clone(text[at:])}
}

func (w words) String() string { return w.common.Value() + w.last }

// Survivors walks the tree below the reaper by the kernel's lists of children.
func (c *child) Survivors() []executor.Survivor {
	// The reaper is asked first: it knows, and usually there are none.
	const soon = 2 * time.Millisecond
	if c.proc.Empty(soon) {
		return nil
	}
	var out []executor.Survivor
	c.proc.WhileThere(func() { out = process.SurvivorsBelow(c.PID()) })
	return out
}

// EndedBy is the process namespace, or the reaper that inherits every orphan.
func (c *child) EndedBy() string {
	if c.own || c.level == plan.LevelBwrap {
		return executor.ByNamespace
	}
	return executor.BySubreaper
}

// explain turns a failed step into what it means for a person.
func explain(r *executor.Spec, err error) error {
	var step *launch.StepError
	if !errors.As(err, &step) {
		return err
	}
	switch {
	case step.Index < 0:
		return namespaceError(step.Errno)
	case step.Step.Op == launch.OpExec:
		return hostfacts.StartError(r.Args[0], step.Errno)
	case step.Step.Op == launch.OpChdir && step.Errno == syscall.ENOTDIR:
		return &executor.DirError{Dir: r.Dir, Err: executor.ErrNotDir}
	case step.Step.Op == launch.OpChdir:
		return &executor.DirError{Dir: r.Dir, Err: step.Errno}
	case step.Step.Op == launch.OpMapUser:
		return &sandbox.UnsupportedError{
			Need: "a user namespace of its own", Have: fmt.Sprintf("the kernel let one be made but not be used (%v)", step.Errno),
			Hint: hostfacts.NamespaceHint(),
		}
	case step.Errno == syscall.ENOSYS:
		return &sandbox.UnsupportedError{
			Need: "the system call " + step.Call, Have: "this kernel, or a filter around this process, does not have it",
			Hint: "use Linux 5.19 or newer, outside of a container that filters it",
		}
	case step.Step.Op == launch.OpProc && errors.Is(step.Errno, fs.ErrPermission):
		return &sandbox.UnsupportedError{
			Need: "a fresh /proc", Have: hostfacts.ProcHave(),
			Hint: "start the container with an uncovered /proc (Docker: --security-opt systempaths=unconfined; Podman: --security-opt unmask=ALL)",
		}
	case step.Errno == syscall.EACCES && step.Step.ID != (launch.ID{}) && (step.Step.Op == launch.OpClone || step.Step.Op == launch.OpAttach):
		return &executor.RootError{
			Path: step.Step.Path, Why: "cannot be reached inside a user namespace: a folder above it belongs to another user and is closed",
			Fix: "run as that user, or open the folders above it for others (chmod o+x)",
		}
	case step.Call == "compare", step.Errno == syscall.ELOOP:
		return &executor.RootError{
			Path: step.Step.Path, Why: "was replaced while the sandbox was built, so the command did not run",
			Fix: "try again when nothing else changes it",
		}
	}
	return &sandbox.UnsupportedError{Need: "every wall of the sandbox", Have: err.Error(), Hint: hostfacts.SeeDoctor}
}

// namespaceError says why the kernel made no namespaces.
func namespaceError(errno syscall.Errno) error {
	return &sandbox.UnsupportedError{
		Need: "a user namespace of its own", Have: fmt.Sprintf("the kernel refused to make one (%v)", errno),
		Hint: hostfacts.NamespaceHint(),
	}
}

// soonDead is how long killed processes may take to be gone: with the reaper alive
// it can be told how the command ended and what it used. A process in the middle of
// a slow write can take longer.
const soonDead = 100 * time.Millisecond
