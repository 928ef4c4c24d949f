// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/internal/limits"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// rungs are the levels that satisfy the least one accepted, best first.
func rungs(least string) ([]string, error) {
	all := []string{plan.LevelNative, plan.LevelBwrap, plan.LevelLandlock}
	switch least {
	case "", plan.LevelBwrap:
		return all[:2], nil
	case plan.LevelNative:
		return all[:1], nil
	case plan.LevelLandlock:
		return all, nil
	}
	return nil, &executor.RootError{Path: least, Why: "is not a sandbox level", Fix: "use native, bwrap or landlock"}
}

// A refusal says why a level was not taken.
type refusal struct {
	level string
	why   *sandbox.UnsupportedError
}

// choose plans at the best level that can be had. A level is passed over only
// where this host lacks it; what the best one of this host cannot do for the
// policy is refused.
func (h *Host) choose(r *executor.Spec, pr *plan.Request, b *limits.Bounds, lacks map[string]*sandbox.UnsupportedError) (*plan.Plan, error) {
	var err error
	if r.Policy.Mode() != sandbox.Managed {
		if pr.Entry, err = b.At(plan.LevelNone, nil); err != nil {
			return nil, err
		}
		return plan.Make(h.Facts(), pr)
	}
	levels, err := rungs(r.Level)
	if err != nil {
		return nil, err
	}
	if h.Only != "" {
		levels = []string{h.Only}
	}
	var refusals []refusal
	for _, level := range levels {
		if why := h.lacks(level, lacks); why != nil {
			refusals = append(refusals, refusal{level, why})
			continue
		}
		if pr.Entry, err = b.At(level, writable(pr)); err != nil {
			return nil, err
		}
		p, err := h.planAt(level, pr, h.observes(r, level))
		var no *sandbox.UnsupportedError
		if err == nil || level == plan.LevelNative || !errors.As(err, &no) {
			return p, err
		}
		refusals = append(refusals, refusal{level, no})
	}
	return nil, h.refused(refusals, pr)
}

// planAt plans at one level, with an observer or without.
func (h *Host) planAt(level string, pr *plan.Request, see observing) (*plan.Plan, error) {
	at := *pr
	at.Level, at.Observe = level, see != unobserved
	if !pr.Spec.NoObserver {
		h.mu.Lock()
		at.Unobserved = h.blind
		h.mu.Unlock()
	}
	var err error
	if at.Filter, err = h.filter(level, pr.Spec.Allow, pr.Spec.Policy.Network() == sandbox.NetworkHost, see); err != nil {
		return nil, err
	}
	if level == plan.LevelBwrap {
		if at.Bwrap, err = h.bwrapFor(pr); err != nil {
			return nil, err
		}
		if !h.systemBwrap().setuid {
			allow := append(slices.Clone(pr.Spec.Allow), "userns")
			if at.Guard, err = h.filter(level, allow, pr.Spec.Policy.Network() == sandbox.NetworkHost, unobserved); err != nil {
				return nil, err
			}
		}
	}
	return plan.Make(h.Facts(), &at)
}

// lacks says why a level cannot be had on this host, or nil when nothing is
// known against it.
func (h *Host) lacks(level string, now map[string]*sandbox.UnsupportedError) *sandbox.UnsupportedError {
	if why := now[level]; why != nil {
		return why
	}
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
		return h.lacksBwrap()
	}
	return nil
}

// refused is the error when no level is left. It names what each of them lacks.
func (h *Host) refused(tried []refusal, pr *plan.Request) error {
	last := tried[len(tried)-1]
	if len(tried) == 1 {
		return last.why
	}
	var have, hints []string
	for _, t := range tried {
		have = append(have, fmt.Sprintf("%s: needs %s, but %s", t.level, t.why.Need, t.why.Have))
		if t.why.Hint != "" && !slices.Contains(hints, t.why.Hint) {
			hints = append(hints, t.why.Hint)
		}
	}
	if last.level != plan.LevelLandlock {
		if _, err := h.planAt(plan.LevelLandlock, pr, unobserved); err == nil {
			hints = append(hints, "or accept fewer walls with --level landlock (sallyport doctor lists them)")
		}
	}
	return &sandbox.UnsupportedError{
		Need: "one of the levels that are accepted", Have: "none can be had here: " + strings.Join(have, "; "),
		Hint: strings.Join(hints, "; "),
	}
}

// first is the best level that nothing is known against, of those that are
// accepted; the least one when something is known against each.
func (h *Host) first(r *executor.Spec, lacks map[string]*sandbox.UnsupportedError) (string, error) {
	levels, err := rungs(r.Level)
	if err != nil {
		return "", err
	}
	if h.Only != "" {
		return h.Only, nil
	}
	for _, level := range levels {
		if h.lacks(level, lacks) == nil {
			return level, nil
		}
	}
	return levels[len(levels)-1], nil
}

// descend starts a request at the best level that works, with a function that may
// change the plan, or nil. What a launch at one level tells about the host is
// remembered.
func (h *Host) descend(ctx context.Context, r *executor.Spec, change func(*plan.Plan), stdin, stdout, stderr *os.File) (Child, error) {
	lacks := make(map[string]*sandbox.UnsupportedError)
	const tries = 8
	for try := 1; ; try++ {
		c, err := h.try(ctx, r, lacks, change, stdin, stdout, stderr)
		var gone *goneError
		switch {
		case errors.Is(err, errPlanAgain):
		case !errors.As(err, &gone):
			return c, err
		case change != nil || try == tries:
			return nil, gone.known
		}
	}
}

// A goneError is a launch that failed because something that was planned for had
// vanished by then: somebody else's placeholder, or a file that a pattern matched.
// What is there now can be planned for.
type goneError struct{ known error }

func (e *goneError) Error() string { return e.known.Error() }

// vanished reports whether something that was planned for was gone at the launch.
func vanished(err error) bool {
	var step *launch.StepError
	return errors.As(err, &step) && step.Errno == syscall.ENOENT && step.Step.ID != (launch.ID{})
}

// errPlanAgain says that a plan could not be performed for a reason that the next
// one takes into account. Nothing has run.
var errPlanAgain = errors.New("confine: this machine refused a part of the plan; the next plan does without it")

// try plans and starts once.
func (h *Host) try(ctx context.Context, r *executor.Spec, lacks map[string]*sandbox.UnsupportedError, change func(*plan.Plan), stdin, stdout, stderr *os.File) (Child, error) {
	keep, bounds := &keeping{}, limits.New(&h.groups, r.Resources)
	var pre *launch.Preforked
	if change == nil { // else nothing is known about the first task
		pre = h.prefork(r, lacks)
		defer pre.Drop()
	}
	p, err := h.plan(r, [3]*os.File{stdin, stdout, stderr}, keep, bounds, lacks)
	if err == nil {
		if change != nil {
			change(p)
		}
		err = makePoints(p.Points)
	}
	if err == nil {
		err = waitReady(ctx, pre, r)
	}
	files := launch.Files{Stdin: stdin, Stdout: stdout, Stderr: stderr, Hold: keep.caches.Hold()}
	bounds.Files(&files)
	if err != nil {
		bounds.Release()
		keep.release()
		return nil, err
	}
	watch, err := h.observe(r, p, keep)
	if watch != nil {
		files.Observer = watch.inbox.Theirs()
	}
	if err != nil {
		bounds.Release()
		keep.release()
		return nil, err
	}
	c, own, err := h.execute(p, pre, files)
	watch.started()
	if err != nil {
		watch.close()
		bounds.Release()
		keep.release()
		return nil, h.learn(r, p, lacks, bounds.Explain(err))
	}
	own.seen = watch
	own.attend(keep)
	own.bounds = bounds
	bounds.Watch(c.Processes, func() {
		_ = c.Signal(syscall.SIGKILL, true)
		if !own.own { // else the kernel does it in one go
			_ = own.hunt() // WaitAll tells when it fails
		}
	})
	return c, nil
}

// learn keeps what a failed launch tells about the host, and returns errPlanAgain
// where that makes another plan possible.
func (h *Host) learn(r *executor.Spec, p *plan.Plan, lacks map[string]*sandbox.UnsupportedError, err error) error {
	if h.caches.Learn(err) || h.withoutObserver(err) {
		return errPlanAgain
	}
	known := explain(r, err)
	if vanished(err) {
		return &goneError{known}
	}
	var no *sandbox.UnsupportedError
	if p.Level != plan.LevelNative || !hostRefuses(err) || !errors.As(known, &no) {
		return known
	}
	lacks[p.Level] = no
	if lasting(err) {
		h.mu.Lock()
		if h.lacking == nil {
			h.lacking = make(map[string]*sandbox.UnsupportedError)
		}
		h.lacking[p.Level] = no
		h.mu.Unlock()
	}
	return errPlanAgain
}

// hostRefuses reports whether a launch failed because this host does not let
// namespaces be made or used, as opposed to something that is wrong with what
// the policy names.
func hostRefuses(err error) bool {
	var step *launch.StepError
	if !errors.As(err, &step) {
		return false
	}
	if step.Index < 0 || step.Errno == syscall.ENOSYS {
		return true
	}
	switch step.Step.Op {
	case launch.OpMapUser, launch.OpTmpfs, launch.OpProc, launch.OpDevpts, launch.OpLoopback:
		return true
	case launch.OpClone:
		// The kernel asks for the right before it looks at the path: EACCES is about
		// what stands there, such as another user's folder for the real root.
		return step.Errno == syscall.EPERM
	case launch.OpAttach, launch.OpPin:
		// Where an identity was planned, the path is the policy's. Our own folders
		// were attached before, so the host lets mounts be made.
		return step.Step.ID == (launch.ID{}) && (step.Errno == syscall.EPERM || step.Errno == syscall.EACCES)
	case launch.OpSetMount, launch.OpSetTree, launch.OpDropBounding, launch.OpSecureBits:
		// AppArmor lets namespaces be made and gives no rights in them.
		return step.Errno == syscall.EPERM || step.Errno == syscall.EACCES
	}
	return false
}

// lasting reports whether the refusal will be the same next time. A limit that
// was reached, or a want of memory, may not be.
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

// narrowings are the entries of a policy that take something away, as somebody
// wrote them. Paths get the form that rules have, as far as they exist.
func narrowings(res *sandbox.Resolved) []plan.Narrowing {
	var out []plan.Narrowing
	for _, p := range res.Paths {
		if !p.Auto && p.Level != sandbox.LevelWrite {
			out = append(out, plan.Narrowing{Path: hostfacts.Deepest(p.Path), Level: p.Level})
		}
	}
	for _, g := range res.Globs {
		out = append(out, plan.Narrowing{Path: g, Level: sandbox.LevelDeny})
	}
	return out
}

// reopens reports whether standard descriptors are opened anew: only the native
// level has mounts of its own to do that through.
func (h *Host) reopens(lacks map[string]*sandbox.UnsupportedError) bool {
	return (h.Only == "" || h.Only == plan.LevelNative) && h.lacks(plan.LevelNative, lacks) == nil
}
