// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/command/environ"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/seccomp"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Numbers of Linux.
const (
	sockDgram        = 2
	familyIPv4       = 2  // AF_INET
	familyIPv6       = 10 // AF_INET6
	netlinkRoute     = 0
	netlinkNetfilter = 12

	// secureBits: no rights by being user 0 or by changing the user, no ambient set, and all of
	// that locked (linux/securebits.h). Whether rights are kept over a change of user is not
	// locked: the command has none to keep, and programs that give up rights, such as ping,
	// end when they cannot ask for it (PR_SET_KEEPCAPS).
	secureBits = 0xcf
	capSetpcap = 1 << 8
)

// Multiplexers that make terminals: of the terminal file system that only this command
// has, and of the host's.
const (
	ownMultiplexer  = "/dev/pts/ptmx"
	hostMultiplexer = "/dev/ptmx"
)

// subreaper returns how a script without a process namespace begins.
func subreaper(r *Request) []launch.Step {
	return slices.Concat(r.Entry.Reaper, []launch.Step{
		{Op: launch.OpDieWithParent, Label: "the command's group ends with its front end"},
		{Op: launch.OpSubreaper, Label: "find what the command leaves behind"},
	}, start(r, hostMultiplexer))
}

// start starts the command as the leader of a group in the reaper's session, with a terminal
// if it gets one. That comes first, so that its own descriptors of the terminal are as free as
// they are without a sandbox.
func start(r *Request, multiplexer string) []launch.Step {
	return slices.Concat(terminal(r, multiplexer), []launch.Step{{Op: launch.OpStartCommand}},
		r.Entry.Command, []launch.Step{{Op: launch.OpNewGroup}})
}

func terminal(r *Request, multiplexer string) []launch.Step {
	if r.Spec.TTY == nil {
		return nil
	}
	size, replaced := r.Spec.TTY.OrUsual(), 3
	if r.Spec.Stderr != nil {
		replaced = 2
	}
	return []launch.Step{{Op: launch.OpTerminal, Path: multiplexer, Cols: size.Cols, Rows: size.Rows,
		Stdio: replaced}}
}

// ProxyAddress is where commands with a managed network find the proxy, each in a network
// namespace of its own. Scripts and logs can rely on it.
var ProxyAddress = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 3128)

// Where connections are led that know of no proxy, and questions about names.
var (
	redirected4 = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), RedirectPort)
	redirected6 = netip.AddrPortFrom(netip.IPv6Loopback(), RedirectPort)
	names4      = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), NamesPort)
	names6      = netip.AddrPortFrom(netip.IPv6Loopback(), NamesPort)
)

// Ports of the loopback interface of a command with a managed network.
const (
	RedirectPort = 15001
	NamesPort    = 15053
)

// A Redirect leads connections of a command with a managed network away that know of no proxy. Its
// messages are those of internal/linux/tasks.
type Redirect struct {
	Routes [][]byte // for the families
	Rules  []byte
	IPv6   bool // one of Routes is for IPv6
}

// A Routed is what a command with a managed network has where the kernel has no rules that lead
// connections away: every address is here, and sockets at some ports of all addresses get what was
// going there. The command cannot listen at these ports.
type Routed struct {
	Routes [][]byte // the messages of internal/linux/tasks, for the families
	IPv6   bool     // one of them is for IPv6
	Ports  []uint16
	Names  netip.AddrPort // where the command asks for names
	Why    string         // connections are not redirected
}

// Names is where a command without a network asks for names.
type Names struct {
	Server netip.AddrPort
	Route  []byte // the message of internal/linux/tasks for its address; nil for a loopback address
}

// privateNetwork returns what a network namespace gets before the command is in it: its loopback
// interface, and with a managed network the sockets that lead to the proxy. They are sent in this
// order: the proxy, for connections and for datagrams; connections that are redirected, by IPv4 and by
// IPv6; names, likewise.
func privateNetwork(r *Request) []launch.Step {
	switch r.network() {
	case sandbox.NetworkHost:
		return nil
	case sandbox.NetworkNone:
		return append([]launch.Step{{Op: launch.OpLoopback}}, r.Names.steps()...)
	}
	return managedNetwork(r)
}

// managedNetwork is privateNetwork for a managed one.
func managedNetwork(r *Request) []launch.Step {
	steps := []launch.Step{
		{Op: launch.OpLoopback},
		{Op: launch.OpListen, Path: ProxyAddress.String(), Label: "the proxy, which this process serves"},
		{Op: launch.OpListen, Value: sockDgram, Path: ProxyAddress.String(), Label: "datagrams by SOCKS5"},
	}
	if r.Redirect == nil {
		return append(steps, r.Routed.steps()...)
	}
	steps = append(steps, here(r.Redirect.Routes)...)
	steps = append(steps,
		launch.Step{Op: launch.OpNetlink, Value: netlinkNetfilter, Data: r.Redirect.Rules,
			Label: "connections are led to the proxy"},
		launch.Step{Op: launch.OpListen, Path: redirected4.String()})
	if r.Redirect.IPv6 {
		steps = append(steps, launch.Step{Op: launch.OpListen, Path: redirected6.String()})
	}
	steps = append(steps, launch.Step{Op: launch.OpListen, Value: sockDgram, Path: names4.String(),
		Label: "names"})
	if r.Redirect.IPv6 {
		steps = append(steps, launch.Step{Op: launch.OpListen, Value: sockDgram, Path: names6.String(),
			Label: "names"})
	}
	return steps
}

// here has a network namespace take every address for its own.
func here(routes [][]byte) (steps []launch.Step) {
	for _, route := range routes {
		steps = append(steps, launch.Step{Op: launch.OpNetlink, Value: netlinkRoute, Data: route,
			Label: "every address is here"})
	}
	return steps
}

// steps makes the sockets. One for IPv6 gets connections by IPv4 as well.
func (d *Routed) steps() []launch.Step {
	if d == nil {
		return nil
	}
	steps, every := here(d.Routes), netip.IPv4Unspecified()
	if d.IPv6 {
		every = netip.IPv6Unspecified()
	}
	for _, port := range d.Ports {
		steps = append(steps, launch.Step{Op: launch.OpListen, Path: netip.AddrPortFrom(every, port).String(),
			Label: "connections to this port of every address"})
	}
	return append(steps, launch.Step{Op: launch.OpListen, Value: sockDgram, Path: d.Names.String(),
		Label: "names"})
}

// weaker says what is missing without rules of the kernel.
func (d *Routed) weaker() []string {
	var all []string
	for _, port := range d.Ports {
		all = append(all, strconv.Itoa(int(port)))
	}
	out := []string{"programs that do not use the proxy reach hosts at these ports only: " +
		strings.Join(all, ", ") + ", where the command cannot listen: " + d.Why}
	if !d.IPv6 {
		out = append(out, noIPv6)
	}
	return out
}

// published makes the sockets with which published ports are reached.
func (r *Request) published() (steps []launch.Step) {
	for range r.Publish {
		steps = append(steps, launch.Step{Op: launch.OpListen, Value: familyIPv4,
			Label: "a way to published ports"})
		if !r.PublishIPv4 {
			steps = append(steps, launch.Step{Op: launch.OpListen, Value: familyIPv6})
		}
	}
	return steps
}

// steps makes the socket, at which no name is found.
func (n *Names) steps() (steps []launch.Step) {
	if n == nil {
		return nil
	}
	if n.Route != nil {
		steps = append(steps, launch.Step{Op: launch.OpNetlink, Value: netlinkRoute, Data: n.Route,
			Label: "the address of the name server, and no other, is here"})
	}
	return append(steps, launch.Step{Op: launch.OpListen, Value: sockDgram, Path: n.Server.String(),
		Label: "names, of which none is found"})
}

// environ returns the environment of the command.
func (r *Request) environ() []string {
	return environ.WithMemory(r.networkEnviron(), r.Spec.Resources.Memory)
}

// networkEnviron returns it as it is for the network of the policy.
func (r *Request) networkEnviron() []string {
	switch r.network() {
	case sandbox.NetworkHost:
		return r.Env
	case sandbox.NetworkNone:
		return environ.WithoutLogins(r.Env)
	}
	env := environ.SetProxy(r.Env, environ.Proxy{At: ProxyAddress, Redirected: r.Redirect != nil, Past: r.Direct})
	if places := r.trustPlaces(); len(places) > 0 {
		env = environ.SetTrust(env, places[0].Path)
	}
	if r.showsStore() {
		env = environ.WithJavaTrust(env, storePlace)
	}
	return env
}

// Trust is a file of certificates that takes the place of those of the system.
type Trust struct {
	Bundle Spot
	Store  Spot   // the same for Java
	Files  []Spot // of the system, unique paths without symbolic links
}

// storePlace is where the command sees the certificates for Java, of which systems have no usual place.
const storePlace = runDir + "/sallyport/certificates.p12"

const runDir = "/run"

// showsStore reports whether the command gets the certificates for Java: its /run must be one of ours.
func (r *Request) showsStore() bool {
	if u := r.rule(runDir); r.Trust == nil || u != nil && u.Level == sandbox.LevelWrite &&
		u.Kind != KindMissing {
		return false
	}
	return r.Hides(storePlace)
}

// trustPlaces are the files of the system that the bundle is mounted over: those that the command sees.
func (r *Request) trustPlaces() []Spot {
	if r.Trust == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.Trust.Files),
		func(s Spot) bool { return r.LevelAt(s.Path) == sandbox.LevelDeny || r.Hides(s.Path) })
}

// limited gives the command its standard descriptors and resource limits.
func limited(r *Request) []launch.Step {
	const more = 6 // steps that command adds
	steps := append(make([]launch.Step, 0, 1+len(r.Limits)+more), launch.Step{Op: launch.OpStdio})
	for _, l := range r.Limits {
		steps = append(steps, launch.Step{Op: launch.OpLimit, Resource: l.Resource, Soft: l.Soft,
			Hard: l.Hard})
	}
	return steps
}

// command returns the last steps of every command.
func command(r *Request) []launch.Step {
	steps := append(limited(r), launch.Step{Op: launch.OpChdir, Path: cmp.Or(r.Dir, r.Spec.Dir)})
	if r.Observe {
		// Last, because no supervisor answers the calls of this task itself; and only here,
		// because process 1 would have to ask, too.
		steps = append(steps, launch.Step{Op: launch.OpObserve, Filter: r.Filter, Value: seccomp.HandOver},
			launch.Step{Op: launch.OpSeccomp, Filter: r.Seal, Label: "no second hand-over"})
	}
	return append(steps,
		launch.Step{Op: launch.OpCloseFiles, Keep: slices.Sorted(maps.Keys(r.Spec.Files))},
		launch.Step{Op: launch.OpResetSignals},
		launch.Step{Op: launch.OpExec, Path: r.execPath(), Argv: r.argv(), Env: r.environ()})
}

const noIPv6 = "programs that do not use the proxy reach no IPv6 address: this kernel cannot redirect IPv6"

// redirect notes in a plan how programs get to hosts that do not use the proxy.
func (p *Plan) redirect(r *Request) {
	switch {
	case r.Redirect != nil:
		p.Mechanism = append(p.Mechanism, "redirect")
		if !r.Redirect.IPv6 {
			p.Weaker = append(p.Weaker, noIPv6)
		}
	case r.Routed != nil:
		p.Mechanism = append(p.Mechanism, "routes")
		p.Weaker = append(p.Weaker, r.Routed.weaker()...)
	case r.Unredirected != "":
		p.Weaker = append(p.Weaker, "programs that do not use the proxy reach no host: "+r.Unredirected)
	}
}

// observe notes in a plan whether an observer sees the command's calls.
func (p *Plan) observe(r *Request) {
	if r.Observe {
		p.Mechanism = append(p.Mechanism, "observer")
	} else if r.Unobserved != "" {
		p.Weaker = append(p.Weaker, "denials are not reported, and unix sockets are denied: "+r.Unobserved)
	}
}
