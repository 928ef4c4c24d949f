// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/command/script"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// A file is one that a command runs or reads.
type file struct {
	role  approval.Role
	real  string   // its path without links
	way   []string // the links that lead there
	reach bool     // commands in the sandbox can change it, or a link on the way
	open  *os.File // nil until it is opened, and for what is no regular file
	info  os.FileInfo
	sum   string // SHA-256; empty until it is read
}

// maxBytes is how large a file may be that an approval rests on: a second of reading.
const maxBytes = 1 << 30

// maxPath bounds words that are looked up as the name of a file (PATH_MAX).
const maxPath = 4096

// A fileSearch collects the files of a command.
type fileSearch struct {
	c       *ApprovedCommand
	program string // without links; empty where it is not known
	files   []*file
	seen    map[string]*file // by path
	reach   *Reach
	dirs    []string // in which relative names may be
	absent  []absent // where a file would come first that is not there
	depth   int      // of interpreters of interpreters
	err     error    // the first file that cannot be read
}

// gather lists and opens the files of a command.
func gather(c *ApprovedCommand) *fileSearch {
	g := &fileSearch{c: c, seen: map[string]*file{}, dirs: []string{c.Dir}}
	g.reach = New(Area{Policy: c.Policy, Workspace: c.Dir, HostTmp: c.HostTmp})
	reading := script.Read(c.Args)
	if f := g.runs(reading, approval.RoleProgram); f != nil {
		g.program = f.real
	}
	for _, use := range reading.Uses {
		words := known(use.Args)
		if len(words) == 0 {
			continue
		}
		for _, w := range inputs(words) {
			g.name(w, approval.RoleArgument)
		}
	}
	for _, name := range []string{"BASH_ENV", "ENV", "LD_PRELOAD", "LD_AUDIT", "PYTHONSTARTUP"} {
		value, _ := hostfacts.Value(c.Env, name)
		words := []string{value}
		if strings.HasPrefix(name, "LD_") {
			words = strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ':' })
		}
		for _, w := range words {
			g.name(w, approval.RoleScript)
		}
	}
	return g
}

// runs adds what commands run, the programs with a role; first is the first program. Programs are added
// before their arguments, because what starts one names it as an argument.
func (g *fileSearch) runs(reading *script.Reading, role approval.Role) (first *file) {
	for _, use := range reading.Uses {
		g.changes(use.Args)
	}
	for i, use := range reading.Uses {
		if words := known(use.Args); len(words) > 0 && !use.Builtin() {
			if f := g.lookup(words[0], role); i == 0 {
				first = f
			}
		}
	}
	for _, f := range reading.Files {
		if f.Project || f.Maybe {
			continue
		}
		for _, name := range known(f.Names) {
			g.name(name, approval.RoleScript)
		}
	}
	return first
}

// changes adds the directories to which a command changes before it runs or reads something: those of
// cd, and of what starts a program in another directory.
func (g *fileSearch) changes(args []string) {
	flags := []string{"-C", "-D", "--chdir", "--cwd", "--directory", "--working-directory",
		"--wd", "--workdir"}
	words := known(args)
	if len(words) == 0 {
		return
	}
	builtin := words[0] == "cd" || words[0] == "pushd"
	for i, w := range words[1:] {
		flag, value, joined := strings.Cut(w, "=")
		switch {
		case builtin && !strings.HasPrefix(w, "-"):
			g.addDir(w)
		case builtin:
		case slices.Contains(flags, flag) && joined:
			g.addDir(value)
		case slices.Contains(flags, w) && i+2 < len(words):
			g.addDir(words[i+2])
		case len(w) > 2 && (w[:2] == "-C" || w[:2] == "-D"):
			g.addDir(w[2:])
		}
	}
}

// known returns the words of a command up to the first one that is not known, and of the others those
// that are.
func known(words []string) (out []string) {
	for i, w := range words {
		if exact := (&script.Command{Args: []string{w}}).Exact(); exact {
			out = append(out, w)
		} else if i == 0 {
			return nil
		}
	}
	return out
}

// addDir adds a directory that the command changes to: from each of those in which it may be.
func (g *fileSearch) addDir(name string) {
	const most = 32
	for _, dir := range slices.Clone(g.dirs) {
		at := name
		if !filepath.IsAbs(at) {
			at = filepath.Join(dir, at)
		}
		if slices.Contains(g.dirs, at) {
			continue
		}
		if info, err := os.Stat(at); err != nil || !info.IsDir() {
			continue
		}
		if len(g.dirs) == most {
			g.err = cmp.Or(g.err, error(&approval.UnreadableError{Path: at, Role: approval.RoleProgram,
				Err: errDirs}))
			return
		}
		g.dirs = append(g.dirs, at)
	}
}

var errDirs = errors.New("the command changes its directory too often")

// An absent file is one that would be run if it were there.
type absent struct {
	path string // without links on the way
	role approval.Role
	dir  string // of PATH, in which it would be found; empty if it is named otherwise
}

// lacks adds a file that is not there.
func (g *fileSearch) lacks(at string, role approval.Role, inPath string) {
	for dir, rest := filepath.Dir(at), filepath.Base(at); ; dir, rest = filepath.Dir(dir),
		filepath.Join(filepath.Base(dir), rest) {
		real, err := hostfacts.EvalSymlinks(dir)
		if err == nil {
			a := absent{filepath.Join(real, rest), role, inPath}
			if !slices.Contains(g.absent, a) {
				g.absent = append(g.absent, a)
			}
			return
		}
		if dir == filepath.Dir(dir) {
			return
		}
	}
}

// lookup adds a program with its interpreters, as the command's own PATH leads to it; nil where there
// is none.
func (g *fileSearch) lookup(name string, role approval.Role) (first *file) {
	isPath := strings.ContainsRune(name, filepath.Separator)
	for _, dir := range g.dirs {
		at, err := hostfacts.Lookup(name, dir, g.c.Env)
		switch {
		case !isPath:
			g.before(name, at, role)
		case err != nil && filepath.IsAbs(name):
			g.lacks(name, role, "")
		case err != nil:
			g.lacks(filepath.Join(dir, name), role, "")
		}
		if err == nil {
			if f := g.add(at, role); f != nil && first == nil {
				first = f
			}
		}
		if !isPath || filepath.IsAbs(name) {
			break
		}
	}
	return first
}

// before adds where in PATH a program would be found before at, or at all where at is empty.
func (g *fileSearch) before(name, at string, role approval.Role) {
	if name == "" || len(name) > maxPath || strings.ContainsRune(name, 0) {
		return
	}
	list, _ := hostfacts.Value(g.c.Env, "PATH")
	for _, dir := range filepath.SplitList(list) {
		candidate := filepath.Join(dir, name)
		if !filepath.IsAbs(dir) {
			candidate = filepath.Join(g.c.Dir, dir, name)
		}
		if candidate == at {
			return
		}
		g.lacks(candidate, role, cmp.Or(dir, "."))
	}
}

// name adds the files that a word may name.
func (g *fileSearch) name(word string, role approval.Role) {
	if word == "" || len(word) > maxPath || strings.ContainsRune(word, 0) {
		return
	}
	for _, dir := range g.dirs {
		at := word
		if !filepath.IsAbs(at) {
			at = filepath.Join(dir, at)
		}
		if _, err := os.Lstat(at); role == approval.RoleScript && err != nil {
			g.lacks(at, role, "")
		}
		g.add(at, role)
		if filepath.IsAbs(word) {
			break
		}
	}
}

// add adds what is at a path, with its interpreters; nil where there is no file.
func (g *fileSearch) add(at string, role approval.Role) *file {
	real, err := hostfacts.EvalSymlinks(at)
	if err != nil {
		return nil
	}
	if f := g.seen[real]; f != nil {
		return f
	}
	info, err := os.Stat(real)
	if err != nil || info.IsDir() {
		return nil
	}
	f := &file{role: role, real: real, info: info, way: way(at)}
	f.reach = g.reach.Of(at) != nil
	if role == approval.RoleArgument && (!f.reach || !info.Mode().IsRegular()) {
		return nil
	}
	g.seen[real] = f
	g.files = append(g.files, f)
	f.open, err = safefile.Open(real)
	if err == nil && !same(info, f) {
		err = errChanges
	}
	if err != nil {
		if f.reach {
			g.err = cmp.Or(g.err, error(&approval.UnreadableError{Path: real, Role: role, Err: reason(err)}))
		}
		return f
	}
	g.interpreters(f)
	return f
}

var errChanges = errors.New("it is being changed")

// reason returns the cause of an error about a path that the sentence around it names.
func reason(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// interpreters adds the program that runs a file by its first line, or loads it, and that one's.
func (g *fileSearch) interpreters(f *file) {
	mark := make([]byte, len("#!"))
	_, _ = f.open.ReadAt(mark, 0) // else it has no first line
	switch isScript := string(mark) == "#!"; {
	case f.role != approval.RoleArgument:
	case !isScript:
		return // it is not executed
	default:
		f.role = approval.RoleScript
	}
	words := hostfacts.InterpreterOf(f.open)
	if len(words) == 0 || g.depth == hostfacts.MaxInterpreters {
		return
	}
	g.depth++
	defer func() { g.depth-- }()
	g.name(words[0], approval.RoleInterpreter)
	if string(mark) == "#!" && len(words) > 1 { // such as env, which looks for the interpreter in PATH
		g.runs(script.Read([]string{words[0], strings.Join(words[1:], " "), f.real}),
			approval.RoleInterpreter)
	}
}

// same reports whether an open file is the one that was looked at.
func same(info os.FileInfo, f *file) bool {
	now, err := f.open.Stat()
	return err == nil && unchanged(info, now)
}

// read computes the SHA-256 of what an open file holds.
func (f *file) read() (string, error) {
	if f.info.Size() > maxBytes {
		return "", fmt.Errorf("it has more than %d MiB", maxBytes>>20)
	}
	sum := sha256.New()
	buf := make([]byte, min(int(f.info.Size())+1, 256<<10))
	n, err := io.CopyBuffer(sum, io.NewSectionReader(f.open, 0, maxBytes+1), buf)
	switch {
	case err != nil:
		return "", reason(err)
	case n != f.info.Size() || !same(f.info, f):
		return "", errChanges
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
