// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// accepted returns the levels that satisfy a command, best first.
func (h *Host) accepted(spec *executor.Spec) ([]string, error) {
	all := []string{plan.LevelNative, plan.LevelBwrap, plan.LevelLandlock}
	switch {
	case spec.Policy.Mode() != sandbox.Managed:
		return []string{plan.LevelNone}, nil
	case spec.Level != plan.LevelLandlock && sandboxAround() != "":
		// Even where user namespaces are opened, its walls around /dev and /proc stay.
		return nil, &sandbox.UnsupportedError{
			Need: "a sandbox inside a sandbox", Have: "this process already runs in one of sallyport (" +
				sandboxAround() + "), which contains it",
			Hint: "use -s full-access here",
		}
	case h.Only != "":
		return []string{h.Only}, nil
	case spec.Level == "":
		return all[:2], nil
	}
	i := slices.Index(all, spec.Level)
	if i < 0 {
		return nil, &executor.RootError{Path: spec.Level, Why: "is not a sandbox level",
			Fix: "use native, bwrap or landlock"}
	}
	return all[:i+1], nil
}

// lacks returns why a level is not available on this host, or nil when nothing is known
// against it.
func (h *Host) lacks(level string) *sandbox.UnsupportedError {
	h.mu.Lock()
	why := h.lacking[level]
	h.mu.Unlock()
	if why != nil {
		return why
	}
	switch level {
	case plan.LevelNative:
		if m := h.Facts().Missing; len(m) > 0 {
			return &sandbox.UnsupportedError{Need: m[0].Need, Have: m[0].Have, Hint: m[0].Hint}
		}
	case plan.LevelBwrap:
		_, why = h.findBwrap()
	}
	return why
}

// A refusal says why a level was not used.
type refusal struct {
	level string
	why   *sandbox.UnsupportedError
}

func (r *refusal) Error() string { return r.level + ": " + r.why.Error() }

// refused returns the error when no level is left. It names what each of them lacks.
func (h *Host) refused(tried []*refusal, spec *executor.Spec, stdio [3]*os.File) error {
	if len(tried) == 1 {
		return tried[0].why
	}
	var have, hints []string
	weaker := ""
	for _, t := range tried {
		have = append(have, fmt.Sprintf("%s: needs %s, but %s", t.level, t.why.Need, t.why.Have))
		if t.why.Hint != "" && !slices.Contains(hints, t.why.Hint) {
			hints = append(hints, t.why.Hint)
		}
	}
	if tried[len(tried)-1].level != plan.LevelLandlock {
		if _, err := h.plans(plan.LevelLandlock, spec, stdio); err == nil {
			weaker = plan.LevelLandlock
		}
	}
	return &sandbox.UnsupportedError{
		Level: weaker,
		Need:  "one of the accepted sandbox levels", Have: "none is available here: " +
			strings.Join(have, "; "),
		Hint: strings.Join(hints, "; "),
	}
}

// sandboxAround returns the mode of the sandbox in which this process runs, as its variables
// say; empty when there is none, or no filter that one would have.
func sandboxAround() string {
	mode := os.Getenv("SALLYPORT_SANDBOX")
	if mode == "" || mode == sandbox.FullAccess().Name() {
		return ""
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil || !strings.Contains(string(status), "\nSeccomp:\t2\n") {
		return ""
	}
	return text.Word(mode)
}

// plans plans a command at a level. It claims nothing, and holds nothing after it.
func (h *Host) plans(level string, spec *executor.Spec, stdio [3]*os.File) (*attempt, error) {
	a := h.attempt(level, spec, stdio)
	a.dry = true
	defer a.release()
	_, err := a.plan()
	return a, err
}

// Opens plans a command without its network, and returns what says why a path is closed to an access in
// it; nil is not. What it returns beside is [protect.Protection.Writing]. The error is that of Start. It
// claims and starts nothing.
func (h *Host) Opens(spec *executor.Spec) (func(sandbox.Access) error, executor.Writing, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, err
	}
	defer null.Close()
	alone := executor.Spec{
		Run: spec.Run, Args: spec.Args, Dir: spec.Dir, Env: spec.Env,
		Policy: spec.Policy.WithNetwork(sandbox.NetworkNone), Allow: spec.Allow,
		Level: spec.Level, Tmp: spec.Tmp, NoCaches: spec.NoCaches, NoObserver: spec.NoObserver,
	}
	levels, err := h.accepted(&alone)
	for _, level := range levels {
		a, why := h.plans(level, &alone, [3]*os.File{null, null, null})
		var no *refusal
		if err = why; !errors.As(err, &no) {
			return a.closes, a.names.Writing, err
		}
	}
	return nil, nil, err
}

// closes returns why a path is closed to an access in what was planned; nil is not.
func (a *attempt) closes(access sandbox.Access) error {
	layered := func(o plan.Overlay) bool { return hostfacts.Below(access.Path, o.Path) }
	if a.level == plan.LevelNone || slices.ContainsFunc(a.overlays, layered) {
		return nil
	}
	return a.names.Closes(access)
}

// errPlanAgain says that a plan could not be performed for a reason that the next plan
// takes into account.
var errPlanAgain = errors.New("this machine refused a part of the plan")

// maxTries is how often a start is planned again because something had vanished: often enough
// for a program beside it that clones and removes repositories all the while.
const maxTries = 32

// learn keeps what a failed attempt tells about the host. It returns errPlanAgain where
// another plan for the same level may work, a *refusal where the next level may, and else
// the error for the caller.
func (a *attempt) learn(err error, try int) error {
	h := a.host
	if known := a.stage.Explain(err); known != nil {
		return known
	}
	if again, known := a.learnShared(err); again {
		return errPlanAgain
	} else if known != nil {
		return known
	}
	if h.caches.Learn(err) || h.learnObserver(err) || a.learnRedirect(err, try) || vanished(err) &&
		try < maxTries {
		return errPlanAgain
	}
	known := a.explainTmp(err)
	var no *sandbox.UnsupportedError
	if a.level != plan.LevelNative || !hostRefuses(err) || !errors.As(known, &no) {
		return known
	}
	if lasting(err) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.lacking == nil {
			h.lacking = make(map[string]*sandbox.UnsupportedError)
		}
		h.lacking[a.level] = no
	}
	return &refusal{a.level, no}
}

// vanished reports whether something that was planned for was gone or another at the launch,
// such as a repository that was cloned anew.
func vanished(err error) bool {
	var step *launch.StepError
	if !errors.As(err, &step) || step.Step.ID == (launch.ID{}) {
		return false
	}
	// A directory that was removed while it is open cannot be copied as a mount.
	return step.Errno == syscall.ENOENT || step.Call == "compare" || step.Call == "open_tree" &&
		step.Errno == syscall.EINVAL
}

// hostRefuses reports whether a launch failed because this host does not allow namespaces to
// be made or used, as opposed to something that is wrong with the paths of the policy.
func hostRefuses(err error) bool {
	var step *launch.StepError
	if !errors.As(err, &step) {
		return false
	}
	if step.Index < 0 || step.Errno == syscall.ENOSYS {
		return true
	}
	switch step.Step.Op {
	case launch.OpMapUser, launch.OpTmpfs, launch.OpProc, launch.OpDevpts, launch.OpLoopback,
		launch.OpSetting:
		return true
	case launch.OpClone:
		// The kernel checks the right before it looks at the path: EACCES is about what is
		// there, such as another user's directory for the real root.
		return step.Errno == syscall.EPERM
	case launch.OpAttach, launch.OpPin:
		// Where an ID was planned, the path is the policy's. Our own directories were
		// attached before, so the host allows mounts.
		return step.Step.ID == (launch.ID{}) && (step.Errno == syscall.EPERM || step.Errno == syscall.EACCES)
	case launch.OpSetMount, launch.OpSetTree, launch.OpDropBounding, launch.OpSecureBits:
		// AppArmor allows namespaces and gives no rights in them.
		return step.Errno == syscall.EPERM || step.Errno == syscall.EACCES
	}
	return false
}

// lasting reports whether the refusal will be the same next time. A limit that was reached,
// or a lack of memory, may not be.
func lasting(err error) bool {
	var step *launch.StepError
	if !errors.As(err, &step) {
		return false
	}
	switch step.Errno {
	case syscall.EPERM, syscall.EACCES, syscall.ENOSYS, syscall.EINVAL:
		return true
	}
	return false
}
