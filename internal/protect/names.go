// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package protect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/gitpaths"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A naming finds out by which names the kernel knows the places of a policy,
// for a sandbox that judges by name. There, a rule also holds for what is
// missing and comes later, and no mount point is needed anywhere.
type naming struct {
	roots    []string // writable roots, as the kernel knows them
	rules    map[string]plan.Rule
	patterns []plan.Pattern
	folders  map[string][]string // the names in folders that were listed
	// listed: only what the policy lists is visible, so that links that lead to
	// it have to be made visible as well. Ways are those seen so far.
	listed bool
	ways   []string
	passed []string // the links on the way that was resolved last
}

// ByName turns a resolved policy into rules and patterns by the kernel's
// names.
func ByName(res *sandbox.Resolved) ([]plan.Rule, []plan.Pattern, error) {
	n := &naming{rules: make(map[string]plan.Rule), folders: make(map[string][]string), listed: res.Root == sandbox.LevelDeny}
	for _, p := range res.Paths {
		if p.Level == sandbox.LevelWrite {
			if err := n.root(p); err != nil {
				return nil, nil, err
			}
		}
	}
	for _, p := range res.Paths {
		var err error
		switch {
		case p.Level == sandbox.LevelWrite:
		case p.Auto:
			err = n.protect(p.Path)
		default:
			err = n.carve(p.Path, p.Level, "policy")
		}
		if err != nil {
			return nil, nil, err
		}
	}
	for _, g := range res.Globs {
		if err := n.glob(g, res.GlobDepth); err != nil {
			return nil, nil, err
		}
	}
	for _, way := range n.ways {
		if _, ok := n.rules[way]; !ok {
			n.rules[way] = plan.Rule{Spot: plan.Spot{Path: way, Kind: plan.KindFile}, Level: sandbox.LevelRead, Why: "link to what is listed"}
		}
	}
	rules := make([]plan.Rule, 0, len(n.rules))
	for _, r := range n.rules {
		rules = append(rules, r)
	}
	slices.SortFunc(rules, func(a, b plan.Rule) int { return strings.Compare(a.Path, b.Path) })
	return rules, n.patterns, nil
}

// add keeps a rule; where two meet at one place the stricter wins.
func (n *naming) add(name string, level sandbox.Level, why string) error {
	if old, ok := n.rules[name]; ok && old.Level <= level {
		return nil
	}
	kind, err := kindOf(name)
	if err != nil {
		return &executor.RootError{Path: name, Why: "cannot be looked at: " + plainReason(err), Fix: "the sandbox must know what stands there to protect it"}
	}
	n.rules[name] = plan.Rule{Spot: plan.Spot{Path: name, Kind: kind}, Level: level, Why: why}
	return nil
}

// kindOf says what stands at a path.
func kindOf(name string) (plan.Kind, error) {
	st, err := os.Lstat(name)
	switch {
	case isMissing(err):
		return plan.KindMissing, nil
	case err != nil:
		return plan.KindMissing, err
	case st.IsDir():
		return plan.KindFolder, nil
	case st.Mode().IsRegular():
		return plan.KindFile, nil
	}
	return plan.KindOther, nil
}

func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// KernelName returns the name by which the kernel knows a path. Of a path that does not
// exist, the part that does is resolved.
func KernelName(name string) (string, error) {
	n := &naming{folders: make(map[string][]string)}
	real, _, err := n.resolve(name)
	return real, err
}

// resolve gives the kernel's name for a path. Of a path that does not exist, the
// part that does is resolved. Link is a symbolic link on the way that lies in a
// writable root, where a command could change it; empty without one.
func (n *naming) resolve(name string) (real, link string, err error) {
	const most = 64 // links on one way; the kernel follows fewer
	n.passed = nil
	at, links := "/", 0
	rest := strings.Split(strings.TrimPrefix(filepath.Clean(name), "/"), "/")
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		st, err := os.Lstat(next)
		switch {
		case isMissing(err):
			return filepath.Join(append([]string{next}, rest...)...), link, nil
		case err != nil:
			return "", "", err
		case st.Mode()&fs.ModeSymlink == 0:
			at = filepath.Join(at, n.stored(at, part, st))
			continue
		}
		if links++; links > most {
			return "", "", &fs.PathError{Op: "resolve", Path: name, Err: syscall.ELOOP}
		}
		if link == "" && n.inRoot(next) {
			link = next
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", "", err
		}
		n.passed = append(n.passed, filepath.Join(at, n.stored(at, part, st)))
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return at, link, nil
}

// stored is the name of a folder's entry as it is stored, which on a volume that
// ignores case may differ from the name that it was found by.
func (n *naming) stored(folder, name string, st fs.FileInfo) string {
	names, ok := n.folders[folder]
	if !ok {
		if f, err := os.Open(folder); err == nil {
			names, _ = f.Readdirnames(-1) // a folder that cannot be listed keeps what was given
			f.Close()
		}
		n.folders[folder] = names
	}
	if slices.Contains(names, name) {
		return name
	}
	for _, other := range names {
		if o, err := os.Lstat(filepath.Join(folder, other)); err == nil && os.SameFile(o, st) {
			return other
		}
	}
	return name
}

// inRoot reports whether a command could replace what has this name.
func (n *naming) inRoot(name string) bool {
	return slices.ContainsFunc(n.roots, func(r string) bool {
		return name != r && strings.HasPrefix(name, strings.TrimSuffix(r, "/")+"/")
	})
}

// root adds a writable root, at the target of a symbolic link. A link that lies
// in another writable root is refused: a command could have planted it.
func (n *naming) root(w sandbox.PathRule) error {
	real, link, err := n.resolve(w.Path)
	if err != nil {
		return &executor.RootError{Path: w.Path, Why: "cannot be a writable root: " + plainReason(err)}
	}
	if link != "" {
		return &sandbox.UnsupportedError{
			Need: "writable roots that no command can redirect",
			Have: fmt.Sprintf("%s leads through the symbolic link %s, which lies in another writable root", w.Path, link),
			Hint: "name the folder itself",
		}
	}
	switch kind, err := kindOf(real); {
	case err != nil:
		return &executor.RootError{Path: w.Path, Why: "cannot be a writable root: " + plainReason(err)}
	case kind == plan.KindMissing && w.SkipMissing:
		return nil
	case kind == plan.KindMissing:
		return &executor.RootError{Path: w.Path, Why: "does not exist, so it cannot be a writable root", Fix: "create it first, or leave it out"}
	case kind == plan.KindOther:
		return &executor.RootError{Path: w.Path, Why: "cannot be a writable root: it is neither a folder nor a regular file"}
	}
	n.roots = append(n.roots, real)
	n.show(sandbox.LevelWrite)
	return n.add(real, sandbox.LevelWrite, "writable")
}

// carve adds a path that is to be readable only, or not at all, also when
// nothing is there yet.
func (n *naming) carve(name string, level sandbox.Level, why string) error {
	real, link, err := n.resolve(name)
	if err != nil {
		return &executor.RootError{Path: name, Why: "cannot be looked at: " + plainReason(err), Fix: "the sandbox must know what stands there to protect it"}
	}
	if link != "" {
		return &sandbox.UnsupportedError{
			Need: "a fixed place for " + name,
			Have: fmt.Sprintf("it leads through the symbolic link %s, which lies in a writable root and can be changed by the command", link),
			Hint: "replace the link by the folder or file itself",
		}
	}
	n.show(level)
	return n.add(real, level, why)
}

// show keeps the links that were just followed to something visible.
func (n *naming) show(level sandbox.Level) {
	if n.listed && level != sandbox.LevelDeny {
		n.ways = append(n.ways, n.passed...)
	}
}

// protect adds a protected name, and what a .git there points to.
func (n *naming) protect(name string) error {
	dir, _, err := n.resolve(filepath.Dir(name))
	if err != nil {
		return &executor.RootError{Path: name, Why: "cannot be looked at: " + plainReason(err)}
	}
	real := filepath.Join(dir, filepath.Base(name))
	st, err := os.Lstat(real)
	if err == nil && st.Mode()&(fs.ModeSymlink|fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice|fs.ModeIrregular) != 0 {
		return &sandbox.UnsupportedError{
			Need: "a folder or file at the protected name " + real, Have: "it is neither",
			Hint: "a protected name that is a link cannot be kept from changing; replace it by what it points to, or move it away",
		}
	}
	if cerr := n.carve(real, sandbox.LevelRead, "protected name"); cerr != nil || err != nil || filepath.Base(real) != ".git" {
		return cerr // carve has said so when it cannot be looked at
	}
	return n.repository(dir)
}

// repository adds what the .git in a folder leads to, and what git outside obeys
// in places that a command may write to.
func (n *naming) repository(work string) error {
	r, err := gitpaths.Open(work)
	if err != nil || r == nil {
		return nil //nolint:nilerr // git cannot make anything of it either; .git itself is protected
	}
	for _, dir := range []string{r.Dir, r.Common} {
		if err := n.carve(dir, sandbox.LevelRead, "git folder"); err != nil {
			return err
		}
	}
	// What cannot be read now ends git too, and the paths are right as far as they go.
	paths, _ := r.Protected(gitpaths.Surroundings(os.LookupEnv))
	for _, p := range paths {
		if !n.inRoot(p.Path) {
			continue // nobody can write there; a rule would only make it visible
		}
		if err := n.carve(p.Path, sandbox.LevelRead, p.Why); err != nil {
			return err
		}
	}
	return nil
}

// glob adds a deny pattern, below the folder that it begins with as the kernel
// knows it. What a matching symbolic link leads to is denied as it is now.
func (n *naming) glob(pattern string, depth int) error {
	g, err := sandbox.CompileGlob(pattern)
	if err != nil {
		return err
	}
	base, link, err := n.resolve(g.Base())
	if err != nil {
		return &executor.RootError{Path: g.Base(), Why: "cannot be looked at: " + plainReason(err)}
	}
	if link != "" {
		return &sandbox.UnsupportedError{
			Need: "a fixed place for " + pattern,
			Have: fmt.Sprintf("it leads through the symbolic link %s, which can be changed by the command", link),
			Hint: "replace the link by the folder itself",
		}
	}
	n.patterns = append(n.patterns, plan.Pattern{Glob: rebase(pattern, g.Base(), base), Level: sandbox.LevelDeny})
	return filepath.WalkDir(base, func(name string, d fs.DirEntry, err error) error {
		switch below, ok := strings.CutPrefix(name, base); {
		case err != nil && (isMissing(err) || errors.Is(err, fs.ErrPermission)):
			return nil // what we cannot see, the command cannot see either
		case err != nil:
			return &executor.RootError{Path: name, Why: "cannot be searched for " + pattern + ": " + plainReason(err)}
		case !ok:
		case d.Type()&fs.ModeSymlink != 0 && g.Match(g.Base()+below):
			target, _, err := n.resolve(name)
			if err != nil {
				return nil //nolint:nilerr // a link that leads nowhere hides nothing
			}
			return n.add(target, sandbox.LevelDeny, "target of a link that a deny pattern matches")
		case d.IsDir() && (g.Match(g.Base()+below) || depth > 0 && strings.Count(below, "/") >= depth):
			return fs.SkipDir
		}
		return nil
	})
}

// rebase replaces the fixed beginning of a pattern.
func rebase(pattern, from, to string) string {
	if from == to {
		return pattern
	}
	rest := strings.FieldsFunc(pattern, func(r rune) bool { return r == '/' })
	rest = slices.DeleteFunc(rest, func(s string) bool { return s == "." })
	rest = rest[strings.Count(from, "/"):]
	var b strings.Builder
	for _, c := range []byte(to) {
		if strings.IndexByte(`*?[]{}\`, c) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	for _, r := range rest {
		b.WriteString("/" + r)
	}
	return b.String()
}

// plainReason is the cause of a file system error without its path.
func plainReason(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}
