// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

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
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/plainfile"
	"github.com/sallyport-dev/sallyport/internal/reach"
	"github.com/sallyport-dev/sallyport/internal/script"
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

// A gathering collects the files of a command.
type gathering struct {
	c       *Command
	program string // without links; empty where it is not known
	files   []*file
	seen    map[string]*file // by path
	reach   *reach.Reach
	dirs    []string // in which relative names may be
	depth   int      // of interpreters of interpreters
	err     error    // the first file that cannot be read
}

// gather lists and opens the files of a command.
func gather(c *Command) *gathering {
	g := &gathering{c: c, seen: map[string]*file{}, dirs: []string{c.Dir}}
	g.reach = reach.New(reach.Area{Policy: c.Policy, Workspace: c.Dir, HostTmp: c.HostTmp})
	reading := script.Read(c.Args)
	for _, use := range reading.Uses {
		if use.Exact() && len(use.Args) == 2 && slices.Contains([]string{"cd", "pushd"}, use.Args[0]) {
			g.addDir(use.Args[1])
		}
	}
	for i, use := range reading.Uses { // first, because what starts a program names it as an argument
		if words := known(use.Args); len(words) > 0 {
			if f := g.lookup(words[0], approval.RoleProgram); i == 0 && f != nil {
				g.program = f.real
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

// addDir adds a directory that the command changes to.
func (g *gathering) addDir(name string) {
	const most = 8
	if !filepath.IsAbs(name) {
		name = filepath.Join(g.c.Dir, name)
	}
	if len(g.dirs) < most && !slices.Contains(g.dirs, name) {
		g.dirs = append(g.dirs, name)
	}
}

// lookup adds a program with its interpreters, as the command's own PATH leads to it; nil where there
// is none.
func (g *gathering) lookup(name string, role approval.Role) (first *file) {
	for _, dir := range g.dirs {
		at, err := hostfacts.Lookup(name, dir, g.c.Env)
		if err != nil {
			continue
		}
		if f := g.add(at, role); f != nil && first == nil {
			first = f
		}
		if !strings.ContainsRune(name, filepath.Separator) {
			break
		}
	}
	return first
}

// name adds the files that a word may name.
func (g *gathering) name(word string, role approval.Role) {
	if word == "" || len(word) > maxPath || strings.ContainsRune(word, 0) {
		return
	}
	for _, dir := range g.dirs {
		at := word
		if !filepath.IsAbs(at) {
			at = filepath.Join(dir, at)
		}
		g.add(at, role)
		if filepath.IsAbs(word) {
			break
		}
	}
}

// add adds what is at a path, with its interpreters; nil where there is no file.
func (g *gathering) add(at string, role approval.Role) *file {
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
	f.open, err = plainfile.Open(real)
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
func (g *gathering) interpreters(f *file) {
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
	if filepath.Base(words[0]) != "env" {
		return
	}
	for _, w := range words[1:] { // env looks for the interpreter in PATH
		if w = strings.TrimPrefix(w, "-S"); w != "" && w[0] != '-' && !strings.Contains(w, "=") {
			g.lookup(w, approval.RoleInterpreter)
			return
		}
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
