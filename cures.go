// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"os"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/caches"
	"github.com/sallyport-dev/sallyport/internal/gitpaths"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// denied returns what an attempt was kept from, each with its rule and its grant.
// Where nobody observed, and only there, it may be a guess.
func (x *execution) denied(a *attempt) []sandbox.Denial {
	ds := slices.Clone(a.exit.Denials)
	if len(ds) == 0 && !a.exit.Sandbox.Observed {
		ds = guessDenials(&Result{
			ExitCode: a.code(), Dir: x.dir, Stdout: newOutput(a.kept.Stdout), Stderr: newOutput(a.kept.Stderr),
		}, a.policy, x.host.OS)
	}
	if len(ds) == 0 {
		return ds
	}
	c := &curing{
		policy: a.policy, dir: x.dir, env: x.env, home: homeOf(x.env),
		// Seatbelt has no named grants.
		named:  a.policy.Mode() == sandbox.Managed && a.exit.Sandbox.Level != "seatbelt",
		caches: !x.cmd.NoCaches,
	}
	if x.host.Local {
		c.exists, c.real = exists, realPath
	}
	c.finish(ds)
	return ds
}

// homeOf is the home folder of an environment; empty where there is none.
func homeOf(env []string) string {
	for _, e := range slices.Backward(env) {
		if home, ok := strings.CutPrefix(e, "HOME="); ok {
			return home
		}
	}
	return ""
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// A curing finds rules and grants for what a command was kept from.
type curing struct {
	policy sandbox.Policy // under which it ran, bound
	dir    string
	env    []string
	home   string // of env; may be empty
	named  bool   // named grants can be given where it ran
	caches bool   // those for caches too

	// exists and real look at the machine on which the command ran. They are nil
	// where that is another one; then paths are taken as they are.
	exists func(string) bool
	real   func(string) string
}

// finish fills in what is missing in denials.
func (c *curing) finish(ds []sandbox.Denial) {
	var rest []int
	for i := range ds {
		d := &ds[i]
		if d.Rule == "" {
			d.Rule = c.rule(d)
		}
		if d.Grant != "" || d.NoCure || !isFile(d.Op) || c.policy.Mode() != sandbox.Managed {
			continue
		}
		if d.Grant = c.byName(d); d.Grant == "" {
			rest = append(rest, i)
		}
	}
	c.byPath(ds, rest)
}

func isFile(op sandbox.Op) bool {
	return op == sandbox.Read || op == sandbox.Write || op == sandbox.Exec
}

// rule says what refused an access. The walls keep more than the policy does: what
// git obeys in folders that the policy opens. Where the policy would let an access
// through and no such thing is known, nothing is said.
func (c *curing) rule(d *sandbox.Denial) string {
	if d.Target() == "" && d.Op != sandbox.Signal {
		return ""
	}
	ruling, words := c.policy.Explain(d.Access)
	if ruling != sandbox.Allow {
		return words
	}
	if folder, _, ok := gitFolder(d.Path); ok && d.Op == sandbox.Write {
		return folder + "=read (protected)"
	}
	return ""
}

// gitFolder splits a path at the outermost git folder in it.
func gitFolder(name string) (folder, below string, ok bool) {
	before, after, found := strings.Cut(name+"/", "/.git/")
	if !found {
		return "", "", false
	}
	return before + "/.git", strings.TrimSuffix(after, "/"), true
}

// byName returns the named grant that lets an access through, with flags on top of
// it where it alone does not; empty if there is none.
func (c *curing) byName(d *sandbox.Denial) string {
	if !c.named || d.Op != sandbox.Write || c.policy.LevelAt(d.Path) == sandbox.LevelDeny {
		return ""
	}
	if grant := c.byGit(d.Path); grant != "" {
		return grant
	}
	return c.byCache(d.Path)
}

// byGit is byName for what lies in a git folder.
func (c *curing) byGit(name string) string {
	folder, below, ok := gitFolder(name)
	if !ok || !c.gitOpens(folder) {
		return ""
	}
	granted := slices.Contains(c.policy.Named(), gitGrant)
	grant := sandbox.Grant{Name: gitGrant}
	switch {
	case below == "":
		// A new repository. One that is there stays where it is.
		if !granted && c.exists != nil && !c.exists(folder) {
			return grant.String()
		}
		return ""
	case below == "config" || below == "config.lock":
		// Git writes the second and gives it the name of the first.
		config := sandbox.Grant{Path: folder + "/config", Level: sandbox.LevelWrite}.String()
		if granted {
			return config
		}
		return grant.String() + " " + config
	case !granted && gitpaths.Writable(below):
		return grant.String()
	}
	return ""
}

// gitOpens reports whether the grant for git is about a git folder: it lies in a
// folder that may be written, and no entry of the policy's own speaks about it.
func (c *curing) gitOpens(folder string) bool {
	if c.policy.LevelAt(path.Dir(folder)) != sandbox.LevelWrite {
		return false
	}
	if c.policy.LevelAt(folder) == sandbox.LevelWrite {
		return true // a nested one, protected beyond the policy
	}
	res, err := c.policy.Resolve()
	return err == nil && slices.ContainsFunc(res.Writable, func(w sandbox.WritableRoot) bool { return slices.Contains(w.Protected, folder) })
}

// byCache is byName for what lies in the cache of a toolchain.
func (c *curing) byCache(name string) string {
	grant, folder := caches.GrantFor(name, c.env, c.real)
	if grant == "" || !c.caches || slices.Contains(c.policy.Named(), grant) || c.policy.LevelAt(name) != sandbox.LevelRead {
		return ""
	}
	res, err := c.policy.Resolve()
	if err != nil || slices.ContainsFunc(res.Paths, func(r sandbox.PathRule) bool { return inside(r.Path, folder) }) {
		return "" // an entry of the policy's own counts more
	}
	if c.exists == nil {
		return sandbox.Grant{Name: grant}.String()
	}
	// The workspace has the toolchain's files: the layer was there, and did not help.
	workspace := c.dir
	for _, w := range res.Writable { // those higher up first
		if inside(c.dir, w.Root) {
			workspace = w.Root
		}
	}
	if caches.Covers(caches.Detect(workspace, c.dir), grant) {
		return ""
	}
	return sandbox.Grant{Name: grant}.String()
}

// inside reports whether a path is a folder or lies in it.
func inside(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, strings.TrimSuffix(folder, "/")+"/")
}

// byPath gives path grants to the denials with these numbers: the path itself, or the
// folder where many siblings were denied.
func (c *curing) byPath(ds []sandbox.Denial, numbers []int) {
	wanted := make([]sandbox.Denial, 0, len(numbers))
	for _, i := range numbers {
		d := ds[i]
		if c.policy.Rule(d.Access) == sandbox.Allow {
			continue // it is not the policy that refused it
		}
		if slices.ContainsFunc(kernelFolders(), func(f string) bool { return inside(d.Path, f) }) {
			continue
		}
		if d.Path = c.there(d.Path); d.Path == "" {
			continue
		}
		// What one grant cannot open, as under a deny entry, must not draw others
		// into a folder.
		if gs := sandbox.Cure([]sandbox.Denial{d}); len(gs) == 1 && c.opens(gs[0], ds[i].Access) {
			wanted = append(wanted, d)
		}
	}
	grants := sandbox.Cure(wanted)
	for _, i := range numbers {
		d := &ds[i]
		if c.policy.Rule(d.Access) == sandbox.Allow {
			continue
		}
		for _, g := range grants {
			if inside(d.Path, g.Path) && c.opens(g, d.Access) {
				d.Grant = g.String()
				break
			}
		}
	}
}

// kernelFolders are folders with devices, processes and settings. A sandbox has its
// own; the host's are not given.
func kernelFolders() []string { return []string{"/dev", "/proc", "/sys"} }

// opens reports whether the policy with a grant lets an access through. A grant that
// would be warned about, such as that of a home folder, is none.
func (c *curing) opens(g sandbox.Grant, a sandbox.Access) bool {
	p := c.policy.With(g)
	return p.Rule(a) == sandbox.Allow && len(p.Warnings(c.home, c.real)) <= len(c.policy.Warnings(c.home, c.real))
}

// there returns the nearest path, at or above one, that exists: nothing else can be
// granted. A folder that is hidden, or in a hidden one, does not stand for what is
// missing in it: settings, keys and hooks lie there. Then it is empty.
func (c *curing) there(name string) string {
	if c.exists == nil || !path.IsAbs(name) || c.exists(name) {
		return name
	}
	for name != "/" && !c.exists(name) {
		name = path.Dir(name)
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") && part != ".cache" {
			return ""
		}
	}
	return name
}
