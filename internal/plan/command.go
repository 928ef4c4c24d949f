// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/internal/proxyenv"
	"github.com/sallyport-dev/sallyport/internal/seccomp"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Numbers of Linux.
const (
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
	return slices.Concat(terminal(r, multiplexer), []launch.Step{{Op: launch.OpStartCommand}}, r.Entry.Command, []launch.Step{{Op: launch.OpNewGroup}})
}

func terminal(r *Request, multiplexer string) []launch.Step {
	if r.Spec.TTY == nil {
		return nil
	}
	size, replaced := r.Spec.TTY.OrUsual(), 3
	if r.Spec.Stderr != nil {
		replaced = 2
	}
	return []launch.Step{{Op: launch.OpTerminal, Path: multiplexer, Cols: size.Cols, Rows: size.Rows, Stdio: replaced}}
}

// ProxyAddress is where commands with a managed network find the proxy, each in a network
// namespace of its own. Scripts and logs can rely on it.
var ProxyAddress = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 3128)

// privateNetwork returns what a network namespace gets before the command is in it: its loopback
// interface, and the socket that leads to the proxy where there is one.
func privateNetwork(network sandbox.Network) []launch.Step {
	switch network {
	case sandbox.NetworkHost:
		return nil
	case sandbox.NetworkProxy:
		return []launch.Step{{Op: launch.OpLoopback}, {Op: launch.OpListen, Path: ProxyAddress.String(), Label: "the proxy, which this process serves"}}
	}
	return []launch.Step{{Op: launch.OpLoopback}}
}

// environ returns the environment of the command.
func (r *Request) environ() []string {
	if r.network() == sandbox.NetworkProxy {
		return proxyenv.Set(r.Env, ProxyAddress)
	}
	return r.Env
}

// limited gives the command its standard descriptors and resource limits.
func limited(r *Request) []launch.Step {
	steps := []launch.Step{{Op: launch.OpStdio}}
	for _, l := range r.Limits {
		steps = append(steps, launch.Step{Op: launch.OpLimit, Resource: l.Resource, Soft: l.Soft, Hard: l.Hard})
	}
	return steps
}

// command returns the last steps of every command.
func command(r *Request) []launch.Step {
	steps := append(limited(r), launch.Step{Op: launch.OpChdir, Path: r.Spec.Dir})
	if r.Observe {
		// Last, because no supervisor answers the calls of this task itself; and only here,
		// because process 1 would have to ask, too.
		steps = append(steps, launch.Step{Op: launch.OpObserve, Filter: r.Filter, Value: seccomp.HandOver},
			launch.Step{Op: launch.OpSeccomp, Filter: r.Seal, Label: "no second hand-over"})
	}
	return append(steps,
		launch.Step{Op: launch.OpCloseFiles, Keep: slices.Sorted(maps.Keys(r.Spec.Files))},
		launch.Step{Op: launch.OpResetSignals},
		launch.Step{Op: launch.OpExec, Path: r.Program, Argv: r.argv(), Env: r.environ()})
}

// observe notes in a plan whether an observer sees the command's calls.
func (p *Plan) observe(r *Request) {
	if r.Observe {
		p.Mechanism = append(p.Mechanism, "observer")
	} else if r.Unobserved != "" {
		p.Weaker = append(p.Weaker, "denials are not seen, and unix sockets are refused: "+r.Unobserved)
	}
}
