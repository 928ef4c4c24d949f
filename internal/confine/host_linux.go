// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/caches"
	"github.com/sallyport-dev/sallyport/internal/guard"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/internal/limits"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/internal/protect"
	"github.com/sallyport-dev/sallyport/internal/seccomp"
	"github.com/sallyport-dev/sallyport/internal/state"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Host starts processes on this machine. The zero Host is ready to use; its
// methods may be called from several goroutines at once. Close ends it.
type Host struct {
	// Only, when it is not empty, is the one level that is used, whatever else
	// could be had: for finding out about it. It is set before the first use.
	Only string

	launcher launch.Launcher

	once  sync.Once
	facts *plan.Host

	bwrapOnce sync.Once
	bwrap     *systemBwrap

	making  sync.Mutex // held while the private /tmp is made; taken before mu
	mu      sync.Mutex
	closed  bool
	state   string
	tmp     *state.Tmp
	filters map[string]launch.Filter
	keeper  *guard.Keeper // nil as long as nothing was claimed
	alive   atomic.Int32  // children that were not closed yet

	scans *protect.Scans // made with keeper

	caches caches.Store

	blind   string                               // why no observer can be had; empty when nothing is known
	lacking map[string]*sandbox.UnsupportedError // levels that cannot be had, by what was tried

	groups limits.Groups
}

// Facts is what is known about the machine. It is found out once.
func (h *Host) Facts() *plan.Host {
	h.once.Do(func() { h.facts = hostfacts.Gather() })
	return h.facts
}

// Plan looks at the files that a request names and plans the launch, at the best
// level that is known to be had here. Only a launch tells whether it is. Plan
// changes nothing in a workspace, so names that do not exist yet are not kept from
// coming into being. In the state folder it makes the private /tmp and the layers
// of caches, and notes which folders were searched for repositories; a request
// has its layers until it is planned again, or started and over.
func (h *Host) Plan(r *executor.Spec, stdio [3]*os.File) (*plan.Plan, error) {
	return h.plan(r, stdio, nil, nil, nil)
}

// plan plans the launch, with names claimed in keep unless that is nil, and without
// the levels that the caller has found out about.
func (h *Host) plan(r *executor.Spec, stdio [3]*os.File, keep *keeping, bounds *limits.Bounds, lacks map[string]*sandbox.UnsupportedError) (*plan.Plan, error) {
	if len(r.Args) == 0 {
		return nil, fmt.Errorf("command args are empty")
	}
	for _, s := range slices.Concat(r.Args, r.Env, []string{r.Dir, r.Arg0}) {
		if strings.IndexByte(s, 0) >= 0 {
			return nil, fmt.Errorf("%q contains a NUL byte, which no argument, variable or path can hold", s)
		}
	}
	if st, err := os.Stat(r.Dir); err != nil {
		return nil, &executor.DirError{Dir: r.Dir, Err: err}
	} else if !st.IsDir() {
		return nil, &executor.DirError{Dir: r.Dir, Err: executor.ErrNotDir}
	}
	program, err := hostfacts.Lookup(r.Args[0], r.Dir, r.Env)
	if err != nil {
		return nil, err
	}
	pr := &plan.Request{Spec: r, Program: program, Env: r.Env, Limits: limits.Defaults()}
	var layers *caches.Layers
	if r.Policy.Mode() == sandbox.Managed {
		reopen := h.reopens(lacks)
		for i, f := range stdio {
			if r.TTY != nil && (i < 2 || r.Stderr == nil) {
				continue // the terminal takes its place
			}
			if pr.Stdio[i], err = hostfacts.DescribeStdio(i, f, reopen); err != nil {
				return nil, err
			}
		}
		level, err := h.first(r, lacks)
		if err != nil {
			return nil, err
		}
		if err := h.confined(r, pr, keep, level != plan.LevelLandlock); err != nil {
			return nil, err
		}
		if layers, err = h.layers(r, pr, level == plan.LevelNative); err != nil {
			return nil, err
		}
	}
	p, err := h.choose(r, pr, bounds, lacks)
	if keep == nil {
		layers.Release() // nothing is started
	} else {
		keep.caches = layers
		for _, o := range pr.Overlays {
			keep.layers = append(keep.layers, o.Path)
		}
	}
	return p, hidden(r, err)
}

// layers gives the run private layers over toolchain caches.
func (h *Host) layers(r *executor.Spec, pr *plan.Request, overlays bool) (*caches.Layers, error) {
	state, _, err := h.private()
	if err != nil {
		return nil, err
	}
	layers, err := h.caches.Prepare(caches.Request{
		Plan: pr, Dir: hostfacts.RealPath(r.Dir), State: state,
		Grants: r.Policy.Named(), Disabled: r.NoCaches, Overlays: overlays,
	})
	if layers != nil {
		pr.Rules, pr.Overlays, pr.Env = layers.Rules, layers.Overlays, layers.Env
	}
	return layers, err
}

// confined adds what a sandbox needs to know. Whether something can be mounted
// decides how missing names are kept from coming into being.
func (h *Host) confined(r *executor.Spec, pr *plan.Request, keep *keeping, mounts bool) error {
	res, err := r.Policy.Resolve()
	if err != nil {
		return err
	}
	pr.Root, pr.Narrow = res.Root, narrowings(&res)
	// What it returns depends on the level; here it tells what is wrong with names.
	if _, err := h.filter(plan.LevelNative, r.Allow, res.Network == sandbox.NetworkHost, unobserved); err != nil {
		return err
	}
	keeper, scans, err := h.guard()
	if err != nil {
		return err
	}
	folder, dir, err := h.private()
	if err != nil {
		return err
	}
	q := &protect.Request{
		Policy: &res, Dir: r.Dir, Mounts: mounts,
		Tmp: r.Tmp, PrivateTmp: dir, State: append(state.Candidates(), folder), Scans: scans,
	}
	if keep != nil {
		q.Keeper = keeper
	}
	names, err := protect.New(q)
	if err != nil {
		return err
	}
	if keep != nil {
		keep.names = names
	}
	pr.Rules, pr.Tmp = names.Rules(), names.Tmp()
	listed(&res, r, pr)
	return nil
}

// writable returns the directories that a command may write to, each where the host has
// it.
func writable(pr *plan.Request) []string {
	var out []string
	for _, r := range pr.Rules {
		if pr.Tmp != nil && r.Path == pr.Tmp.At {
			continue // the private directory is mounted over it
		}
		if r.Level == sandbox.LevelWrite && r.Kind != plan.KindMissing && !r.Pin {
			out = append(out, r.Path)
		}
	}
	if pr.Tmp != nil {
		out = append(out, pr.Tmp.Source.Path)
	}
	for _, o := range pr.Overlays {
		out = append(out, o.Upper.Path)
	}
	return out
}

// private returns the state folder and the private /tmp, which is made once.
func (h *Host) private() (folder, dir string, err error) {
	h.making.Lock()
	defer h.making.Unlock()
	if folder, dir, err = h.made(); err != nil || dir != "" {
		return folder, dir, err
	}
	folder, tmp, err := state.NewTmp()
	if err != nil {
		// In another sandbox nothing can be written and no namespace made.
		// The second is the reason worth telling.
		if none := h.namespaces(); none != nil {
			err = none
		}
		return "", "", err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state, h.tmp = folder, tmp
	return h.state, h.tmp.Path, nil
}

// made is what private has made, empty before that.
func (h *Host) made() (folder, dir string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return "", "", errClosed
	case h.tmp == nil:
		return "", "", nil
	}
	return h.state, h.tmp.Path, nil
}

// namespaces says why user namespaces cannot be had here, or nil. The try ends
// before any program is executed, because a folder is none.
func (h *Host) namespaces() error {
	f, err := os.Open(os.DevNull)
	if err != nil {
		return nil // not what was asked
	}
	defer f.Close()
	_, err = h.launcher.Start(nil, &launch.Script{Namespaces: launch.NewUser, Steps: []launch.Step{
		{Op: launch.OpMapUser, UID: os.Geteuid(), GID: os.Getegid()},
		{Op: launch.OpStartCommand},
		{Op: launch.OpExec, Path: "/", Argv: []string{"/"}},
	}}, launch.Files{Stdin: f, Stdout: f, Stderr: f})
	var step *launch.StepError
	if !errors.As(err, &step) || step.Step.Op == launch.OpExec {
		return nil
	}
	return explain(&executor.Spec{Args: []string{"/"}}, err)
}

// filter returns the compiled system call filter of a level for a set of openings.
func (h *Host) filter(level string, allow []string, hostNetwork bool, see observing) (launch.Filter, error) {
	names := slices.Clone(allow)
	slices.Sort(names)
	names = slices.Compact(names)
	bare, own := level == plan.LevelLandlock, level == plan.LevelNative
	key := fmt.Sprint(bare, own, hostNetwork, see, names)
	h.mu.Lock()
	cached, ok := h.filters[key]
	h.mu.Unlock()
	if ok {
		return cached, nil
	}
	prog, err := seccomp.Program(seccomp.Options{
		Arch: h.Facts().Arch, Allow: names, HostNetwork: hostNetwork, OwnPID: own, HostSpaces: bare,
		Observe: see != unobserved, ObserveReads: see == observedReads,
	})
	if err != nil {
		return nil, err
	}
	words := launch.Filter(prog)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.filters == nil {
		h.filters = make(map[string]launch.Filter)
	}
	h.filters[key] = words
	return words, nil
}

// Start plans a request and performs the plan. The three descriptors become
// the command's own; they stay the caller's to close. Start returns when the
// program has been executed.
func (h *Host) Start(ctx context.Context, r *executor.Spec, stdin, stdout, stderr *os.File) (Child, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	return h.descend(ctx, r, nil, stdin, stdout, stderr)
}

// makePoints makes mount points in the folder that stands at /tmp. Earlier
// commands may have written there, so no name is followed out of it.
func makePoints(points []plan.Point) error {
	for _, p := range points {
		if err := makePoint(p); err != nil {
			return &executor.RootError{
				Path: p.Path, Why: "cannot be made as a mount point in the private /tmp: " + hostfacts.Reason(err),
				Fix: "an earlier command may have put something else there; use a new Runner, or a workspace outside of /tmp",
			}
		}
	}
	return nil
}

func makePoint(p plan.Point) error {
	root, err := os.OpenRoot(p.Below)
	if err != nil {
		return err
	}
	defer root.Close()
	dir := p.Path
	if !p.Dir {
		dir = filepath.Dir(dir)
	}
	if err := root.MkdirAll(dir, 0o700); err != nil || p.Dir {
		return err
	}
	f, err := root.OpenFile(p.Path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// Close ends the launcher's threads, and with them whatever still runs, and
// removes the private /tmp. It may be called twice.
func (h *Host) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	h.mu.Unlock()
	h.making.Lock() // who is in there sees that the Host is closed the next time
	h.mu.Lock()
	tmp, keeper := h.tmp, h.keeper
	h.mu.Unlock()
	h.making.Unlock()
	return h.end(tmp, keeper)
}

// end is the end of a Host that was closed. What a command could still use goes when
// the kernel has killed everything; where all commands are over, nobody waits for
// their namespaces to be taken down.
func (h *Host) end(tmp *state.Tmp, keeper *guard.Keeper) error {
	launcher := make(chan error, 1)
	if h.alive.Load() > 0 {
		launcher <- h.endLauncher()
	} else {
		go func() { launcher <- h.endLauncher() }()
	}
	// Both wait for the disk.
	removed := make(chan error, 1)
	go func() {
		if tmp == nil {
			removed <- nil
		} else if err := tmp.Remove(); err != nil {
			removed <- fmt.Errorf("remove the private /tmp: %w", err)
		} else {
			removed <- nil
		}
	}()
	var err error
	if keeper != nil {
		err = keeper.Close()
	}
	return errors.Join(err, <-removed, <-launcher)
}

// endLauncher ends whatever still runs, and then gives the control groups back, which
// are empty only by then.
func (h *Host) endLauncher() error { return errors.Join(h.launcher.Close(), h.groups.Close()) }
