// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// staging is where the file system in memory stands while it is filled. The
// command's own /dev covers it in the end.
const staging = "/dev"

// Namespaces are those of a sandbox at the native level.
func Namespaces(network sandbox.Network) launch.Namespaces {
	ns := launch.NewUser | launch.NewMount | launch.NewPID | launch.NewIPC | launch.NewUTS | launch.NewCgroup
	if network == sandbox.NetworkNone {
		ns |= launch.NewNet
	}
	return ns
}

// First are the steps that every script of the native level begins with: those that a
// head start can perform. No later step needs what they give up.
func First(h *Host) []launch.Step {
	return []launch.Step{
		{Op: launch.OpDieWithParent, Signal: sigKill, Label: "the tree ends with its front end"},
		{Op: launch.OpSecureBits, Value: secureBits},
		{Op: launch.OpDropBounding, Value: h.LastCap},
		{Op: launch.OpClearAmbient},
		{Op: launch.OpNoNewPrivs},
	}
}

// write lays down the script for the layout.
func (n *native) write() {
	p := n.plan
	p.Mechanism = []string{"userns", "mountns", "pidns", "ipcns", "utsns", "cgroupns", "landlock", "seccomp"}
	p.Script.Namespaces = Namespaces(n.req.network())
	if n.req.network() == sandbox.NetworkNone {
		p.Mechanism = slices.Insert(p.Mechanism, 3, "netns")
	}
	const usual = 96 // steps of a sandbox without rules, about; a rule takes up to four
	p.Script.Steps = make([]launch.Step, 0, usual+4*len(n.req.Rules))
	n.add(First(n.host)...)
	n.add(launch.Step{Op: launch.OpMapUser, UID: n.host.UID, GID: n.host.GID})
	n.overlays()
	n.cloneWritable()
	devices := n.cloneDevices()
	n.reopenFirst()
	n.add(launch.Step{Op: launch.OpSetMount, Path: "/", Recursive: true, Private: true,
		Set: launch.AttrReadOnly | launch.AttrNoSuid | launch.AttrNoDev, Label: "the host's tree, read-only"})
	n.reopenSealed()
	n.cloneReadable()
	shm, masks := n.stage()
	n.enter(masks)
	n.attach(devices, shm, masks)
	n.reopenOwn()
	n.proc(masks)
	if n.req.network() == sandbox.NetworkNone {
		n.add(launch.Step{Op: launch.OpLoopback})
	}
	n.add(
		launch.Step{Op: launch.OpRefuseWrite, Path: "/proc/sys/kernel/core_pattern", Label: "proof that kernel settings are read-only"},
		launch.Step{Op: launch.OpRefuseWrite, Path: "/proc/sysrq-trigger"},
		// One capability stays until the reaper's program is executed: until
		// then this task shares the caller's memory, and the command, which has
		// none, may not trace a task that has more.
		launch.Step{Op: launch.OpCaps, Value: capSetpcap, Label: "the least that keeps the command from tracing this task"})
	if !n.req.Observe {
		n.add(launch.Step{Op: launch.OpSeccomp, Filter: n.req.Filter})
	}
	n.add(launch.Step{Op: launch.OpStartCommand})
	n.add(command(n.req, n.ruleset())...)
	n.plan.watched(n.req)
}

// cloneWritable copies the mounts that stay writable, before the tree is made
// read-only. The copies are private: in one that still followed the host, what
// the host mounts there later would appear as the host mounts it.
func (n *native) cloneWritable() {
	for _, r := range n.req.Rules {
		if r.Level != sandbox.LevelWrite {
			continue
		}
		if m := n.mountAt(r.Path, true); m != nil {
			n.add(
				launch.Step{Op: launch.OpClone, Tree: m.tree, Path: r.Path, ID: r.ID, Recursive: true, Label: "writable"},
				launch.Step{Op: launch.OpSetTree, Tree: m.tree, Recursive: true, Private: true, Set: launch.AttrNoSuid | launch.AttrNoDev})
		}
	}
	if t := n.req.Tmp; t != nil {
		tree := n.newTree()
		n.add(
			launch.Step{Op: launch.OpClone, Tree: tree, Path: t.Source.Path, ID: t.Source.ID, Label: "private " + t.At},
			launch.Step{Op: launch.OpSetTree, Tree: tree, Private: true, Set: launch.AttrNoSuid | launch.AttrNoDev})
		n.mounts = append(n.mounts, mount{at: t.At, tree: tree, why: "private"})
	}
}

// mountAt is the first mount at a path, or with tree the first that shows the
// host's files there, or nil.
func (n *native) mountAt(name string, tree bool) *mount {
	for i := range n.mounts {
		if n.mounts[i].at == name && (!tree || n.mounts[i].tree != 0) {
			return &n.mounts[i]
		}
	}
	return nil
}

// cloneDevices copies the device files. Read-only comes first: without it the
// real root could change the mode of the host's /dev/null. It does not keep
// anybody from writing to the device.
func (n *native) cloneDevices() map[string]int {
	n.add(launch.Step{Op: launch.OpSetMount, Path: "/dev", Recursive: true, Private: true,
		Set: launch.AttrReadOnly | launch.AttrNoSuid | launch.AttrNoExec})
	devices := make(map[string]int)
	for _, d := range n.devices {
		devices[d] = n.newTree()
		n.add(launch.Step{Op: launch.OpClone, Tree: devices[d], Path: "/dev/" + d})
	}
	return devices
}

// reopenFirst gives every device among the standard descriptors that the
// command's /dev will not have, such as a terminal, a mount of its own. It does
// so before the tree is made read-only, because what comes after that has nodev.
func (n *native) reopenFirst() {
	for _, r := range n.otherDevices() {
		tree := n.newTree()
		n.add(
			launch.Step{Op: launch.OpClone, Tree: tree, Path: r.Path, ID: r.ID},
			launch.Step{Op: launch.OpSetTree, Tree: tree, Set: launch.AttrReadOnly | launch.AttrNoSuid | launch.AttrNoExec},
			launch.Step{Op: launch.OpAttach, Tree: tree, Path: r.Path, ID: r.ID, Label: "a device that is a standard descriptor"})
	}
}

// otherDevices are those devices, each once.
func (n *native) otherDevices() []*Reopen {
	var out []*Reopen
	for _, s := range n.req.Stdio {
		if s.Reopen == nil || !s.Device || n.ownDevice(s.Reopen.Path) {
			continue
		}
		if !slices.ContainsFunc(out, func(o *Reopen) bool { return o.Path == s.Reopen.Path }) {
			out = append(out, s.Reopen)
		}
	}
	return out
}

// ownDevice reports whether the command's own /dev has a device.
func (n *native) ownDevice(name string) bool {
	below, ok := strings.CutPrefix(name, "/dev/")
	return ok && slices.Contains(n.devices, below)
}

// reopenSealed opens terminals and files anew through the tree that is
// now read-only.
func (n *native) reopenSealed() {
	for _, r := range n.otherDevices() {
		n.add(launch.Step{Op: launch.OpSetMount, Path: r.Path, Clear: launch.AttrNoDev})
	}
	for i, s := range n.req.Stdio {
		if s.Reopen != nil && !s.Folder && !(s.Device && n.ownDevice(s.Reopen.Path)) {
			n.reopen(i, s.Reopen)
		}
	}
}

// reopenOwn opens the devices of the command's own /dev anew, and folders: from a
// folder every name below and above it can be reached, so it must lie in the tree
// that has all masks and covers, not in the one under them.
func (n *native) reopenOwn() {
	for i, s := range n.req.Stdio {
		if s.Reopen != nil && (s.Folder || s.Device && n.ownDevice(s.Reopen.Path)) {
			n.reopen(i, s.Reopen)
		}
	}
}

func (n *native) reopen(i int, r *Reopen) {
	n.add(launch.Step{Op: launch.OpReopen, Stdio: i + 1, Path: r.Path, ID: r.ID, Value: r.Flags, Offset: r.Offset,
		Label: "a mode or time that changes through it would change outside"})
}

// cloneReadable copies what is readable below something that is not, or not
// only, readable. The copies are read-only like the tree they come from.
func (n *native) cloneReadable() {
	for _, r := range n.req.Rules {
		if t := n.req.Tmp; t != nil && r.Path == t.At {
			continue // the private folder stands there, and nobody needs the host's
		}
		if m := n.mountAt(r.Path, true); m != nil && r.Level == sandbox.LevelRead {
			n.add(launch.Step{Op: launch.OpClone, Tree: m.tree, Path: r.Path, ID: r.ID, Recursive: true, Label: r.Why})
		}
	}
	for _, s := range n.shown {
		tree := n.newTree()
		n.add(launch.Step{Op: launch.OpClone, Tree: tree, Path: s.Path, ID: s.ID, Recursive: true})
		n.mounts = append(n.mounts, mount{at: s.Path, tree: tree, own: true})
		n.point(s)
	}
}

// The places that masks are copied from.
type masks struct{ folder, file int }

// stage fills the file system in memory and copies from it what will stand
// elsewhere. It returns the tree for /dev/shm and the masks.
func (n *native) stage() (shm int, m masks) {
	base := n.newTree()
	n.add(
		launch.Step{Op: launch.OpTmpfs, Tree: base, Mode: 0o755, Label: "our own folders"},
		launch.Step{Op: launch.OpAttach, Tree: base, Path: staging})
	mkdir := func(name string, mode uint32) {
		n.add(launch.Step{Op: launch.OpMkdir, Path: staging + "/" + name, Mode: mode})
	}
	mkfile := func(name string, mode uint32) {
		n.add(launch.Step{Op: launch.OpMkfile, Path: staging + "/" + name, Mode: mode})
	}
	shared := n.sharedMemory()
	for _, s := range n.shells {
		n.shellFolders(s, mkdir, mkfile)
	}
	for _, d := range n.devices {
		mkfile("dev/"+d, 0o666)
	}
	mkdir("dev/pts", 0o755)
	mkdir("dev/shm", 0o755)
	for _, l := range [][2]string{
		{"ptmx", "pts/ptmx"}, {"fd", "/proc/self/fd"}, {"stdin", "/proc/self/fd/0"},
		{"stdout", "/proc/self/fd/1"}, {"stderr", "/proc/self/fd/2"},
	} {
		n.add(launch.Step{Op: launch.OpSymlink, Path: staging + "/dev/" + l[0], Dest: l[1]})
	}
	n.shellFolders(shared, mkdir, mkfile)
	n.add(launch.Step{Op: launch.OpChmod, Path: staging + "/shm", Mode: 0o1777, Label: "whatever the umask"})
	mkdir("none", 0)
	mkfile("nothing", 0)
	shm = n.newTree()
	n.add(
		launch.Step{Op: launch.OpClone, Tree: shm, Path: staging + "/shm", Own: true},
		launch.Step{Op: launch.OpSetMount, Path: staging, Set: launch.AttrReadOnly, Label: "our own folders, full"})
	for _, s := range n.shells {
		s.tree = n.newTree()
		n.add(launch.Step{Op: launch.OpClone, Tree: s.tree, Path: staging + "/" + s.name, Own: true})
	}
	m = masks{folder: n.newTree(), file: n.newTree()}
	n.add(
		launch.Step{Op: launch.OpOpen, Tree: m.folder, Path: staging + "/none"},
		launch.Step{Op: launch.OpOpen, Tree: m.file, Path: staging + "/nothing"})
	return shm, m
}

// sharedMemory takes the mount points that lie in /dev/shm from /dev: another
// folder of ours stands over them there.
func (n *native) sharedMemory() *shell {
	shm := &shell{at: "/dev/shm", name: "shm", mode: 0o755}
	for _, s := range n.shells {
		if s.at != "/dev" {
			continue
		}
		s.points = slices.DeleteFunc(s.points, func(p Point) bool {
			if !within(p.Path, shm.at) {
				return false
			}
			if p.Path != shm.at {
				shm.points = append(shm.points, p)
			}
			return true
		})
	}
	return shm
}

// shellFolders makes the folder of a shell and the mount points in it.
func (n *native) shellFolders(s *shell, mkdir, mkfile func(string, uint32)) {
	mkdir(s.name, 0o755)
	made := map[string]bool{}
	for _, p := range s.points {
		parts := strings.Split(below(p.Path, s.at), "/")
		for i := range parts {
			name := strings.Join(parts[:i+1], "/")
			if made[name] {
				continue
			}
			made[name] = true
			if i == len(parts)-1 && !p.Folder {
				mkfile(path.Join(s.name, name), 0o444)
				continue
			}
			mkdir(path.Join(s.name, name), 0o755)
		}
	}
	n.shellLinks(s, made, mkdir)
	if s.mode == 0o755 && s.at != "/" {
		return
	}
	n.add(launch.Step{Op: launch.OpChmod, Path: staging + "/" + s.name, Mode: s.mode})
	for name := range sorted(made) {
		if s.at == "/" && slices.ContainsFunc(s.points, func(p Point) bool { return p.Path == "/"+name }) {
			continue // something else stands there
		}
		n.add(launch.Step{Op: launch.OpChmod, Path: staging + "/" + path.Join(s.name, name), Mode: s.mode})
	}
}

// sorted yields the keys of a set in order, so that scripts are the same each time.
func sorted(set map[string]bool) func(func(string) bool) {
	keys := make([]string, 0, len(set))
	for k := range set {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return func(yield func(string) bool) {
		for _, k := range keys {
			if !yield(k) {
				return
			}
		}
	}
}

// attach puts everything in its place, folders before what is in them.
func (n *native) attach(devices map[string]int, shm int, m masks) {
	for _, d := range n.devices {
		n.mounts = append(n.mounts, mount{at: "/dev/" + d, tree: devices[d], own: true})
	}
	pts := n.newTree()
	n.add(launch.Step{Op: launch.OpDevpts, Tree: pts})
	n.mounts = append(n.mounts, mount{at: "/dev/pts", tree: pts, own: true})
	if n.mountAt("/dev/shm", false) == nil { // else the policy gives the host's
		n.mounts = append(n.mounts, mount{at: "/dev/shm", tree: shm, own: true})
	}
	slices.SortStableFunc(n.mounts, func(a, b mount) int { return strings.Compare(a.at, b.at) })
	for _, o := range n.mounts {
		switch {
		case o.shell != nil:
			n.add(launch.Step{Op: launch.OpAttach, Tree: o.shell.tree, Path: o.at, ID: o.id, Label: o.why})
		case o.mask:
			n.mask(o, m)
		case o.pin:
			n.add(launch.Step{Op: launch.OpPin, Path: o.at, ID: o.id, Label: o.why})
		default:
			n.add(launch.Step{Op: launch.OpAttach, Tree: o.tree, Path: o.at, ID: o.id, Label: o.why, Own: o.own})
		}
	}
}

// mask puts the empty folder or file that nobody can open over a path.
func (n *native) mask(o mount, m masks) {
	from := m.file
	if o.dir {
		from = m.folder
	}
	tree := n.spareMask(o.dir)
	if tree == 0 {
		tree = n.newTree()
		n.add(launch.Step{Op: launch.OpClone, Tree: tree, From: from, Label: o.why})
	}
	n.add(
		launch.Step{Op: launch.OpAttach, Tree: tree, Path: o.at, ID: o.id, Own: o.own, Label: "mask"})
}

// proc mounts a fresh /proc for the new process namespace. It is read-only
// while the copies that cover its settings are taken, so they are too.
func (n *native) proc(m masks) {
	tree := n.procTree
	if tree == 0 {
		tree = n.newTree()
		n.add(launch.Step{Op: launch.OpProc, Tree: tree, Set: launch.AttrReadOnly})
	}
	n.add(launch.Step{Op: launch.OpAttach, Tree: tree, Path: "/proc"})
	covers := make([]int, len(n.host.ProcCovers))
	for i, c := range n.host.ProcCovers {
		covers[i] = n.newTree()
		n.add(launch.Step{Op: launch.OpClone, Tree: covers[i], Path: "/proc/" + c, Own: true})
	}
	for i, c := range n.host.ProcCovers {
		n.add(launch.Step{Op: launch.OpAttach, Tree: covers[i], Path: "/proc/" + c, Own: true, Label: "read-only"})
	}
	for _, c := range n.host.ProcMasks {
		n.mask(mount{at: "/proc/" + c, own: true}, m)
	}
	n.add(launch.Step{Op: launch.OpSetMount, Path: "/proc", Clear: launch.AttrReadOnly, Label: "processes may write to their own entries"})
}
