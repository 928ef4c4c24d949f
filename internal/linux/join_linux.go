// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"os"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/caches"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// enter returns the namespaces that a command enters, with those mounts, or nil, last.
func (s *Shared) enter(r *root) []*os.File {
	if r == nil {
		return s.parts.Namespaces
	}
	return append(slices.Clip(s.parts.Namespaces), r.namespace)
}

// gone reports whether the holder has ended.
func (s *Shared) gone() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// make plans the launch. In a shared sandbox the command begins with mounts that fit, if there are some.
func (a *attempt) make(r *plan.Request) (*plan.Plan, error) {
	if a.level == plan.LevelNone {
		return plan.Make(hostfacts.Unconfined(), r)
	}
	facts := a.host.Facts()
	if a.shared == nil {
		return plan.Make(facts, r)
	}
	r.Shared = &plan.Shared{Holding: len(a.shared.parts.Trees) > 0 && !a.host.takesNoTrees(),
		PIDs: a.shared.parts.PIDs}
	files, err := a.host.onDisk()
	if err != nil {
		return nil, err
	}
	table, err := files.mounts.Table()
	var roots []*root
	if err == nil { // else nothing says whether the host's mounts are the same
		roots = a.shared.known(table)
	}
	for _, one := range roots {
		r.Shared.Trees = append(r.Shared.Trees, one.tree)
	}
	p, err := plan.Make(facts, r)
	switch {
	case err != nil:
	case p.Known > 0:
		a.root = roots[p.Known-1]
		roots = slices.Delete(roots, p.Known-1, p.Known)
	case p.Tree != nil && table != nil:
		a.root = &root{tree: p.Tree, table: table, uses: 1}
	}
	a.shared.release(roots...)
	if err == nil && a.layerSource != nil && a.caches.Borrowed(a.layerSource.layers) &&
		a.root != a.layerSource {
		return nil, errOtherLayers // they are mounted elsewhere
	}
	return p, err
}

// errOtherLayers says that layers of caches were planned for that are mounted in a tree which does not fit.
var errOtherLayers = errors.New("other layers of caches are needed")

// borrow returns layers of caches that are mounted in a tree of the shared sandbox, for a command that
// may begin with it and has such layers by its request; nil for layers of its own.
func (a *attempt) borrow(r *caches.Request) *caches.Layers {
	if a.shared == nil || a.dry {
		return nil
	}
	a.layerSource = a.shared.layerOwner(a.layerIndex, r.Fits)
	if a.layerSource == nil {
		return nil
	}
	return a.layerSource.layers
}

// layerOwner returns the n-th of the trees in which layers of caches are mounted that fit; nil if there
// are not so many.
func (s *Shared) layerOwner(n int, fit func(*caches.Layers) bool) *root {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.roots {
		if r.layers == nil || !fit(r.layers) {
			continue
		}
		if n == 0 {
			r.uses++
			return r
		}
		n--
	}
	return nil
}

// ownNetwork reports whether the command's network is not the host's.
func (a *attempt) ownNetwork() bool {
	return a.level == plan.LevelNative && a.spec.Policy.Network() != sandbox.NetworkHost
}

// privateTmp is the directory for a private /tmp.
func (a *attempt) privateTmp(own *files) string {
	if a.shared != nil {
		return a.shared.parts.Tmp
	}
	return own.tmp.Path
}

// enter adds to the files of a launch what a shared sandbox needs.
func (a *attempt) enter(files *launch.Files) {
	if a.shared == nil {
		return
	}
	files.Trees = a.shared.parts.Trees
	var known *root
	if a.root != nil && a.root.namespace != nil {
		known = a.root
	}
	files.Enter = a.shared.enter(known)
}

// keep takes the mounts that a launch has sent, and keeps them for other commands.
func (a *attempt) keep(sent *launch.Handover) (err error) {
	switch {
	case a.root == nil:
		return nil
	case sent != nil:
		if a.root.namespace, err = sent.Take(); err != nil {
			a.root = nil
			return err
		}
		a.root.layers = a.caches.Share()
	}
	a.shared.keep(a.root)
	return nil
}

// leave gives back what a start held of a shared sandbox.
func (a *attempt) leave() {
	if a.shared == nil {
		return
	}
	a.shared.release(a.likely, a.layerSource)
	if a.root != nil && a.root.namespace != nil {
		a.shared.release(a.root)
	}
	a.fits, a.likely, a.layerSource, a.root = a.root, nil, nil, nil
}

// takesNoTrees reports whether this kernel copies no tree of another namespace.
func (h *Host) takesNoTrees() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.noTrees
}

// learnShared keeps what a failed start in a shared sandbox tells, and reports whether another plan
// may work. The error is for the caller; nil says nothing.
func (a *attempt) learnShared(err error) (again bool, known error) {
	if a.shared == nil {
		return false, nil
	}
	var enter *launch.EnterError
	if errors.As(err, &enter) {
		const patience = time.Second // a process namespace takes no one when its first process begins to end
		late := time.NewTimer(patience)
		defer late.Stop()
		select {
		case <-a.shared.ended:
			return false, executor.ErrSharedEnded
		case <-late.C:
			return false, nil
		}
	}
	var orphan *launch.OrphanError
	if errors.As(err, &orphan) {
		a.shared.kill()
		return false, executor.ErrSharedEnded
	}
	var step *launch.StepError
	if !errors.As(err, &step) {
		return false, nil
	}
	switch copied := a.stage != nil && step.Step.Op == launch.OpClone && step.Step.Path == ""; {
	case step.Step.Op == launch.OpExpectMount:
		a.shared.forget(a.fits)
		return a.fits != nil, nil
	case step.Step.Op == launch.OpTake, copied:
		a.host.mu.Lock()
		defer a.host.mu.Unlock()
		again = !a.host.noTrees
		a.host.noTrees = true
		return again, nil
	}
	return false, nil
}

// leavePeers has the other commands of a shared sandbox forget the unobserved one.
func (h *held) leavePeers() {
	if h.apart != nil {
		h.apart()
	}
}
