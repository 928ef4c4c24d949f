// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"path"
	"slices"
	"strings"
)

// Places are the paths that the special tokens mean on one machine. All are absolute;
// relative ones count as not given. The caller fills it from the file system.
type Places struct {
	Dir        string   // working directory; relative paths are joined to it
	Workspaces []string // project roots; none means Dir
	TmpDir     string   // the directory of TMPDIR; empty when there is none
	SlashTmp   string   // "/tmp" when it is a directory, else empty
	Minimal    []string // the files of the platform
	Home       string   // what "~" means; empty when there is none
}

// Bind returns the policy with special places and relative paths replaced by absolute clean
// ones. Binding again changes nothing.
//
//   - Entries for /tmp and TMPDIR that are not given are left out; one that denies them
//     stays, and [Policy.Resolve] reports it.
//   - The files of the platform (":minimal=read") are added only where no other entry allows
//     or denies something, so that they never narrow or reopen.
//   - Unknown tokens stay. They are ignored, with a warning, unless they deny.
//   - Other places that are not given stay as they are, and [Policy.Resolve] reports them.
func (p Policy) Bind(pl Places) Policy {
	if p.mode != Managed || p.open {
		return p
	}
	var bound, minimal []Entry
	for _, e := range p.list() {
		if e.Place.Kind == PlaceSpecial && e.Place.Token == TokenMinimal && e.Level == LevelRead {
			minimal = append(minimal, e)
			continue
		}
		bound = append(bound, bindEntry(e, pl)...)
	}
	if len(minimal) > 0 {
		bound = append(bound, bindMinimal(minimal[0], bound, pl)...)
	}
	p.entries, p.listed = bound, true
	return p.seal()
}

// WithWorkspace returns the policy with the places of the workspace fixed below a directory, which is an
// absolute path: Bind changes nothing about them then, wherever a command runs.
func (p Policy) WithWorkspace(dir string) Policy {
	if p.mode != Managed || p.open {
		return p
	}
	var bound []Entry
	for _, e := range p.list() {
		if e.Place.Token == TokenProjectRoots || strings.HasPrefix(e.Place.Path, workspaceGlobPrefix) {
			bound = append(bound, bindEntry(e, Places{Workspaces: []string{dir}})...)
		} else {
			bound = append(bound, e)
		}
	}
	p.entries, p.listed = bound, true
	return p.seal()
}

// bindEntry returns the entries that one entry becomes.
func bindEntry(e Entry, pl Places) []Entry {
	if e.Check() != nil {
		return []Entry{e}
	}
	at := func(names ...string) []Entry {
		es := make([]Entry, 0, len(names))
		for _, n := range names {
			es = append(es, Entry{Place: Place{Path: n}, Level: e.Level, SkipMissing: e.SkipMissing})
		}
		return es
	}
	switch e.Place.Kind {
	case PlacePath:
		if name, ok := pl.abs(e.Place.Path); ok {
			return at(name)
		}
	case PlaceGlob:
		return bindGlob(e, pl)
	case PlaceSpecial:
		switch e.Place.Token {
		case TokenRoot:
			return at("/")
		case TokenProjectRoots:
			if roots := pl.roots(); len(roots) > 0 {
				for i, r := range roots {
					roots[i] = path.Join(r, e.Place.Subpath)
				}
				return at(roots...)
			}
		case TokenMinimal:
			if m := absolute(pl.Minimal); len(m) > 0 {
				return at(m...)
			}
		case TokenTmpDir, TokenSlashTmp:
			dir := pl.SlashTmp
			if e.Place.Token == TokenTmpDir {
				dir, e.SkipMissing = pl.TmpDir, true // it often does not exist
			}
			if dirs := absolute([]string{dir}); len(dirs) > 0 || e.Level != LevelDeny {
				return at(dirs...)
			}
		}
	}
	return []Entry{e}
}

// bindGlob binds a relative pattern to the working directory, and a workspace pattern to
// every workspace. The name of the directory is taken literally.
func bindGlob(e Entry, pl Places) []Entry {
	pattern := e.Place.Path
	var dirs []string
	if rest, ok := strings.CutPrefix(pattern, workspaceGlobPrefix); ok {
		pattern, dirs = strings.TrimLeft(rest, "/"), pl.roots()
	} else if rest, ok := strings.CutPrefix(pattern, "~/"); ok {
		pattern, dirs = rest, absolute([]string{pl.Home})
	} else if !path.IsAbs(pattern) {
		dirs = absolute([]string{pl.Dir})
	}
	if len(dirs) == 0 {
		return []Entry{e}
	}
	var es []Entry
	for _, d := range dirs {
		g := GlobEntry(strings.TrimSuffix(globEscape(d), "/") + "/" + pattern)
		g.SkipMissing = e.SkipMissing
		es = append(es, g)
	}
	return es
}

// bindMinimal returns the paths of the platform that no other entry is about.
func bindMinimal(e Entry, others []Entry, pl Places) []Entry {
	levels := map[string]Level{}
	for _, o := range others {
		if name, ok := o.Place.Absolute(); ok {
			stricter(levels, name, o.Level)
		}
	}
	root, ok := levels["/"]
	if ok && root >= LevelRead {
		return nil
	}
	dirs := absolute(pl.Minimal)
	if len(dirs) == 0 {
		return []Entry{e}
	}
	var es []Entry
	for _, d := range dirs {
		if at, _ := nearest(levels, d); at != "" && at != "/" {
			continue
		}
		// Which of these files exist differs between systems.
		es = append(es, Entry{Place: Place{Path: d}, Level: LevelRead, SkipMissing: true})
	}
	return es
}

// roots returns the workspaces, or the working directory when there are none.
func (pl Places) roots() []string {
	if ws := absolute(pl.Workspaces); len(ws) > 0 {
		return ws
	}
	return absolute([]string{pl.Dir})
}

// abs makes a path absolute and clean if that is possible.
func (pl Places) abs(name string) (string, bool) {
	switch {
	case path.IsAbs(name):
		return path.Clean(name), true
	case name == "~" || strings.HasPrefix(name, "~/"):
		return path.Join(pl.Home, name[1:]), path.IsAbs(pl.Home)
	}
	return path.Join(pl.Dir, name), path.IsAbs(pl.Dir)
}

// absolute returns the absolute ones of the names, clean and without duplicates.
func absolute(names []string) []string {
	var out []string
	for _, n := range names {
		if !path.IsAbs(n) || strings.ContainsRune(n, 0) {
			continue
		}
		if n = path.Clean(n); !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}
