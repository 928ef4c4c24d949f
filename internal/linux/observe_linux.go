// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/notify"
	"github.com/sallyport-dev/sallyport/internal/linux/observer"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/linux/seccomp"
	"github.com/sallyport-dev/sallyport/internal/names/protect"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// observing says how much of a command's calls the observer sees.
type observing uint8

const (
	unobserved observing = iota
	observed
	observedReads // and calls that only read, which slows down programs that read much
)

// addFilter adds the system call filter, and whether it asks an observer. Bubblewrap
// installs only filters without a listener.
func (a *attempt) addFilter(r *plan.Request, res *sandbox.Resolved) (err error) {
	see := unobserved
	if !a.spec.NoObserver && a.level != plan.LevelBwrap {
		a.host.mu.Lock()
		r.Unobserved = a.host.unobserved
		a.host.mu.Unlock()
		if r.Observe = r.Unobserved == ""; r.Observe {
			see = observed
		}
		if r.Observe && protect.Hides(res) {
			see = observedReads
		}
	}
	if !r.Observe {
		if err := asks(a.spec, a.level, r.Unobserved); err != nil {
			return err
		}
	}
	if r.Filter, err = a.host.filter(a.level, a.spec, see); err != nil || !r.Observe {
		return err
	}
	r.Seal, err = a.host.seal()
	return err
}

// seal returns the compiled filter against a second hand-over. It is made once.
func (h *Host) seal() (launch.Filter, error) {
	h.sealOnce.Do(func() {
		var program []uint64
		program, h.sealErr = seccomp.Seal(h.Facts().Arch)
		h.sealed = launch.Filter(program)
	})
	return h.sealed, h.sealErr
}

// maxFilters is how many filters are kept. Callers choose the openings, and a server lives long.
const maxFilters = 64

// A filterKey stands for the options of a filter.
type filterKey struct {
	allow                                                  string
	hostNetwork, ownPID, hostSpaces, observe, observeReads bool
	oneUser                                                bool
}

// keyOf returns the key of options for this machine, whose openings are sorted.
func keyOf(o seccomp.Options) filterKey {
	return filterKey{strings.Join(o.Allow, " "), o.HostNetwork, o.OwnPID, o.HostSpaces, o.Observe,
		o.ObserveReads, o.OneUser}
}

// refusalsOf returns what a filter refuses. It is made once for each.
func (h *Host) refusalsOf(o seccomp.Options) (*seccomp.Refusals, error) {
	key, c := keyOf(o), h.pool()
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.refusals[key]; r != nil {
		return r, nil
	}
	r, err := seccomp.NewRefusals(o)
	if err == nil {
		if c.refusals == nil || len(c.refusals) >= maxFilters {
			c.refusals = make(map[filterKey]*seccomp.Refusals)
		}
		c.refusals[key] = r
	}
	return r, err
}

// filter returns the compiled system call filter of a level, with more openings than the
// command has.
func (h *Host) filter(level string, spec *executor.Spec, see observing,
	more ...string) (launch.Filter, error) {
	o := h.filterOptions(level, spec, see, more...)
	key, c := keyOf(o), h.pool()
	c.mu.Lock()
	filter, ok := c.filters[key]
	c.mu.Unlock()
	if ok {
		return filter, nil
	}
	program, err := seccomp.Program(o)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.filters == nil || len(c.filters) >= maxFilters {
		c.filters = make(map[filterKey]launch.Filter)
	}
	c.filters[key] = launch.Filter(program)
	return c.filters[key], nil
}

// filterOptions returns what a filter is made from.
func (h *Host) filterOptions(level string, spec *executor.Spec, see observing,
	more ...string) seccomp.Options {
	o := seccomp.Options{
		Arch: h.Facts().Arch, Allow: slices.Concat(spec.Allow, more),
		HostNetwork: spec.Policy.Network() == sandbox.NetworkHost,
		OwnPID:      level == plan.LevelNative, HostSpaces: level == plan.LevelLandlock,
		Observe: see != unobserved, ObserveReads: see == observedReads,
	}
	// who may change users outside, and fails to do so inside
	const changes = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID
	o.OneUser = o.OwnPID && h.Facts().UID == 0 && h.Facts().GID == 0 && h.Facts().Caps&changes == changes &&
		!slices.Contains(o.Allow, "userns")
	slices.Sort(o.Allow)
	return o
}

// learnObserver remembers that no listener is available here, and reports whether that is
// why a launch failed.
func (h *Host) learnObserver(err error) bool {
	var step *launch.StepError
	if !errors.As(err, &step) || step.Step.Op != launch.OpObserve {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.unobserved != "":
		return false // it was planned without
	case step.Errno == syscall.EBUSY:
		h.unobserved = "another supervisor around this process already gets its calls"
	default:
		h.unobserved = fmt.Sprintf("this kernel gives no listener (%v)", step.Errno)
	}
	return true
}

// An observation is the observer of one command. The nil observation observes nothing.
type observation struct {
	inbox      *notify.Inbox
	judge      *protect.PolicyJudge
	supervisor *observer.Supervisor
}

// observe starts to wait for the listener that a plan hands out.
func (a *attempt) observe(p *plan.Plan) (*observation, error) {
	res := a.resolved
	if len(a.copies) > 0 { // else no link need be looked for
		res.Paths = slices.Clone(res.Paths)
		for i := range res.Paths {
			if _, shown := a.copies[hostfacts.RealPath(res.Paths[i].Path)]; shown {
				res.Paths[i].Level = sandbox.LevelRead
			}
		}
	}
	refusals, err := a.host.refusalsOf(a.host.filterOptions(a.level, a.spec, observed))
	if err != nil {
		return nil, err
	}
	inbox, err := notify.Listen()
	if err != nil {
		return nil, err
	}
	names := a.names.Observed()
	for _, o := range a.overlays {
		names.Free = append(names.Free, o.Path)
	}
	judge := protect.NewJudge(&res, names)
	cfg := observer.Config{
		Judge:          judge,
		Refusals:       refusals,
		PrivateNetwork: a.ownNetwork(),
		Redirected:     a.redirected(p),
		Names:          a.server,
		UnixOpen:       slices.Contains(a.spec.Allow, "unix"),
		Sockets:        a.services.sockets(), Places: a.services.places(),
		OwnRoots: slices.Contains(a.spec.Allow, "userns"),
		Reads:    protect.Hides(&res),
		Shared:   a.linked, Own: a.own, ProtectHardLinks: a.spec.ProtectHardLinks,
		// Programs in namespaces of their own mean other users by their numbers.
		IgnoreOwners: !a.spec.OwnershipErrors && !slices.Contains(a.spec.Allow, "userns"),
		OnDenied:     a.spec.OnDenied, Asking: a.asking(names.Protected),
	}
	if a.level == plan.LevelNative { // at others it cannot be published
		cfg.OnListen = a.spec.OnListen
	}
	if a.shared != nil {
		cfg.Peers, cfg.Group = &a.shared.peers, a.shared.group(a.spec)
	}
	if a.routed != nil {
		cfg.Routed, cfg.Names = a.routed.Ports, a.routed.Names
	}
	if a.level == plan.LevelLandlock {
		cfg.NoSockets, cfg.UnixOpen = res.Network != sandbox.NetworkHost, true
		cfg.Writable = observer.WritablePlaces(&p.Script)
	}
	s, err := observer.Serve(inbox, cfg)
	if err != nil {
		inbox.Started()
		return nil, err
	}
	return &observation{inbox, judge, s}, nil
}

// started closes what only the launch needs.
func (o *observation) started() {
	if o != nil {
		o.inbox.Started()
	}
}

// onFailed has f called when the observer cannot go on.
func (o *observation) onFailed(f func()) {
	if o != nil {
		o.supervisor.OnFailed(f)
	}
}

// made returns what was seen of the making of repositories; nil if nothing was observed.
func (o *observation) made(r observer.Report) *protect.Made {
	if o == nil {
		return nil
	}
	made := o.judge.Made()
	made.Renamed = r.Renamed
	return &made
}

// close ends the observation and returns what was seen.
func (o *observation) close() observer.Report {
	if o == nil {
		return observer.Report{}
	}
	o.inbox.Started()
	return o.supervisor.Close()
}
