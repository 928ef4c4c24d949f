// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/landlock"
	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/internal/seccomp"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Signals and numbers of Linux that amd64 and arm64 share.
const (
	sigKill = 9
	sigUsr2 = 12 // the reaper takes it for "the supervisor is gone"

	// secureBits: no rights by being user 0, no rights kept over a change of
	// user, no ambient set, and all of that locked (linux/securebits.h).
	secureBits = 0xef
	capSetpcap = 1 << 8
)

// Make plans one command. It returns a *sandbox.UnsupportedError when the host
// cannot enforce the policy.
func Make(h *Host, r *Request) (*Plan, error) {
	p, err := makePlan(h, r)
	if err != nil {
		return nil, err
	}
	steps := p.Script.Steps
	if i := slices.IndexFunc(steps, func(s launch.Step) bool { return s.Op == launch.OpStartCommand }); i >= 0 {
		p.Script.Steps = slices.Concat(r.Entry.Reaper, steps[:i+1], r.Entry.Command, steps[i+1:])
	}
	return p, nil
}

func makePlan(h *Host, r *Request) (*Plan, error) {
	switch h.System {
	case "linux":
	case "darwin":
		return planSeatbelt(h, r)
	case "windows":
		return planWindows(r)
	default:
		if r.unconfined() {
			return &Plan{Level: LevelNone, Mechanism: []string{"process-group"}, Weaker: []string{groupOnly}, Exec: direct(r)}, nil
		}
		return nil, &sandbox.UnsupportedError{
			Need: "Linux", Have: "this is " + h.System,
			Hint: "run it with full access, or on a Linux machine",
		}
	}
	switch {
	case r.unconfined():
		return unconfined(r), nil
	case r.Spec.Policy.Mode() != sandbox.Managed:
		return nil, &sandbox.UnsupportedError{
			Need: "a network of its own for a command that is confined elsewhere", Have: "this version confines files and network together",
			Hint: "use the host's network, or a policy that confines files too",
		}
	}
	if r.Level == LevelLandlock {
		return landlocked(h, r)
	}
	if r.Level == LevelBwrap {
		return bwrapped(h, r)
	}
	if len(h.Missing) > 0 {
		m := h.Missing[0]
		return nil, &sandbox.UnsupportedError{Need: m.Need, Have: m.Have, Hint: m.Hint}
	}
	if landlock.ABI(h.LandlockABI) < landlock.LeastUseful {
		return nil, &sandbox.UnsupportedError{
			Need: fmt.Sprintf("Landlock, version %d or newer", landlock.LeastUseful),
			Have: fmt.Sprintf("the facts of this host say version %d, where 0 is none", h.LandlockABI),
			Hint: "use Linux 5.19 or newer with landlock in the kernel's lsm= list",
		}
	}
	if err := supported(r); err != nil {
		return nil, err
	}
	n := &native{host: h, req: r, plan: &Plan{Level: LevelNative}}
	n.layout()
	if n.err != nil {
		return nil, n.err
	}
	if err := n.check(); err != nil {
		return nil, err
	}
	n.write()
	if n.err != nil {
		return nil, n.err
	}
	return n.plan, nil
}

// supported refuses what this version cannot enforce.
func supported(r *Request) error {
	switch {
	case r.Root == sandbox.LevelWrite:
		return &sandbox.UnsupportedError{
			Need: "a writable root folder inside a sandbox", Have: "the whole disk cannot be a writable root",
			Hint: "name the folders to write to, or ask for full access",
		}
	case r.network() == sandbox.NetworkProxy:
		return &sandbox.UnsupportedError{
			Need: "the managed proxy", Have: "this version does not have it",
			Hint: "use no network, or the host's",
		}
	}
	return nil
}

// unconfined plans a run with full access: no walls, but the same reaper, so
// that what the command leaves behind is found.
func unconfined(r *Request) *Plan {
	p := &Plan{Level: LevelNone, Mechanism: []string{"subreaper", "process-group"}}
	p.Script.Steps = []launch.Step{
		{Op: launch.OpDieWithParent, Signal: sigUsr2, Label: "the reaper ends the command's group"},
		{Op: launch.OpSubreaper, Label: "find what the command leaves behind"},
		{Op: launch.OpStartCommand},
	}
	p.Script.Steps = append(p.Script.Steps, session(r, hostMultiplexer)...)
	p.Script.Steps = append(p.Script.Steps, body(r)...)
	return p
}

// Where terminals are made: in the terminal file system that only this command has,
// or in the host's.
const (
	ownMultiplexer  = "/dev/pts/ptmx"
	hostMultiplexer = "/dev/ptmx"
)

// session makes the command the leader of a session, with a terminal if it gets one.
// That comes first, so that its own descriptors of it are as free as they would be
// without a sandbox.
func session(r *Request, multiplexer string) []launch.Step {
	steps := []launch.Step{{Op: launch.OpNewSession}}
	if r.Spec.TTY == nil {
		return steps
	}
	size, replaced := r.Spec.TTY.OrUsual(), 3
	if r.Spec.Stderr != nil {
		replaced = 2
	}
	return append(steps, launch.Step{
		Op: launch.OpTerminal, Path: multiplexer, Cols: size.Cols, Rows: size.Rows, Stdio: replaced,
	})
}

// command lists what the second task does, after rights were taken away.
func command(r *Request, ruleset *launch.Ruleset) []launch.Step {
	steps := session(r, ownMultiplexer)
	if ruleset != nil {
		steps = append(steps,
			launch.Step{Op: launch.OpCaps, Label: "none left"},
			launch.Step{Op: launch.OpLandlock, Ruleset: ruleset})
	}
	return append(steps, body(r)...)
}

// body is what every command does last.
func body(r *Request) []launch.Step {
	steps := []launch.Step{{Op: launch.OpStdio}}
	for _, l := range r.Limits {
		steps = append(steps, launch.Step{Op: launch.OpLimit, Resource: l.Resource, Soft: l.Soft, Hard: l.Hard})
	}
	steps = append(steps, launch.Step{Op: launch.OpChdir, Path: r.Spec.Dir})
	if r.Observe {
		// Last, because nobody answers what this task asks for itself; and only here,
		// because process 1 would have to ask, too.
		steps = append(steps, launch.Step{Op: launch.OpObserve, Filter: r.Filter, Value: seccomp.HandOver})
	}
	return append(steps,
		launch.Step{Op: launch.OpCloseFiles},
		launch.Step{Op: launch.OpResetSignals},
		launch.Step{Op: launch.OpExec, Path: r.Program, Argv: r.argv(), Env: r.Env})
}

// watched notes in a plan that its script has a supervisor.
func (p *Plan) watched(r *Request) {
	if r.Observe {
		p.Observe = true
		p.Mechanism = append(p.Mechanism, "observer")
	}
}

// A native is one plan in the making.
type native struct {
	host *Host
	req  *Request
	plan *Plan
	err  error

	trees  int
	shells []*shell // folders of ours in memory
	mounts []mount  // what goes where, sorted by path
	shown  []Spot   // what of the covered folders is shown by default

	ruleAt map[string]int // the last rule for each path

	devices []string // of the host's, those that the policy does not deny

	// Of a root that shows listed paths only.
	spareFolders, spareFiles []int // copies of the masks
	procTree                 int   // a process file system that is made already
}

// A shell is a folder in memory that stands over a folder of the host, with
// the mount points that deeper mounts need.
type shell struct {
	at     string // the covered path
	name   string // below the staging folder
	mode   uint32 // of the folder and of those made in it
	points []Point
	links  []Link
	tree   int
}

// A mount is a tree at a path.
type mount struct {
	at      string
	tree    int       // cloned before
	overlay int       // made before, one more than its index
	shell   *shell    // or a shell
	mask    bool      // or the empty thing that nobody can open
	dir     bool      // for masks: the target is a folder
	id      launch.ID // what must stand there
	own     bool      // the target lies in a file system of ours
	pin     bool      // or the folder itself once more
	why     string
}

func (n *native) add(s ...launch.Step) { n.plan.Script.Steps = append(n.plan.Script.Steps, s...) }

func (n *native) newTree() int {
	n.trees++
	return n.trees
}

func (n *native) fail(need, have, hint string) {
	if n.err == nil {
		n.err = &sandbox.UnsupportedError{Need: need, Have: have, Hint: hint}
	}
}

// within reports whether name is folder or lies below it.
func within(name, folder string) bool {
	return name == folder || folder == "/" || strings.HasPrefix(name, folder+"/")
}

// layout decides what stands where. Folders of the system that a command must
// not see as they are get shells; rules whose level differs from what is above
// them get mounts.
func (n *native) layout() {
	n.ruleAt = make(map[string]int, len(n.req.Rules))
	for i, r := range n.req.Rules {
		n.ruleAt[r.Path] = i
	}
	for _, d := range n.host.Devices {
		denied := func(r Rule) bool { return r.Path == "/dev/"+d && r.Level == sandbox.LevelDeny }
		if !slices.ContainsFunc(n.req.Rules, denied) {
			n.devices = append(n.devices, d)
		}
	}
	n.shells = append(n.shells,
		&shell{at: "/dev", name: "dev", mode: 0o755},
		&shell{at: "/run", name: "run", mode: 0o755},
		&shell{at: "/sys", name: "sys", mode: 0o755})
	for _, s := range n.shells {
		n.mounts = append(n.mounts, mount{at: s.at, shell: s, why: "cover " + s.at})
	}
	n.root()
	// A rule that denies, or that brings the host's files back, wins over what
	// is shown by default.
	for _, s := range slices.Concat(n.host.SysShows, n.host.RunShows) {
		if !n.hides(s.Path) && n.ours(s.Path) != "" && !n.ruled(s.Path) {
			n.shown = append(n.shown, s)
		}
	}
	for _, r := range n.req.Rules {
		n.place(r)
	}
	n.links()
	n.layoutOverlays()
}

// ruled reports whether a rule of its own gives a path back to the command.
func (n *native) ruled(name string) bool {
	return slices.ContainsFunc(n.req.Rules, func(r Rule) bool { return r.Path == name && r.Kind != KindMissing })
}

// levelAbove is the level that a path has by the rules above it.
func (n *native) levelAbove(name string) sandbox.Level {
	level := n.req.Root
	if slices.ContainsFunc(n.shown, func(s Spot) bool { return s.Path != name && within(name, s.Path) }) {
		level = sandbox.LevelRead
	}
	for at := name; at != "/"; {
		at = path.Dir(at)
		if i, ok := n.ruleAt[at]; ok {
			return n.req.Rules[i].Level
		}
	}
	return level
}

// place turns one rule into a mount, when it changes anything.
func (n *native) place(r Rule) {
	if t := n.req.Tmp; t != nil && r.Path == t.At && r.Level != sandbox.LevelDeny {
		return // the private folder stands there
	}
	if r.Path == "/proc" || within(r.Path, "/proc") || r.Path == "/sys" || r.Path == "/dev" {
		if r.Level == sandbox.LevelRead {
			return
		}
		n.fail("rules outside the system's own folders", fmt.Sprintf("%s cannot be made %s", r.Path, levelWord(r.Level)),
			"leave /dev, /proc and /sys out of the policy")
		return
	}
	covered := n.ours(r.Path) != ""
	if r.Kind == KindMissing || (r.Level == n.levelAbove(r.Path) && !covered && !r.Pin) {
		return
	}
	shell := slices.ContainsFunc(n.shells, func(s *shell) bool { return s.at == r.Path })
	if (covered || shell) && r.Level == sandbox.LevelDeny || shell && r.Level == sandbox.LevelRead {
		return // nothing of the host's is visible there
	}
	m := mount{at: r.Path, why: r.Why}
	if !covered && !shell {
		m.id = r.ID // a file of the host's is what the mount goes over
	}
	switch r.Level {
	case sandbox.LevelDeny:
		m.dir = r.Kind == KindFolder
		if s := n.reopened(r); s != nil {
			m.shell = s
			n.shells = append(n.shells, s)
		} else {
			m.mask = true
		}
	default:
		// Above a pin stands a writable mount, whose attributes it takes on.
		if m.pin = r.Pin && r.Kind == KindFolder && !covered && !shell && n.levelAbove(r.Path) == sandbox.LevelWrite; !m.pin {
			m.tree = n.newTree()
		}
	}
	n.mounts = append(n.mounts, m)
	n.point(r.Spot)
}

func levelWord(l sandbox.Level) string {
	switch l {
	case sandbox.LevelWrite:
		return "writable"
	case sandbox.LevelRead:
		return "readable"
	}
	return "unreadable"
}

// ours names the folder of ours that a path's own folder belongs to: one of the
// covered folders, the shell of a denied one, or the private /tmp. It is empty
// where the host's files stand there, because there is no such folder above or
// because something between the two brought them back.
func (n *native) ours(name string) string {
	at := ""
	for _, s := range n.shells {
		if s.at != name && within(name, s.at) && len(s.at) > len(at) {
			at = s.at
		}
	}
	t := n.req.Tmp
	if t != nil && t.At != name && within(name, t.At) && len(t.At) >= len(at) {
		at = t.At
	}
	if at == "" {
		return ""
	}
	for _, r := range n.req.Rules {
		if r.Path == name || !within(name, r.Path) || !within(r.Path, at) || r.Level == sandbox.LevelDeny || r.Kind == KindMissing {
			continue
		}
		// A rule for the folder itself brings the host's back when it makes that
		// writable; but the private /tmp is what is writable then.
		if r.Path != at || r.Level == sandbox.LevelWrite && (t == nil || at != t.At) {
			return ""
		}
	}
	for _, s := range n.shown {
		if s.Path != name && within(name, s.Path) && within(s.Path, at) {
			return ""
		}
	}
	return at
}

// reopened returns the shell for a denied folder below which something is
// visible again, or nil when nothing is.
func (n *native) reopened(r Rule) *shell {
	if r.Kind != KindFolder {
		return nil
	}
	for _, o := range n.req.Rules {
		if o.Path != r.Path && within(o.Path, r.Path) && o.Level != sandbox.LevelDeny && o.Kind != KindMissing {
			return &shell{at: r.Path, name: fmt.Sprintf("deny%d", len(n.shells)), mode: 0o111}
		}
	}
	return nil
}

// point asks for the mount point at a path where a folder of ours stands above it.
func (n *native) point(spot Spot) {
	at := n.ours(spot.Path)
	p := Point{Path: spot.Path, Folder: spot.Kind == KindFolder}
	if t := n.req.Tmp; t != nil && at == t.At {
		p.Below, p.Path = t.Source.Path, strings.TrimPrefix(spot.Path, t.At+"/")
		n.plan.Points = append(n.plan.Points, p)
		return
	}
	for _, s := range n.shells {
		if s.at == at {
			s.points = append(s.points, p)
		}
	}
}

// ruleset is the Landlock wall: nothing may be written except below the
// writable places, and through the standard descriptors that are writable.
func (n *native) ruleset() *launch.Ruleset {
	abi := landlock.ABI(n.host.LandlockABI)
	set := &launch.Ruleset{Handled: abi.Writes(), Scoped: abi.Scopes()}
	add := func(at string, rights uint64) {
		set.Rules = append(set.Rules, launch.Rule{Path: at, Access: rights & abi.Writes()})
	}
	for _, r := range n.req.Rules {
		if r.Level != sandbox.LevelWrite || r.Kind == KindMissing || r.Pin {
			continue
		}
		if t := n.req.Tmp; t != nil && r.Path == t.At {
			continue
		}
		if r.Kind == KindFolder {
			add(r.Path, abi.Writes())
		} else {
			add(r.Path, abi.FileWrites())
		}
	}
	if t := n.req.Tmp; t != nil {
		add(t.At, abi.Writes())
	}
	for _, o := range n.req.Overlays {
		add(o.Path, abi.Writes())
	}
	add("/dev", abi.FileWrites())
	add("/dev/shm", abi.Writes())
	add("/proc", abi.FileWrites())
	for i, s := range n.req.stdio() {
		if s.Writable && (s.File || s.Device) {
			set.Rules = append(set.Rules, launch.Rule{Stdio: i + 1, Access: abi.FileWrites()})
		}
	}
	return set
}
