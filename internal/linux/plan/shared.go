// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A shared sandbox is a set of namespaces in which several commands start, one after the other or
// at once: user, network, IPC and UTS. The script of [Holder] makes it. Each command has
// namespaces of its own for processes, mounts and control groups on top, and its own walls.
//
// What costs most of a command's mounts is the same for the next command with an equal policy.
// So the mount namespace of the first one is kept as it was before the command's own /proc came into
// it, and the next one begins with a copy. Everything that the host could have moved or removed
// meanwhile is looked at again: the planner plans from what exists now, a tree counts only if its
// steps are the same, identities included, and the launch proves that each mount is where it was
// planned. A mount goes with its directory when the host moves that, and is gone when the host
// removes it, in all namespaces.

// A Shared says what there is of a shared sandbox for one command.
type Shared struct {
	// Holding says that the descriptors that the holder has shared are available as the
	// trees of [launch.Files]. Without them each command has a /dev/shm of its own, and
	// makes all of its mounts.
	Holding bool
	// PIDs says that the command's processes are in the process namespace of the sandbox, where
	// all commands see and signal each other's. They must have equal policies.
	PIDs bool
	// Trees are those of earlier plans, whose namespaces are kept.
	Trees [][]launch.Step
}

// The trees that a holder shares, as [launch.OpTake] counts them.
const (
	sharedMemoryTree = 1 + iota
	maskTree
	// HolderTrees is how many there are.
	HolderTrees = maskTree
	procTree    = maskTree + 1 // which is not sent
)

// SharedNamespaces are those of a shared sandbox by their names in /proc/PID/ns, in the order in which
// they are entered, and in which the holder sends them before its trees.
func SharedNamespaces(network sandbox.Network, pids bool) []string {
	names := []string{"user", "ipc", "uts"}
	if pids {
		names = append(names, "pid")
	}
	if network != sandbox.NetworkHost {
		names = append(names, "net")
	}
	return names
}

// Inside returns the namespaces that a command in a shared sandbox has of its own.
func Inside(h *Host, pids bool) launch.Namespaces {
	if pids {
		return launch.NewMount | h.groupSpace()
	}
	return launch.NewPID | launch.NewMount | h.groupSpace()
}

// groupSpace returns the namespace of control groups that a command gets, or 0.
func (h *Host) groupSpace() launch.Namespaces {
	if h.GroupsV1 {
		return 0
	}
	return launch.NewCgroup
}

// Holder returns the script of the process that holds a shared sandbox. Of the request only the
// network counts. It sends first the namespaces, then the trees, to Files.Share, and the sockets of
// the network to Files.Listen.
func Holder(h *Host, r *Request) (*Plan, error) {
	if err := h.missing(); err != nil {
		return nil, err
	}
	p := &Plan{Level: LevelNative}
	p.Script.Namespaces = Namespaces(h, r.network())
	add := p.add
	add(r.Entry.Reaper...)
	add(First(h)...)
	add(launch.Step{Op: launch.OpMapUser, UID: h.UID, GID: h.GID})
	for _, name := range SharedNamespaces(r.network(), r.Shared.pids()) {
		add(launch.Step{Op: launch.OpShare, Path: "/proc/self/ns/" + name})
	}
	add(
		launch.Step{Op: launch.OpTmpfs, Tree: sharedMemoryTree, Mode: 0o1777,
			Label: "/dev/shm of all commands"},
		launch.Step{Op: launch.OpTmpfs, Tree: maskTree, Mode: 0, Label: "a mask"},
		launch.Step{Op: launch.OpMkfile, Tree: maskTree, Path: maskFile},
		launch.Step{Op: launch.OpSetTree, Tree: maskTree, Set: launch.AttrReadOnly},
		launch.Step{Op: launch.OpShare, Tree: sharedMemoryTree},
		launch.Step{Op: launch.OpShare, Tree: maskTree})
	if r.network() != sandbox.NetworkHost {
		ports := lowPorts("sys/net/")
		ports.Op, ports.Tree = launch.OpSetting, procTree
		add(launch.Step{Op: launch.OpProc, Tree: procTree}, ports)
	}
	add(privateNetwork(r)...)
	add(
		launch.Step{Op: launch.OpCaps, Label: "none left"},
		launch.Step{Op: launch.OpHold, Label: "until the sandbox is closed"})
	return p, nil
}

const maskFile = "nothing"

// trees reports whether the trees of the holder are available.
func (s *Shared) trees() bool { return s != nil && s.Holding }

// scopes returns what Landlock keeps apart from other commands. Abstract unix sockets of a shared
// sandbox are reached by all its commands: they belong to its network, which no other program is in.
// So are processes that are seen.
func (s *Shared) scopes(abi launch.LandlockABI, network sandbox.Network) uint64 {
	scopes := abi.Scopes()
	if s != nil && network != sandbox.NetworkHost {
		scopes &^= launch.LandlockScopeAbstractUnixSocket
	}
	if s.pids() {
		scopes &^= launch.LandlockScopeSignal
	}
	return scopes
}

func (s *Shared) pids() bool { return s != nil && s.PIDs }

// namespaces returns those that the script makes.
func (n *nativePlan) namespaces() launch.Namespaces {
	if n.req.Shared != nil {
		return Inside(n.host, n.req.Shared.PIDs)
	}
	return Namespaces(n.host, n.req.network())
}

// sharedMounts makes the mounts of a command in a shared sandbox: those of a tree that is known, or new
// ones, and then those that no other command has.
func (n *nativePlan) sharedMounts() {
	n.subreaper()
	before := len(n.plan.Script.Steps)
	keep := n.keepsTree()
	if keep {
		n.add(
			launch.Step{Op: launch.OpShare, Path: "/proc/self/ns/mnt",
				Label: "other commands begin with these mounts"})
	}
	shm, m := n.fill()
	if !keep {
		proc := n.makeProc()
		n.pivot(m)
		n.mounts = append(n.mounts, mount{at: "/dev/pts",
			tree: n.tree(launch.Step{Op: launch.OpDevpts}), own: true})
		n.attach(shm, m)
		n.reopen(true)
		n.proc(proc, m)
		return
	}
	n.attach(shm, m)
	p := n.plan
	p.Tree = slices.Clone(p.Script.Steps[before:])
	if i := slices.IndexFunc(n.req.Shared.Trees,
		func(t []launch.Step) bool { return launch.SameSteps(t, p.Tree) }); i >= 0 {
		p.Known = i + 1
		p.Script.Steps, n.trees = p.Script.Steps[:before], 0
		n.ownInside()
		n.expectMounts()
		n.reopen(true)
		return
	}
	n.add(launch.Step{Op: launch.OpPart, Label: "what follows is of this command alone"})
	n.ownInside()
	n.reopen(true)
}

// subreaper has the reaper find what its command leaves behind, where it is not process 1.
func (n *nativePlan) subreaper() {
	if n.req.Shared.pids() {
		n.add(launch.Step{Op: launch.OpSubreaper, Label: "find what the command leaves behind"})
	}
}

// ownInside makes the mounts that a command in a shared sandbox has for itself whatever its policy is.
func (n *nativePlan) ownInside() {
	pts := n.tree(launch.Step{Op: launch.OpDevpts})
	n.add(launch.Step{Op: launch.OpAttach, Tree: pts, Path: "/dev/pts", Own: true})
	proc := n.makeProc()
	for range n.host.ProcMasks {
		n.procMasks = append(n.procMasks,
			n.tree(launch.Step{Op: launch.OpTake, From: maskTree, Path: maskFile}))
	}
	n.proc(proc, masks{})
}

// FirstInside returns the steps that the script of a command begins with that finds its mounts
// in a shared sandbox, as [First] does for others.
func FirstInside(h *Host, spec *executor.Spec, pids bool) []launch.Step {
	n := &nativePlan{host: h, req: &Request{Spec: spec, Shared: &Shared{PIDs: pids}}, plan: &Plan{}}
	n.add(First(h)...)
	n.subreaper()
	if !pings(spec) { // else a setting follows, for which a file is opened for writing
		n.ownInside()
	}
	return n.plan.Script.Steps
}

// keepsTree reports whether the mounts can be those of other commands as well. Those of a policy
// whose root is denied have no process file system, without which the kernel gives no other one;
// and a descriptor that is opened through the tree before it is complete would be another one in a
// copy.
func (n *nativePlan) keepsTree() bool {
	// A stage is mounted no longer than a command of it runs.
	if !n.req.Shared.trees() || n.minimal() || len(n.otherDevices()) > 0 || len(n.req.Staged) > 0 {
		return false
	}
	return !slices.ContainsFunc(n.req.Stdio[:], func(s Stdio) bool {
		return s.Reopen != nil && !(s.Device && n.ownDevice(s.Reopen.Path))
	})
}

// expectMounts proves that all mounts of a known tree are still where they were made.
func (n *nativePlan) expectMounts() {
	for i := range n.mounts {
		if m := &n.mounts[i]; !m.own {
			n.add(launch.Step{Op: launch.OpExpectMount, Path: m.at, ID: n.mounted(m)})
		}
	}
}

// mounted returns what a mount shows; the zero ID where that is not a file of the host.
func (n *nativePlan) mounted(m *mount) launch.ID {
	if m.pin {
		return m.id
	}
	if m.overlay != 0 || m.cover != nil || m.mask {
		return launch.ID{}
	}
	if t := n.req.Tmp; t != nil && t.At == m.at {
		return t.Source.ID
	}
	if c, ok := n.req.Copies[m.at]; ok {
		return c.ID
	}
	if u := n.req.rule(m.at); u != nil {
		return u.ID
	}
	return launch.ID{}
}
