// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/internal/observer"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// observing says how much of a command's calls is seen.
type observing uint8

const (
	unobserved observing = iota
	observed
	observedReads // and what only reads, which costs programs that read much
)

// observes decides how a request is observed at a level. Bubblewrap installs filters
// without listeners only.
func (h *Host) observes(r *executor.Spec, level string) observing {
	h.mu.Lock()
	blind := h.blind
	h.mu.Unlock()
	if r.NoObserver || blind != "" || level != plan.LevelNative && level != plan.LevelLandlock {
		return unobserved
	}
	if res, err := r.Policy.Resolve(); err == nil && observer.Hides(&res) {
		return observedReads
	}
	return observed
}

// withoutObserver remembers that a listener cannot be had here, and reports whether
// that is why a launch failed.
func (h *Host) withoutObserver(err error) bool {
	var step *launch.StepError
	if !errors.As(err, &step) || step.Step.Op != launch.OpObserve {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.blind != "":
		return false // it was planned without
	case step.Errno == syscall.EBUSY:
		h.blind = "another supervisor around this process already gets its calls"
	default:
		h.blind = fmt.Sprintf("this kernel gives no listener (%v)", step.Errno)
	}
	return true
}

// A watching is the observer of one command. Nil watches nothing.
type watching struct {
	inbox      *observer.Inbox
	supervisor *observer.Supervisor
}

// observe begins to wait for the listener of a plan. It returns nil for a plan that
// hands none out.
func (h *Host) observe(r *executor.Spec, p *plan.Plan, keep *keeping) (*watching, error) {
	if !p.Has(launch.OpObserve) {
		return nil, nil //nolint:nilnil // nil watches nothing
	}
	res, err := r.Policy.Resolve()
	if err != nil {
		return nil, err
	}
	inbox, err := observer.Listen()
	if err != nil {
		return nil, err
	}
	cfg := observer.Config{
		Judge:          observer.NewJudge(&res, keep.observed()),
		PrivateNetwork: p.Script.Namespaces&launch.NewNet != 0,
		NoSockets:      p.Level == plan.LevelLandlock && res.Network != sandbox.NetworkHost,
		UnixOpen:       p.Level == plan.LevelLandlock || slices.Contains(r.Allow, "unix"),
		OwnRoots:       slices.Contains(r.Allow, "userns"),
		Reads:          observer.Hides(&res),
	}
	if p.Level == plan.LevelLandlock {
		cfg.Writable = observer.WritablePlaces(&p.Script)
	}
	s, err := inbox.Serve(cfg)
	if err != nil {
		inbox.Started()
		return nil, err
	}
	return &watching{inbox, s}, nil
}

// started says that the launch is over.
func (w *watching) started() {
	if w != nil {
		w.inbox.Started()
	}
}

// onFailed has f called when the observer cannot go on.
func (w *watching) onFailed(f func()) {
	if w != nil {
		w.supervisor.OnFailed(f)
	}
}

// close ends the watch and returns what was seen.
func (w *watching) close() observer.Report {
	if w == nil {
		return observer.Report{}
	}
	return w.supervisor.Close()
}
