// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/seccomp"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// staging is where the file system in memory is mounted while it is filled. In the end the
// command's own /dev covers it.
const staging = "/dev"

// Namespaces returns those of a sandbox at the native level.
func Namespaces(h *Host, network sandbox.Network) launch.Namespaces {
	ns := launch.NewUser | launch.NewMount | launch.NewPID | launch.NewIPC | launch.NewUTS | h.groupSpace()
	if network != sandbox.NetworkHost {
		ns |= launch.NewNet
	}
	return ns
}

// First returns the steps that every script of the native level begins with, unless
// resource limits add others before them: those that a preforked task can perform. No
// later step needs what they give up.
func First(h *Host) []launch.Step {
	return []launch.Step{
		{Op: launch.OpDieWithParent, Label: "the tree ends with its front end"},
		{Op: launch.OpSecureBits, Value: secureBits},
		{Op: launch.OpDropBounding, Value: h.LastCap},
		{Op: launch.OpClearAmbient},
		{Op: launch.OpNoNewPrivs},
	}
}

// write writes the script for the layout.
func (n *nativePlan) write() {
	p, r := n.plan, n.req
	p.Mechanism = []string{"userns", "mountns", "pidns", "ipcns", "utsns", "landlock", "seccomp"}
	if n.host.groupSpace() != 0 {
		p.Mechanism = slices.Insert(p.Mechanism, 5, "cgroupns")
	}
	p.Script.Namespaces, p.Script.Enter = n.namespaces(), r.Shared != nil
	if r.network() != sandbox.NetworkHost {
		p.Mechanism = slices.Insert(p.Mechanism, 3, "netns")
	}
	if r.Trust != nil && len(r.trustPlaces()) == 0 {
		p.Weaker = append(p.Weaker,
			"programs do not trust the certificates of the proxy: the command sees no certificate file")
	}
	if r.Trust != nil && !r.showsStore() {
		p.Weaker = append(p.Weaker,
			"Java does not trust the certificates of the proxy: the command sees the host's "+runDir)
	}
	if r.network() == sandbox.NetworkProxy {
		p.Mechanism = append(p.Mechanism, "proxy")
		p.redirect(r)
	}
	const usual = 96 // steps of a sandbox without rules, about; a rule takes up to four
	p.Script.Steps = make([]launch.Step, 0, usual+4*len(r.Rules))
	n.add(r.Entry.Reaper...)
	n.add(First(n.host)...)
	if r.Shared != nil {
		n.sharedMounts()
		n.add(r.published()...)
	} else {
		n.add(launch.Step{Op: launch.OpMapUser, UID: n.host.UID, GID: n.host.GID})
		n.ownMounts()
		n.add(privateNetwork(r)...)
		n.add(r.published()...)
	}
	n.add(refuseSettings()...)
	// One capability is left until the reaper's program is executed: until then its task shares the
	// caller's memory, and the command, which has none, may not trace a task that has more.
	n.add(launch.Step{Op: launch.OpCaps, Value: capSetpcap,
		Label: "the least that keeps the command from tracing this task"})
	if !r.Observe { // else a supervisor has to answer some
		n.add(launch.Step{Op: launch.OpSeccomp, Filter: r.Filter})
	}
	n.add(start(r, ownMultiplexer)...)
	if !r.Shared.pids() {
		// else other commands see this task, which shares the caller's memory until its program is
		// executed
		n.add(launch.Step{Op: launch.OpCaps, Label: "none left"})
	}
	n.add(launch.Step{Op: launch.OpLandlock, Ruleset: n.ruleset()})
	n.add(command(r)...)
	p.observe(r)
}

// ownMounts makes the mounts of a command that shares nothing.
func (n *nativePlan) ownMounts() {
	shm, masks := n.fill()
	proc := n.makeProc()
	n.pivot(masks)
	n.mounts = append(n.mounts, mount{at: "/dev/pts",
		tree: n.tree(launch.Step{Op: launch.OpDevpts}), own: true})
	n.attach(shm, masks)
	n.reopen(true)
	n.proc(proc, masks)
}

// fill makes the trees of everything that is mounted, and makes the host's read-only.
func (n *nativePlan) fill() (shm int, m masks) {
	n.overlays()
	n.stagedOverlays()
	n.cloneWritable(false)
	n.cloneDevices()
	n.mountDevices()
	n.add(launch.Step{Op: launch.OpSetMount, Path: "/", Recursive: true, Private: true,
		Set: launch.AttrReadOnly | launch.AttrNoSuid | launch.AttrNoDev, Label: "the host's tree, read-only"})
	for _, d := range n.otherDevices() {
		n.add(launch.Step{Op: launch.OpSetMount, Path: d.Path, Clear: launch.AttrNoDev})
	}
	n.reopen(false)
	n.attachStaged()
	n.cloneReadable()
	return n.stage()
}

// cloneWritable copies the mounts that stay writable, before the tree is made read-only.
// The copies are private: what the host mounts later does not appear in them. With staged those
// of the stage are copied, else all others.
func (n *nativePlan) cloneWritable(staged bool) {
	for _, r := range n.req.Rules {
		if r.Level != sandbox.LevelWrite || n.req.staged(r.Path) != staged {
			continue
		}
		if m := n.mountAt(r.Path, true); m != nil {
			n.add(
				launch.Step{Op: launch.OpClone, Tree: m.tree, Path: r.Path, ID: n.req.id(r.Spot),
					Recursive: true, Label: "writable"},
				launch.Step{Op: launch.OpSetTree, Tree: m.tree, Recursive: true, Private: true,
					Set: launch.AttrNoSuid | launch.AttrNoDev})
		}
	}
	if t := n.req.Tmp; t != nil && n.req.staged(t.Source.Path) == staged {
		tree := n.tree(launch.Step{Op: launch.OpClone, Path: t.Source.Path, ID: n.req.id(t.Source),
			Label: "private " + t.At})
		n.add(launch.Step{Op: launch.OpSetTree, Tree: tree, Private: true,
			Set: launch.AttrNoSuid | launch.AttrNoDev})
		n.mounts = append(n.mounts, mount{at: t.At, tree: tree, why: "private"})
	}
}

// mountAt returns the first mount at a path, with tree the first that shows the host's
// files there, or nil.
func (n *nativePlan) mountAt(name string, tree bool) *mount {
	for i := range n.mounts {
		if n.mounts[i].at == name && (!tree || n.mounts[i].tree != 0) {
			return &n.mounts[i]
		}
	}
	return nil
}

// cloneDevices copies the device files. Read-only comes first: without it the real root
// could change the mode of the host's /dev/null. Writes to the device still pass.
func (n *nativePlan) cloneDevices() {
	n.add(launch.Step{Op: launch.OpSetMount, Path: "/dev", Recursive: true, Private: true,
		Set: launch.AttrReadOnly | launch.AttrNoSuid | launch.AttrNoExec})
	for _, d := range n.devices {
		n.mounts = append(n.mounts, mount{at: "/dev/" + d,
			tree: n.tree(launch.Step{Op: launch.OpClone, Path: "/dev/" + d}), own: true})
	}
}

// mountDevices gives every device among the standard descriptors that the command's /dev
// will not have, such as a terminal, a mount of its own. The tree that is read-only has
// nodev, so this comes before.
func (n *nativePlan) mountDevices() {
	for _, d := range n.otherDevices() {
		tree := n.tree(launch.Step{Op: launch.OpClone, Path: d.Path, ID: d.ID})
		n.add(
			launch.Step{Op: launch.OpSetTree, Tree: tree,
				Set: launch.AttrReadOnly | launch.AttrNoSuid | launch.AttrNoExec},
			launch.Step{Op: launch.OpAttach, Tree: tree, Path: d.Path, ID: d.ID,
				Label: "a device that is a standard descriptor"})
	}
}

// otherDevices returns these devices, each once.
func (n *nativePlan) otherDevices() []*Reopen {
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
func (n *nativePlan) ownDevice(name string) bool {
	below, ok := strings.CutPrefix(name, "/dev/")
	return ok && slices.Contains(n.devices, below)
}

// reopen opens standard descriptors again: terminals and files through the tree that is
// read-only; own, the devices of the command's own /dev, and directories. From a directory
// every name below and above it can be reached, so it must be in the tree that has all masks
// and covers, not in the one under them.
func (n *nativePlan) reopen(own bool) {
	for i, s := range n.req.Stdio {
		if r := s.Reopen; r != nil && own == (s.Directory || s.Device && n.ownDevice(r.Path)) {
			id := r.ID
			if own {
				id = n.req.id(r.Spot)
			}
			n.add(launch.Step{Op: launch.OpReopen, Stdio: i + 1, Path: r.Path, ID: id, Value: r.Flags,
				Offset: r.Offset,
				Label:  "a mode or time that changes through it would change outside"})
		}
	}
}

// cloneReadable copies what is readable below a directory that is denied or writable.
// The copies are read-only like the tree they come from.
func (n *nativePlan) cloneReadable() {
	shown := 0
	for _, r := range n.req.Rules {
		if n.req.isTmp(r.Path) {
			continue // the private directory stands there
		}
		if m := n.mountAt(r.Path, true); m != nil && r.Level == sandbox.LevelRead {
			if c, ok := n.req.Copies[r.Path]; ok {
				n.add(launch.Step{Op: launch.OpClone, Tree: m.tree, Path: c.Path, ID: c.ID, Label: r.Why})
				shown++
				continue
			}
			n.add(launch.Step{Op: launch.OpClone, Tree: m.tree, Path: r.Path, ID: n.req.id(r.Spot),
				Recursive: true, Label: r.Why})
		}
	}
	if shown < len(n.req.Copies) { // the file itself would be seen
		n.fail("copies of files with credentials", "nothing can be mounted in the place of one",
			"use files outside /proc, /sys and /dev")
	}
	for _, s := range n.shown {
		tree := n.tree(launch.Step{Op: launch.OpClone, Path: s.Path, ID: s.ID, Recursive: true})
		n.mounts = append(n.mounts, mount{at: s.Path, tree: tree, own: true})
		n.point(s)
	}
	for _, s := range n.req.trustPlaces() {
		tree := n.tree(launch.Step{Op: launch.OpClone, Path: n.req.Trust.Bundle.Path,
			ID: n.req.Trust.Bundle.ID})
		n.mounts = append(n.mounts, mount{at: s.Path, tree: tree, id: n.req.id(s),
			why: "certificates, with the authority of the proxy"})
	}
	if n.req.showsStore() {
		tree := n.tree(launch.Step{Op: launch.OpClone, Path: n.req.Trust.Store.Path,
			ID: n.req.Trust.Store.ID})
		n.mounts = append(n.mounts, mount{at: storePlace, tree: tree, own: true, why: "the same for Java"})
		n.point(Spot{Path: storePlace, Kind: KindFile})
	}
}

// masks are the opened directory and file that masks are copied from.
type masks struct{ dir, file int }

// stage fills the file system in memory and copies from it what is mounted elsewhere. It
// returns the tree for /dev/shm and the masks.
func (n *nativePlan) stage() (shm int, m masks) {
	base := n.tree(launch.Step{Op: launch.OpTmpfs, Mode: 0o755, Label: "our own directories"})
	n.add(launch.Step{Op: launch.OpAttach, Tree: base, Path: staging})
	shared := n.sharedMemory()
	for _, c := range n.covers {
		n.coverDirs(c)
	}
	made := map[string]bool{}
	for _, d := range n.devices {
		n.dirsAbove(&cover{name: "dev"}, d, made)
		n.mkfile("dev/"+d, 0o666)
	}
	n.mkdir("dev/pts", 0o755)
	n.mkdir("dev/shm", 0o755)
	for _, l := range [][2]string{
		{"ptmx", "pts/ptmx"}, {"fd", "/proc/self/fd"}, {"stdin", "/proc/self/fd/0"},
		{"stdout", "/proc/self/fd/1"}, {"stderr", "/proc/self/fd/2"},
	} {
		n.add(launch.Step{Op: launch.OpSymlink, Path: staging + "/dev/" + l[0], Dest: l[1]})
	}
	n.coverDirs(shared)
	n.add(launch.Step{Op: launch.OpChmod, Path: staging + "/shm", Mode: 0o1777, Label: "whatever the umask"})
	n.mkdir("none", 0)
	n.mkfile("nothing", 0)
	if n.req.Shared.trees() && len(shared.points) == 0 { // else something of the policy is in it
		shm = n.tree(launch.Step{Op: launch.OpTake, From: sharedMemoryTree,
			Label: "commands of this sandbox share it"})
	} else {
		shm = n.tree(launch.Step{Op: launch.OpClone, Path: staging + "/shm", Own: true})
	}
	n.add(launch.Step{Op: launch.OpSetMount, Path: staging, Set: launch.AttrReadOnly,
		Label: "our own directories, full"})
	for _, c := range n.covers {
		c.tree = n.tree(launch.Step{Op: launch.OpClone, Path: staging + "/" + c.name, Own: true})
	}
	m.dir = n.tree(launch.Step{Op: launch.OpOpen, Path: staging + "/none"})
	m.file = n.tree(launch.Step{Op: launch.OpOpen, Path: staging + "/nothing"})
	return shm, m
}

// mkdir makes a directory in the file system in memory.
func (n *nativePlan) mkdir(name string, mode uint32) {
	n.add(launch.Step{Op: launch.OpMkdir, Path: staging + "/" + name, Mode: mode})
}

// mkfile makes an empty file there.
func (n *nativePlan) mkfile(name string, mode uint32) {
	n.add(launch.Step{Op: launch.OpMkfile, Path: staging + "/" + name, Mode: mode})
}

// sharedMemory takes the mount points that are in /dev/shm from /dev: another directory
// of ours covers them there.
func (n *nativePlan) sharedMemory() *cover {
	shm := &cover{at: "/dev/shm", name: "shm", mode: 0o755}
	for _, c := range n.covers {
		if c.at != "/dev" {
			continue
		}
		c.points = slices.DeleteFunc(c.points, func(p Point) bool {
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

// coverDirs makes the directory of a cover, with the mount points and links in it.
func (n *nativePlan) coverDirs(c *cover) {
	n.mkdir(c.name, 0o755)
	made := map[string]bool{}
	for _, p := range c.points {
		name := below(p.Path, c.at)
		n.dirsAbove(c, name, made)
		if made[name] {
			continue
		}
		made[name] = true
		if p.Dir {
			n.mkdir(path.Join(c.name, name), 0o755)
		} else {
			n.mkfile(path.Join(c.name, name), 0o444)
		}
	}
	linked := map[string]bool{}
	for _, l := range c.links {
		name := below(l.Path, c.at)
		n.dirsAbove(c, name, made)
		if !linked[name] && !made[name] {
			linked[name] = true
			n.add(launch.Step{Op: launch.OpSymlink, Path: staging + "/" + path.Join(c.name, name),
				Dest: l.Dest})
		}
	}
	if c.mode == 0o755 && c.at != "/" {
		return
	}
	n.add(launch.Step{Op: launch.OpChmod, Path: staging + "/" + c.name, Mode: c.mode})
	for _, name := range slices.Sorted(maps.Keys(made)) {
		if c.at == "/" && slices.ContainsFunc(c.points, func(p Point) bool { return p.Path == "/"+name }) {
			continue // something else is mounted there
		}
		n.add(launch.Step{Op: launch.OpChmod, Path: staging + "/" + path.Join(c.name, name), Mode: c.mode})
	}
}

// dirsAbove makes the directories of a cover in which a name is, as far as they are not
// made yet.
func (n *nativePlan) dirsAbove(c *cover, name string, made map[string]bool) {
	for i, char := range name {
		if up := name[:i]; char == '/' && !made[up] {
			made[up] = true
			mode := uint32(0o755)
			if c.at == "/run" && strings.HasPrefix(up, "user/") {
				mode = 0o700 // programs trust no other directories of a user's services
			}
			n.mkdir(path.Join(c.name, up), mode)
		}
	}
}

// below returns the part of a path that follows a directory above it.
func below(name, dir string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, dir), "/")
}

// attach mounts everything in its place, directories before what is in them.
func (n *nativePlan) attach(shm int, m masks) {
	if n.mountAt("/dev/shm", false) == nil { // else the policy gives the host's
		n.mounts = append(n.mounts, mount{at: "/dev/shm", tree: shm, own: true})
	}
	slices.SortStableFunc(n.mounts, func(a, b mount) int { return strings.Compare(a.at, b.at) })
	for _, o := range n.mounts {
		switch {
		case o.cover != nil:
			n.add(launch.Step{Op: launch.OpAttach, Tree: o.cover.tree, Path: o.at, ID: o.id, Label: o.why})
		case o.mask:
			if o.tree == 0 {
				o.tree = n.copyMask(m, o.dir, o.why)
			}
			n.add(launch.Step{Op: launch.OpAttach, Tree: o.tree, Path: o.at, ID: o.id, Own: o.own,
				Label: "mask"})
		case o.pin:
			n.add(launch.Step{Op: launch.OpPin, Path: o.at, ID: o.id, Label: o.why})
		default:
			n.add(launch.Step{Op: launch.OpAttach, Tree: o.tree, Path: o.at, ID: o.id,
				Label: o.why, Own: o.own})
		}
	}
}

// copyMask copies the mask for a directory or a file.
func (n *nativePlan) copyMask(m masks, dir bool, why string) int {
	from := m.file
	if dir {
		from = m.dir
	}
	return n.tree(launch.Step{Op: launch.OpClone, From: from, Label: why})
}

// makeProc makes the /proc of the new process namespace, read-only. A network namespace
// begins with ping sockets for no group at all; where they are allowed, the command's only
// group gets them.
func (n *nativePlan) makeProc() int {
	visible := uint64(0)
	if n.req.Shared.pids() {
		visible = 1
	}
	settings := n.watchSettings()
	if n.req.Shared == nil && n.req.network() != sandbox.NetworkHost {
		settings = append(settings, lowPorts("sys/net/"))
	}
	if pings(n.req.Spec) {
		settings = append(settings, launch.Step{Path: "sys/net/ipv4/ping_group_range",
			Data:  fmt.Appendf(nil, "%d %d", n.host.GID, n.host.GID),
			Label: "ping sockets, of both kinds of addresses"})
	}
	if len(settings) == 0 {
		return n.tree(launch.Step{Op: launch.OpProc, Set: launch.AttrReadOnly, Value: visible})
	}
	tree := n.tree(launch.Step{Op: launch.OpProc, Value: visible})
	for _, s := range settings {
		s.Op, s.Tree = launch.OpSetting, tree
		n.add(s)
	}
	n.add(launch.Step{Op: launch.OpSetTree, Tree: tree, Set: launch.AttrReadOnly})
	return tree
}

// watchSettings leave others of this user a part of what inotify(7) may take, sallyport's own
// watch over protected names among them: what a user namespace uses counts for its maker, too.
// Instances are few and a program needs one or two; a watch is of one file.
func (n *nativePlan) watchSettings() []launch.Step {
	if n.req.Shared != nil {
		return nil // the namespace is not this command's
	}
	var out []launch.Step
	for _, l := range []struct {
		name string
		part func(all int) int
	}{
		{"max_inotify_instances", func(all int) int { return all / 4 }},
		{"max_inotify_watches", func(all int) int { return all / 4 * 3 }},
	} {
		if all := n.host.Watch[l.name]; all > 0 {
			out = append(out, launch.Step{Path: "sys/user/" + l.name,
				Data: fmt.Append(nil, max(l.part(all), 1)), Label: "the rest is for watches outside"})
		}
	}
	return out
}

// lowPorts lets everyone listen at ports below 1024 of a network namespace of its own, where that
// gives nothing away: no other machine, and no program outside, reaches them.
func lowPorts(net string) launch.Step {
	return launch.Step{Path: net + "ipv4/ip_unprivileged_port_start", Data: []byte("0"),
		Label: "ports below 1024, in a network of its own"}
}

// pings reports whether a command gets ping sockets in a network namespace of its own.
func pings(spec *executor.Spec) bool {
	return slices.Contains(spec.Allow, seccomp.OpenICMP) && spec.Policy.Network() != sandbox.NetworkHost
}

// proc mounts the /proc of the new process namespace. It is read-only while the copies
// that cover its settings are taken, so that they are, too.
func (n *nativePlan) proc(tree int, m masks) {
	n.add(launch.Step{Op: launch.OpAttach, Tree: tree, Path: "/proc"})
	covers := make([]int, len(n.host.ProcCovers))
	for i, c := range n.host.ProcCovers {
		covers[i] = n.tree(launch.Step{Op: launch.OpClone, Path: "/proc/" + c, Own: true})
	}
	for i, c := range n.host.ProcCovers {
		n.add(launch.Step{Op: launch.OpAttach, Tree: covers[i], Path: "/proc/" + c, Own: true,
			Label: "read-only"})
	}
	for i, c := range n.host.ProcMasks {
		if len(n.procMasks) == i {
			n.procMasks = append(n.procMasks, n.copyMask(m, false, ""))
		}
		n.add(launch.Step{Op: launch.OpAttach, Tree: n.procMasks[i], Path: "/proc/" + c, Own: true,
			Label: "mask"})
	}
	n.add(launch.Step{Op: launch.OpSetMount, Path: "/proc", Clear: launch.AttrReadOnly,
		Label: "processes may write to their own entries"})
}
