// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
	"github.com/sallyport-dev/sallyport/internal/net/access"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// handovers are the ways by which one launch sends what it makes; nil ones are not needed.
type handovers struct{ terminal, listener, root *launch.Handover }

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
	if p.Has(launch.OpShare) {
		if s.root, err = launch.NewHandover("mounts"); err != nil {
			return err
		}
	}
	files.Terminal, files.Listen, files.Share = s.terminal.Theirs(), s.listener.Theirs(), s.root.Theirs()
	return nil
}

func (s *handovers) close() {
	s.terminal.Close()
	s.listener.Close()
	s.root.Close()
}

// receive takes what a launch has sent, and begins to serve the command's way to the network. What
// the command has sent there meanwhile waits in the sockets.
func (a *attempt) receive(c *Child, s *handovers, p *plan.Plan) (err error) {
	if s.listener != nil {
		sockets, err := s.sockets(p)
		if err != nil {
			return err
		}
		if a.published != nil {
			a.published.Serve(sockets.Four, sockets.Six)
			sockets.Four, sockets.Six, sockets.Dial = nil, nil, a.published.Dial
		}
		if a.shared == nil {
			sockets.Routed = a.routed != nil
			a.network = access.Serve(&a.host.proxy, sockets, a.spec)
		}
	}
	if a.member != nil {
		sockets := a.member.Sockets()
		if a.published != nil {
			sockets.Dial = a.published.Dial
		}
		a.network = access.Serve(&a.host.proxy, sockets, a.spec)
		a.member.Started(c.Processes)
	}
	if s.terminal != nil {
		if c.terminal, err = s.terminal.Take(); err != nil {
			return err
		}
	}
	if a.stage != nil {
		return a.stage.Take(s.root, p)
	}
	return a.keep(s.root)
}

// sockets takes the sockets of a plan, in the order of its steps.
func (s *handovers) sockets(p *plan.Plan) (_ *access.Sockets, err error) {
	got := new(access.Sockets)
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
func take(to *access.Sockets, step *launch.Step, f *os.File) error {
	if step.Path == "" {
		own, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
		switch {
		case err != nil:
		case step.Value == unix.AF_INET:
			to.Four = append(to.Four, os.NewFile(uintptr(own), "published"))
		default:
			to.Six = append(to.Six, os.NewFile(uintptr(own), "published"))
		}
		return err
	}
	if step.Value == unix.SOCK_DGRAM {
		c, err := net.FilePacketConn(f)
		switch {
		case err != nil:
		// they come behind the proxy; without one all are for names
		case to.Datagrams == nil && to.Proxy != nil:
			to.Datagrams = c
		default:
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

// publish says in a request that ports are published, and opens them. A managed network has the way to the
// command's own servers for its proxy, too.
func (a *attempt) publish(r *plan.Request) (err error) {
	switch {
	case len(a.spec.Publish) > 0:
		r.Publish = access.MaxPublished
	case a.reaches != nil && a.level == plan.LevelNative:
		r.Publish = access.Own
	default:
		return nil
	}
	a.host.mu.Lock()
	r.PublishIPv4 = a.host.onlyIPv4
	a.host.mu.Unlock()
	for _, p := range a.spec.Publish {
		if p.Port == 0 || slices.Contains(a.reaches.LocalPorts(), p.Port) {
			return &sandbox.UnsupportedError{
				Need: fmt.Sprintf("port %d of the command's own loopback", p.Port),
				Have: "it is not a port, or an allow entry leads it to this machine",
				Hint: "publish another port",
			}
		}
	}
	if !a.dry {
		a.published, err = access.Publish(a.spec.Publish)
	}
	return err
}

// redirected reports whether connections to all other addresses are led to the proxy by rules.
func (a *attempt) redirected(p *plan.Plan) bool {
	if a.shared != nil {
		return a.shared.way.redirect != nil
	}
	return a.reaches != nil && a.routed == nil && p.Has(launch.OpNetlink)
}

// addNetwork says in a request how programs come to the network, or are told that there is none.
func (a *attempt) addNetwork(r *plan.Request) (err error) {
	managed := a.spec.Policy.Network() == sandbox.NetworkProxy
	if managed {
		if a.reaches, err = access.Policy(a.spec); err != nil {
			return err
		}
	}
	switch {
	case a.shared != nil:
		w := &a.shared.way
		a.server, a.routed = w.server, w.routed
		r.Redirect, r.Routed, r.Unredirected = w.redirect, w.routes, w.unredirected
	case managed:
		a.redirect(r)
	default:
		a.nameServer(r)
	}
	if managed {
		r.Direct = a.direct()
	}
	return nil
}

// direct returns the hosts that are the command itself to programs with proxy variables: what it serves
// there is reached as without a network. There are none where entries open ports of this machine's loopback
// interface: the proxy leads to these, and to the command at all others.
func (a *attempt) direct() []string {
	if !a.reaches.LocalBinding() && (a.reaches.LocalWide() || len(a.reaches.LocalPorts()) > 0) {
		return nil
	}
	return access.OwnHosts()
}

// nameServer says in a request where a command without a network asks for names, which are not found
// at once then, and noted.
func (a *attempt) nameServer(r *plan.Request) {
	h := a.host
	h.mu.Lock()
	unnamed := h.unnamed
	h.mu.Unlock()
	if unnamed || a.level != plan.LevelNative || a.spec.Policy.Network() != sandbox.NetworkNone {
		return
	}
	server, ok := access.NameServer()
	if !ok {
		return
	}
	a.server = server
	r.Names = &plan.Names{Server: server}
	if !server.Addr().IsLoopback() {
		r.Names.Route = tasks.LocalRoutes(server.Addr())
	}
}

// ownNameServer has a command without a network ask for names where programs look for a name server that see
// no resolv.conf (resolv.conf(5)): it often leads to a directory below /run.
func (a *attempt) ownNameServer(r *plan.Request) {
	const config = "/etc/resolv.conf"
	if r.Names == nil || a.shared != nil {
		return
	}
	if at := hostfacts.RealPath(config); r.LevelAt(at) == sandbox.LevelDeny || r.Hides(at) {
		a.server = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), a.server.Port())
		r.Names = &plan.Names{Server: a.server}
	}
}

// redirect says in a request how connections are redirected of programs that know of no proxy.
func (a *attempt) redirect(r *plan.Request) {
	h := a.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.Unredirected = h.unredirected; r.Unredirected != "" {
		a.route(r)
		return
	}
	r.Redirect = &plan.Redirect{
		Routes: routes(!h.onlyIPv4),
		Rules: tasks.Rules(tasks.Redirection{TCP: plan.RedirectPort, DNS: plan.NamesPort,
			Local: a.reaches.LocalPorts()}),
		IPv6: !h.onlyIPv4,
	}
}

// routes are the messages after which every address is one of the command's network.
func routes(ipv6 bool) [][]byte {
	out := [][]byte{tasks.Routes(unix.AF_INET)}
	if ipv6 {
		out = append(out, tasks.Routes(unix.AF_INET6))
	}
	return out
}

// route says in a request at which ports connections come to the proxy without rules. A socket there takes
// the port from the command for every address, so these are the usual ones below 1024, at which no command
// can listen, and those that entries name.
func (a *attempt) route(r *plan.Request) {
	h := a.host
	if h.unrouted {
		return
	}
	server, ok := access.NameServer()
	if !ok {
		server = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), server.Port())
	}
	ports := append([]uint16{22, 80, 443}, a.reaches.Ports()...)
	slices.Sort(ports)
	ports = slices.DeleteFunc(slices.Compact(ports), func(port uint16) bool {
		return port == plan.ProxyAddress.Port() ||
			slices.ContainsFunc(a.spec.Publish, func(p network.Publish) bool { return p.Port == port })
	})
	a.routed = &plan.Routed{Routes: routes(!h.onlyIPv4), IPv6: !h.onlyIPv4, Ports: ports, Names: server,
		Why: h.unredirected}
	r.Routed = a.routed
}

// shortTries is how often a start is tried while the kernel lacks room for redirecting connections.
const shortTries = 3

// learnRedirect remembers what this machine cannot redirect, and reports whether another plan may
// work. IPv6 may be missing alone, and so may names. A lack of room says nothing about the machine: the
// same is tried again, and a command that gets none at last does not start.
func (a *attempt) learnRedirect(err error, try int) bool {
	h := a.host
	var step *launch.StepError
	if !errors.As(err, &step) || step.Step.Op != launch.OpNetlink &&
		(step.Step.Op != launch.OpListen || step.Step.Path == plan.ProxyAddress.String()) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case step.Step.Op == launch.OpListen && step.Step.Path == "" &&
		step.Errno == unix.EAFNOSUPPORT && !h.onlyIPv4:
		h.onlyIPv4 = true
	case a.server.IsValid():
		h.unnamed = true // which is only about what denials say
	case lacksRoom(step.Errno):
		return try < shortTries
	case step.Step.Op == launch.OpNetlink && step.Step.Value == unix.NETLINK_NETFILTER &&
		h.unredirected == "":
		h.unredirected = fmt.Sprintf("this kernel does not redirect connections (%s: %v)",
			step.Call, step.Errno)
	case !h.onlyIPv4:
		h.onlyIPv4 = true
	case h.unredirected == "":
		h.unredirected = fmt.Sprintf("this kernel has no routes for them (%s: %v)", step.Call, step.Errno)
		h.unrouted = true // which begin alike
	case !h.unrouted:
		h.unrouted = true
	default:
		return false // it was planned without
	}
	return true
}

// lacksRoom reports whether an error is about memory or descriptors, of which there may be enough a
// moment later.
func lacksRoom(errno syscall.Errno) bool {
	return slices.Contains([]syscall.Errno{unix.ENOMEM, unix.ENOBUFS, unix.EMFILE, unix.ENFILE,
		unix.EAGAIN}, errno)
}
