// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"fmt"
	"net"

	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/internal/netaccess"
	"github.com/sallyport-dev/sallyport/internal/plan"
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
// the command has sent there meanwhile waits in the socket.
func (a *attempt) receive(c *Child, s *handovers) (err error) {
	if s.listener != nil {
		f, err := s.listener.Take()
		if err != nil {
			return err
		}
		defer f.Close()
		l, err := net.FileListener(f)
		if err != nil {
			return fmt.Errorf("proxy: %w", err)
		}
		a.network = netaccess.Serve(&a.host.proxy, l, a.spec, a.reaches)
	}
	if s.terminal != nil {
		c.terminal, err = s.terminal.Take()
	}
	return err
}
