// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/caches"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/limits"
	"github.com/sallyport-dev/sallyport/internal/linux/observer"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/linux/stage"
	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
	"github.com/sallyport-dev/sallyport/internal/net/access"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Shared is a shared sandbox: namespaces that a small process holds, in which commands start as
// long as it is open. Its methods may be called from several goroutines at once.
type Shared struct {
	host   *Host
	parts  sharedParts
	holder *launch.Process
	tmp    *dirs.Tmp
	total  *limits.Total   // of all commands; nil for none
	demux  *access.Demux   // divides the network among the commands; nil without one to divide
	rest   *access.Service // serves what is not known to be of a command
	way    way

	measured []*Child // the commands that total has measured last; only what it calls uses this

	ended   chan struct{} // closed when the holder is gone
	cut     chan struct{} // closed when commands that were running then were killed
	closing atomic.Bool
	peers   observer.Peers // the observers of its commands
	stage   stage.Session  // of its commands, from the first one on that has one

	mu       sync.Mutex // guards what follows
	over     bool
	children map[*Child]struct{}
	used     executor.Usage // by those that have ended
	// the group that all commands must be of, where they share processes; empty before the first
	only  string
	roots []*root // mounts to begin with, the latest first
}

// sharedParts are what commands of a shared sandbox start with.
type sharedParts struct {
	Network    sandbox.Network
	Hosts      []string   // granted ones, which are part of the network
	Namespaces []*os.File // in the order in which they are entered
	Trees      []*os.File // as plan.Holder sends them
	Tmp        string     // the directory at /tmp
	PIDs       bool       // the process namespace is shared as well
}

// A way is how programs in a sandbox come to the network, or are told that there is none; see the
// members of attempt and plan.Request with these names.
type way struct {
	server       netip.AddrPort
	routed       *plan.Routed
	redirect     *plan.Redirect
	routes       *plan.Routed
	unredirected string
}

// maxRoots is how many sets of mounts are kept: as many policies as commands of one conversation use.
const maxRoots = 4

// A root is a set of mounts with which commands can begin: a namespace in which no process is.
type root struct {
	tree      []launch.Step // what it was made by
	namespace *os.File
	layers    *caches.Layers        // of caches that are mounted in it; nil for none
	table     *hostfacts.MountTable // what was mounted on the host
	// by commands that start, and by being among Shared.roots; guarded by Shared.mu
	uses int
}

// Open makes a shared sandbox with the network part of a policy. It takes about as long as the start of
// a command.
func (h *Host) Open(ctx context.Context, spec *executor.SharedSpec) (_ *Shared, err error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if spec.Policy.Mode() != sandbox.Managed {
		return nil, &sandbox.UnsupportedError{Need: "a shared sandbox", Have: "the policy builds no sandbox",
			Hint: "use a policy that confines files"}
	}
	if _, err := h.accepted(&executor.Spec{Policy: spec.Policy, Level: plan.LevelNative}); err != nil {
		return nil, err
	}
	if why := h.lacks(plan.LevelNative); why != nil {
		return nil, &sandbox.UnsupportedError{Need: "a shared sandbox, which needs the native level: " +
			why.Need, Have: why.Have, Hint: why.Hint}
	}
	if _, err := h.onDisk(); err != nil {
		return nil, err
	}
	s := &Shared{
		host: h, parts: sharedParts{Network: spec.Policy.Network(), Hosts: spec.Policy.Hosts(),
			PIDs: spec.SharePIDs},
		stage: stage.Session{Shared: true},
		ended: make(chan struct{}), cut: make(chan struct{}), children: map[*Child]struct{}{},
	}
	for try := 1; ; try++ {
		if err = s.hold(spec); err == nil {
			break
		}
		a := &attempt{host: h, level: plan.LevelNative,
			spec: &executor.Spec{Policy: spec.Policy, Args: []string{"/"}}, server: s.way.server}
		if err = a.learn(err, try); !errors.Is(err, errPlanAgain) {
			var no *refusal
			if errors.As(err, &no) {
				err = no.why
			}
			return nil, err
		}
	}
	h.children.Add(1)
	go s.watch()
	if _, s.tmp, err = dirs.NewTmp(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.parts.Tmp = s.tmp.Path
	if s.total, err = limits.NewTotal(&h.groups, spec.Resources, []string{s.parts.Tmp}); err == nil {
		err = s.total.Watch(s.processes, s.exceed)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// hold starts the holder and takes what it sends.
func (s *Shared) hold(spec *executor.SharedSpec) (err error) {
	a := &attempt{host: s.host, level: plan.LevelNative,
		spec: &executor.Spec{Policy: spec.Policy, Network: spec.Network}}
	r := &plan.Request{Level: plan.LevelNative, Spec: a.spec, Shared: &plan.Shared{PIDs: s.parts.PIDs}}
	if err := a.addNetwork(r); err != nil {
		return err
	}
	s.way = way{a.server, a.routed, r.Redirect, r.Routed, r.Unredirected}
	p, err := plan.Holder(s.host.Facts(), r)
	if err != nil {
		return err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	files := launch.Files{Stdin: null, Stdout: null, Stderr: null}
	var sent handovers
	defer sent.close()
	if err := sent.open(p, &files); err != nil {
		return err
	}
	if s.holder, err = s.host.launcher().Start(nil, &p.Script, files); err != nil {
		return err
	}
	if err = s.take(&sent, p, a.spec); err != nil {
		_ = s.holder.Kill()
		_ = s.holder.WaitAll()
		s.free()
	}
	return err
}

// take takes what the holder has sent, in the order of its steps.
func (s *Shared) take(sent *handovers, p *plan.Plan, spec *executor.Spec) (err error) {
	into := []*[]*os.File{&s.parts.Namespaces, &s.parts.Trees}
	for i, n := range []int{len(plan.SharedNamespaces(s.parts.Network, s.parts.PIDs)), plan.HolderTrees} {
		for range n {
			f, err := sent.root.Take()
			if err != nil {
				return err
			}
			*into[i] = append(*into[i], f)
		}
	}
	if sent.listener == nil {
		return nil
	}
	sockets, err := sent.sockets(p)
	if err != nil {
		return err
	}
	sockets.Routed = s.way.routed != nil
	s.demux = access.NewDemux(sockets, tasks.Holders)
	s.rest = access.Serve(&s.host.proxy, s.demux.Rest(), spec)
	return nil
}

// watch kills what runs in the sandbox when its holder has ended. Each command has a process namespace of
// its own, which is not below that of the holder: the kernel makes none below another one that was
// entered, without one more process on the way (pid_namespaces(7)).
func (s *Shared) watch() {
	_ = s.holder.WaitAll() // a holder reports nothing
	close(s.ended)
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	for _, c := range s.running() {
		c.cutOff()
	}
	close(s.cut)
}

// add has a command killed when the holder ends, or at once if it has ended.
func (s *Shared) add(c *Child) {
	s.mu.Lock()
	over := s.over
	s.children[c] = struct{}{}
	s.mu.Unlock()
	if over {
		c.cutOff()
	}
}

// remove forgets a command that has used so much.
func (s *Shared) remove(c *Child, used executor.Usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.children, c)
	s.used.Add(used)
}

// Usage returns what the commands that have ended have used together.
func (s *Shared) Usage() executor.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

func (s *Shared) running() []*Child {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.children))
}

// processes returns those of all commands, for a measurement. Commands that exceed has killed do not count:
// they give back what they have as they end, which takes a while, and no other command may be killed for
// that.
func (s *Shared) processes() (all []int) {
	s.measured = slices.DeleteFunc(s.running(), func(c *Child) bool { return c.total.Load() != nil })
	for _, c := range s.measured {
		all = append(all, c.Processes()...)
	}
	return all
}

// exceed kills the commands of the last measurement because they have exceeded a limit together. A command
// that has started since then has no part in that.
func (s *Shared) exceed(limit executor.Enforced) {
	for _, c := range s.measured {
		c.whileOpen(func() {
			c.total.Store(&limit)
			c.watching.Go(c.overLimit)
		})
	}
}

// Done is closed when the sandbox has ended, because it was closed or because its holder was killed.
func (s *Shared) Done() <-chan struct{} { return s.ended }

// Start starts a command in the sandbox, as [Host.Start] does.
func (s *Shared) Start(ctx context.Context, spec *executor.Spec, stdio [3]*os.File) (*Child, error) {
	if err := s.fits(spec); err != nil {
		return nil, err
	}
	return s.host.start(ctx, s, spec, stdio)
}

// fits returns why a command cannot start here.
func (s *Shared) fits(spec *executor.Spec) error {
	switch p := spec.Policy; {
	case s.gone():
		return executor.ErrSharedEnded
	case p.Mode() != sandbox.Managed:
		return &executor.ApartError{Why: "it runs without a sandbox"}
	case p.Network() != s.parts.Network:
		return &executor.ApartError{Why: fmt.Sprintf("its network is %s, and that of the sandbox is %s",
			p.Network(), s.parts.Network)}
	case !slices.Equal(p.Hosts(), s.parts.Hosts):
		return &executor.ApartError{Why: "it is granted other hosts than the sandbox"}
	case s.parts.PIDs && !s.isOnly(s.group(spec)):
		return &executor.ApartError{Why: "its policy differs from that of the commands whose processes it would see"}
	}
	return nil
}

// isOnly reports whether a group is that of all commands. The first command decides.
func (s *Shared) isOnly(group string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.only = cmp.Or(s.only, group)
	return s.only == group
}

// Kill ends the sandbox at once, with everything in it, as the end of its holder does. Close is still to be
// called.
func (s *Shared) Kill() {
	s.kill()
	<-s.cut
}

// kill has the sandbox end.
func (s *Shared) kill() { _ = s.holder.Kill() } // it may be gone

// group is the same for commands that may pass descriptors to each other: those of equal rights.
func (s *Shared) group(spec *executor.Spec) string {
	p := spec.Policy
	var entries []string
	for _, e := range p.Entries() {
		entries = append(entries, fmt.Sprint(e))
	}
	slices.Sort(entries)
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %d %q %q %t %q %t %t", p.Name(), p.Named(), p.GlobScanDepth(), entries,
		slices.Sorted(slices.Values(spec.Allow)), spec.ProtectHardLinks, spec.Tmp, spec.NoCaches,
		spec.NoObserver)
	return hex.EncodeToString(h.Sum(nil))
}

// likely returns the mounts that the next command likely begins with; nil for none.
func (s *Shared) likely() *root {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.roots) == 0 {
		return nil
	}
	s.roots[0].uses++
	return s.roots[0]
}

// known returns those that may count while the host's mounts are as table says. Each is to be released.
func (s *Shared) known(table *hostfacts.MountTable) []*root {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*root
	for _, r := range s.roots {
		if r.table == table {
			r.uses++
			out = append(out, r)
		}
	}
	return out
}

func (s *Shared) release(roots ...*root) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseLocked(roots...)
}

func (s *Shared) releaseLocked(roots ...*root) {
	for _, r := range roots {
		if r == nil {
			continue
		}
		if r.uses--; r.uses == 0 {
			r.namespace.Close()
			r.layers.Release()
		}
	}
}

// keep keeps mounts that a command has just made, or says that they were used.
func (s *Shared) keep(r *root) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.uses++
	if i := slices.Index(s.roots, r); i >= 0 {
		s.roots = slices.Delete(s.roots, i, i+1)
		r.uses--
	}
	s.roots = slices.Insert(s.roots, 0, r)
	// What was made while other mounts stood on the host does not count any more.
	s.roots = slices.DeleteFunc(s.roots, func(old *root) bool {
		drop := old.table != r.table
		if drop {
			s.releaseLocked(old)
		}
		return drop
	})
	for len(s.roots) > maxRoots || s.over && len(s.roots) > 0 {
		last := len(s.roots) - 1
		s.releaseLocked(s.roots[last])
		s.roots = s.roots[:last]
	}
}

// forget drops mounts that the kernel did not find as they were made.
func (s *Shared) forget(r *root) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.roots, r); i >= 0 {
		s.roots = slices.Delete(s.roots, i, i+1)
		s.releaseLocked(r)
	}
}

// Close ends everything in the sandbox and removes its /tmp. Commands that were started must have been
// closed. It may be called twice.
func (s *Shared) Close() error {
	if s.closing.Swap(true) {
		<-s.cut
		return nil
	}
	s.mu.Lock()
	s.over = true
	s.releaseLocked(s.roots...)
	s.roots = nil
	s.mu.Unlock()
	s.kill()
	s.total.Close()
	<-s.cut
	s.free()
	s.host.children.Add(-1)
	if s.tmp != nil { // it was opened
		if err := s.tmp.Remove(); err != nil {
			return fmt.Errorf("remove the private /tmp of the sandbox: %w", err)
		}
	}
	return nil
}

// free frees what is left of a sandbox that has ended.
func (s *Shared) free() {
	for _, f := range slices.Concat(s.parts.Namespaces, s.parts.Trees) {
		f.Close()
	}
	s.parts.Namespaces, s.parts.Trees = nil, nil
	if s.demux != nil {
		s.demux.Close()
		s.rest.Close()
		s.demux, s.rest = nil, nil
	}
	_ = s.holder.Close()
}
