// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/internal/netaccess"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/internal/redirect"
)

// handovers are the ways by which one launch sends what it makes; nil ones are not needed.
type handovers struct{ terminal, listener *launch.Handover }

// open opens those that a plan needs.
func (s *handovers) open(p *plan.Plan, files *launch.Files) (err error) {
	if p.Has(launch.OpTerminal) {
		if s.terminal, err = launch.NewHandover("terminal"); err != nil {
			return err
		}
	}
	if p.Has(launch.OpListen) {
		if s.listener, err = launch.NewHandover("proxy"); err != nil {
			return err
		}
	}
	files.Terminal, files.Listen = s.terminal.Theirs(), s.listener.Theirs()
	return nil
}

func (s *handovers) close() {
	s.terminal.Close()
	s.listener.Close()
}

// receive takes what a launch has sent, and begins to serve the command's way to the network. What
// the command has sent there meanwhile waits in the sockets.
func (a *attempt) receive(c *Child, s *handovers, p *plan.Plan) (err error) {
	if s.listener != nil {
		sockets, err := s.sockets(p)
		if err != nil {
			return err
		}
		a.network = netaccess.Serve(&a.host.proxy, sockets, a.spec, a.reaches)
	}
	if s.terminal != nil {
		c.terminal, err = s.terminal.Take()
	}
	return err
}

// sockets takes the sockets of a plan, in the order of its steps.
func (s *handovers) sockets(p *plan.Plan) (_ *netaccess.Sockets, err error) {
	got := new(netaccess.Sockets)
	defer func() {
		if err != nil {
			got.Close()
		}
	}()
	for i := range p.Script.Steps {
		step := &p.Script.Steps[i]
		if step.Op != launch.OpListen {
			continue
		}
		f, err := s.listener.Take()
		if err != nil {
			return nil, err
		}
		err = take(got, step, f)
		f.Close() // they have a copy
		if err != nil {
			return nil, fmt.Errorf("proxy: %w", err)
		}
	}
	return got, nil
}

// take adds the socket of one step.
func take(to *netaccess.Sockets, step *launch.Step, f *os.File) error {
	if step.Value == unix.SOCK_DGRAM {
		c, err := net.FilePacketConn(f)
		if err == nil {
			to.Names = append(to.Names, c)
		}
		return err
	}
	l, err := net.FileListener(f)
	switch {
	case err != nil:
	case to.Proxy == nil:
		to.Proxy = l
	default:
		to.Redirected = append(to.Redirected, l)
	}
	return err
}

// redirect says in a request how connections are led away of programs that know of no proxy.
func (a *attempt) redirect(r *plan.Request) {
	h := a.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.Unredirected = h.unredirected; r.Unredirected != "" {
		return
	}
	r.Redirect = &plan.Redirect{
		Routes: [][]byte{redirect.Routes(unix.AF_INET)},
		Rules:  redirect.Rules(redirect.Config{TCP: plan.RedirectPort, DNS: plan.NamesPort, Local: a.reaches.LocalPorts()}),
		IPv6:   !h.onlyIPv4,
	}
	if r.Redirect.IPv6 {
		r.Redirect.Routes = append(r.Redirect.Routes, redirect.Routes(unix.AF_INET6))
	}
}

// learnRedirect remembers what this machine cannot lead away, and reports whether that is why a
// launch failed. IPv6 may be missing alone.
func (h *Host) learnRedirect(err error) bool {
	var step *launch.StepError
	if !errors.As(err, &step) || step.Step.Op != launch.OpNetlink && (step.Step.Op != launch.OpListen || step.Step.Path == plan.ProxyAddress.String()) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.unredirected != "":
		return false // it was planned without
	case !h.onlyIPv4:
		h.onlyIPv4 = true
	default:
		h.unredirected = fmt.Sprintf("this kernel does not lead connections away (%s: %v)", step.Call, step.Errno)
	}
	return true
}
