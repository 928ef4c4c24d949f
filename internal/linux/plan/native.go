// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"path"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// native plans a command at the native level: namespaces, mounts, Landlock and a system
// call filter, made by the launch script itself.
func native(h *Host, r *Request) (*Plan, error) {
	if err := h.missing(); err != nil {
		return nil, err
	}
	if err := h.landlockFrom(int(launch.LandlockLeastUseful), "5.19"); err != nil {
		return nil, err
	}
	n := &nativePlan{host: h, req: r, plan: &Plan{Level: LevelNative}}
	n.layout()
	if n.err == nil {
		n.err = n.check()
	}
	if n.err == nil {
		n.write()
	}
	if n.err != nil {
		return nil, n.err
	}
	return n.plan, nil
}

// A nativePlan is one plan for the native level while it is made.
type nativePlan struct {
	host *Host
	req  *Request
	plan *Plan
	err  error

	trees   int
	covers  []*cover
	mounts  []mount  // what is mounted where, sorted by path
	shown   []Spot   // what of the covered directories is shown by default
	devices []string // of the host's, those that the policy does not deny

	stages    []int // trees of Request.Staged
	procMasks []int // copies of the mask for files that are made already
}

// A cover is a directory in memory that stands over a directory of the host, with the
// mount points that deeper mounts need.
type cover struct {
	at     string // the covered path
	name   string // below the staging directory
	mode   uint32 // of the directory and of those made in it
	points []Point
	links  []Link
	tree   int
}

// A mount is a tree at a path.
type mount struct {
	at      string
	tree    int       // cloned before
	overlay int       // made before, one more than its index
	cover   *cover    // or a cover
	mask    bool      // or an empty file or directory of mode 000
	dir     bool      // for masks: the target is a directory
	id      launch.ID // what must be there
	own     bool      // the target is in a file system of ours
	pin     bool      // or the directory itself once more
	why     string
}

func (n *nativePlan) add(steps ...launch.Step) { n.plan.add(steps...) }

func (n *nativePlan) newTree() int {
	n.trees++
	return n.trees
}

// tree adds a step that makes a tree or opens a place, and returns its number.
func (n *nativePlan) tree(s launch.Step) int {
	s.Tree = n.newTree()
	n.add(s)
	return s.Tree
}

func (n *nativePlan) fail(need, have, hint string) {
	if n.err == nil {
		n.err = unsupported(need, have, hint)
	}
}

// layout decides what is mounted where. System directories that a command must not see
// as they are get covers; rules whose level differs from the level above get mounts.
func (n *nativePlan) layout() {
	for _, d := range slices.Concat(n.host.Devices, n.req.Devices) {
		if !n.req.denies("/dev/" + d) {
			n.devices = append(n.devices, d)
		}
	}
	const usual = 16 // mounts of a sandbox without rules, about
	n.mounts = make([]mount, 0, usual+len(n.req.Rules))
	for _, name := range []string{"dev", "run", "sys"} {
		c := &cover{at: "/" + name, name: name, mode: 0o755}
		n.covers = append(n.covers, c)
		n.mounts = append(n.mounts, mount{at: c.at, cover: c, why: "cover " + c.at})
	}
	n.root()
	// A rule that denies, or that brings the host's files back, takes precedence over
	// what is shown by default.
	for _, s := range slices.Concat(n.host.SysShows, n.host.RunShows) {
		u := n.req.rule(s.Path)
		if ruled := u != nil && u.Kind != KindMissing; !ruled && !n.req.denies(s.Path) &&
			n.coverOver(s.Path) != "" {
			n.shown = append(n.shown, s)
		}
	}
	for _, r := range n.req.Rules {
		n.place(r)
	}
	n.links()
	n.layoutOverlays()
	n.unstaged()
}

// isCover reports whether a directory of ours stands at a path.
func (n *nativePlan) isCover(name string) bool {
	return slices.ContainsFunc(n.covers, func(c *cover) bool { return c.at == name })
}

// levelAbove is the level that a path has by the rules above it.
func (n *nativePlan) levelAbove(name string) sandbox.Level {
	if name != "/" {
		if u := n.req.nearest(path.Dir(name)); u != nil {
			return u.Level
		}
	}
	if slices.ContainsFunc(n.shown, func(s Spot) bool { return s.Path != name && within(name, s.Path) }) {
		return sandbox.LevelRead
	}
	return n.req.Root
}

// place turns one rule into a mount, when it changes anything.
func (n *nativePlan) place(r Rule) {
	if n.req.isTmp(r.Path) && r.Level != sandbox.LevelDeny {
		return // the private directory stands there
	}
	if within(r.Path, "/proc") || r.Path == "/sys" || r.Path == "/dev" {
		if r.Level != sandbox.LevelRead {
			n.fail("rules outside the system's own directories",
				fmt.Sprintf("%s cannot be made %s", r.Path, levelWord(r.Level)),
				"leave /dev, /proc and /sys out of the policy")
		}
		return
	}
	_, copied := n.req.Copies[r.Path]
	covered, isCover := n.coverOver(r.Path) != "", n.isCover(r.Path)
	if r.Kind == KindMissing || r.Level == n.levelAbove(r.Path) && !covered && !r.Pin && !copied {
		return
	}
	if (covered || isCover) && r.Level == sandbox.LevelDeny || isCover && r.Level == sandbox.LevelRead {
		return // nothing of the host's is visible there
	}
	if r.Kind == KindLink && (covered || isCover || r.Level != sandbox.LevelRead) {
		return // the host's is not visible, or what is behind it has a rule of its own
	}
	m := mount{at: r.Path, why: r.Why}
	if !covered && !isCover {
		m.id = n.req.id(r.Spot) // the mount goes over a file of the host's
	}
	switch {
	case r.Level != sandbox.LevelDeny:
		// Above a pin is a writable mount, whose attributes it takes on.
		m.pin = r.Pin && r.Kind == KindDirectory && !covered && !isCover &&
			n.levelAbove(r.Path) == sandbox.LevelWrite
		if !m.pin {
			m.tree = n.newTree()
		}
	case r.Kind == KindDirectory && n.req.reopened(r.Path) != nil:
		m.cover = &cover{at: r.Path, name: fmt.Sprintf("deny%d", len(n.covers)), mode: 0o111}
		n.covers = append(n.covers, m.cover)
	default:
		m.mask, m.dir = true, r.Kind == KindDirectory
	}
	n.mounts = append(n.mounts, m)
	n.point(r.Spot)
}

// coverOver returns the directory of ours that a path's own directory belongs to: one of
// the covers or the private /tmp. It is empty where the host's files are visible, because
// there is no such directory above or because something between the two brings them back.
func (n *nativePlan) coverOver(name string) string {
	at := ""
	for _, c := range n.covers {
		if c.at != name && within(name, c.at) && len(c.at) > len(at) {
			at = c.at
		}
	}
	if t := n.req.Tmp; t != nil && t.At != name && within(name, t.At) && len(t.At) >= len(at) {
		at = t.At
	}
	if at == "" || n.req.shown(path.Dir(name), at) {
		return ""
	}
	// A rule that makes the covered directory itself writable brings the host's back;
	// but where /tmp is private, that is what is writable.
	if u := n.req.rule(at); u != nil && u.Level == sandbox.LevelWrite && u.Kind != KindMissing &&
		!n.req.isTmp(at) {
		return ""
	}
	for _, s := range n.shown {
		if s.Path != name && within(name, s.Path) && within(s.Path, at) {
			return ""
		}
	}
	return at
}

// point asks for the mount point at a path where a directory of ours is above it.
func (n *nativePlan) point(spot Spot) {
	at := n.coverOver(spot.Path)
	p := Point{Path: spot.Path, Dir: spot.Kind == KindDirectory}
	if n.req.isTmp(at) && n.req.Tmp.Asked && n.req.staged(n.req.Tmp.Source.Path) {
		n.fail("a mount point for "+spot.Path+" in "+n.req.Tmp.Source.Path+", which is at "+at,
			"the stage keeps that directory as it is", "use the private /tmp")
		return
	}
	if n.req.isTmp(at) {
		p.Below, p.Path = n.req.Tmp.Source.Path, below(spot.Path, at)
		n.plan.Points = append(n.plan.Points, p)
		return
	}
	for _, c := range n.covers {
		if c.at == at {
			c.points = append(c.points, p)
		}
	}
}

// ruleset returns the Landlock rules: beyond the policy's own the command may write to
// the directories that only it has.
func (n *nativePlan) ruleset() *launch.Ruleset {
	abi := launch.LandlockABI(n.host.LandlockABI)
	var own []launch.Rule
	shared := n.req.SharedPlaces()
	for _, at := range n.req.OwnPlaces() {
		if u := n.req.rule(at); u != nil && Stages(n.req, u) && n.req.staged(at) {
			continue // it has a rule as all writable ones
		}
		access := abi.Writes()
		if n.req.Spec.ProtectHardLinks && slices.Contains(shared, at) {
			access &^= contentWrites
		}
		own = append(own, launch.Rule{Path: at, Access: access})
	}
	own = append(own,
		launch.Rule{Path: "/dev", Access: abi.FileWrites()},
		launch.Rule{Path: "/dev/shm", Access: abi.Writes()},
		launch.Rule{Path: "/proc", Access: abi.FileWrites()})
	return ruleset(n.host, n.req, false, own)
}
