// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guardian

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/command/programs"
	"github.com/sallyport-dev/sallyport/internal/command/script"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A file is one that the action runs.
type file struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// A hiddenFile is one whose content is not in the evidence.
type hiddenFile struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// executed returns the files that a request runs or has programs read as code, whole. It refuses
// one that is too large or no text. Programs of the system are not read. Places where it may run
// what is not known are among the hidden ones.
func (g *Guardian) executed(r *approval.Request) (shown []file, hidden []hiddenFile, err error) {
	if r.Kind == approval.KindPatch || len(r.Args) == 0 {
		return nil, nil, nil
	}
	e := evidence{g: g, r: r, seen: map[string]bool{}}
	reading := script.Read(r.Args)
	e.moves = slices.ContainsFunc(reading.Uses, func(c script.Command) bool {
		return len(c.Args) > 1 && slices.Contains([]string{"cd", "pushd", "env"}, path.Base(c.Args[0]))
	})
	for i, c := range reading.Uses {
		name := c.Args[0]
		if !strings.Contains(name, "/") {
			if i > 0 || !below(r.Program, r.Dir) {
				continue // found in PATH, where commands do not put programs
			}
			name = r.Program
		}
		if !programs.OfSystem(name) {
			e.add(script.File{Names: []string{name}}, true)
		}
	}
	for _, f := range reading.Files {
		e.add(f, false)
	}
	for _, u := range reading.Unknown {
		at := ""
		if u.Line > 0 {
			at = fmt.Sprintf(", line %d, column %d", u.Line, u.Column)
		}
		e.hidden = append(e.hidden,
			hiddenFile{"…", fmt.Sprintf("what runs there is not known before: %s%s", u.Why, at)})
	}
	return e.shown, e.hidden, e.err
}

// An evidence collects the files of a request.
type evidence struct {
	g      *Guardian
	r      *approval.Request
	moves  bool // the directory in which names are looked up is not known
	seen   map[string]bool
	shown  []file
	hidden []hiddenFile
	err    error // the first
}

// add reads a file at the first of its names at which there is one.
func (e *evidence) add(f script.File, program bool) {
	name := f.Names[0]
	if len(f.Names) > 1 {
		i := slices.IndexFunc(f.Names, func(n string) bool {
			_, err := os.Lstat(absolute(n, e.r.Dir))
			return err == nil
		})
		if i < 0 && !e.moves {
			e.hide(name, "it is not in the workspace")
			return
		}
		name = f.Names[max(i, 0)]
	}
	if e.seen[name] || e.err != nil {
		return
	}
	e.seen[name] = true
	one, why, err := e.g.read(name, e.r, e.moves, program)
	switch {
	case f.Maybe && why == unreadable:
	case err != nil && (f.Project || f.Maybe):
		e.hide(name, err.Error())
	case err != nil:
		e.err = err
	case why != "":
		e.hide(name, why)
	case one != nil:
		e.shown = append(e.shown, *one)
	}
}

func (e *evidence) hide(name, why string) {
	e.hidden = append(e.hidden, hiddenFile{unknown.Replace(name), why})
}

// absolute is a name in a directory.
func absolute(name, dir string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// binaries are what the files of compiled programs begin with: ELF, Mach-O, PE.
var binaries = []string{"\x7fELF", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe", "MZ"}

// unknown shows what is not known of a name.
var unknown = strings.NewReplacer(script.Gap, "…", script.Rest, "…")

// read reads a script; why says why it is not shown.
func (g *Guardian) read(name string, r *approval.Request, moves,
	program bool) (f *file, why string, err error) {
	in, why := g.open(name, r, moves)
	if why != "" {
		return nil, why, nil
	}
	defer in.Close()
	s, err := io.ReadAll(io.LimitReader(in, maxAction+1))
	switch {
	case err != nil:
		return nil, "", errors.New("the script " + text.Word(name) + " cannot be read")
	case program && slices.ContainsFunc(binaries,
		func(b string) bool { return bytes.HasPrefix(s, []byte(b)) }):
		return nil, "it is a compiled program", nil
	case len(s) > maxAction:
		return nil, "", fmt.Errorf("the script %s is larger than %d KiB", text.Word(name), maxAction>>10)
	case !utf8.Valid(s):
		return nil, "", fmt.Errorf("the script %s is not UTF-8 text", text.Word(name))
	}
	return &file{name, string(s)}, "", nil
}

// open opens a script of the workspace that commands can read, and says why it opens no other
// one: the model could repeat in its rationale what it was shown, and that goes to the caller.
func (g *Guardian) open(name string, r *approval.Request, moves bool) (f *os.File, why string) {
	at := absolute(name, r.Dir)
	switch {
	case strings.Contains(name, script.Gap) || name == script.Rest:
		return nil, "its name is not known before"
	case r.Environment != "":
		return nil, "it is on another machine"
	case !filepath.IsAbs(name) && moves:
		return nil, "the directory in which it is looked up is not known before"
	}
	real, err := filepath.EvalSymlinks(at)
	dir, err2 := filepath.EvalSymlinks(r.Dir)
	if err != nil || err2 != nil {
		return nil, unreadable
	}
	if !below(real, dir) {
		return nil, "it is outside of the workspace"
	}
	if g.hides(real, r.Dir) {
		return nil, "it is denied"
	}
	f, err = safefile.Open(real)
	if err != nil {
		return nil, unreadable
	}
	if !inside(f, real, dir) {
		_ = f.Close()
		return nil, unreadable
	}
	return f, ""
}

const unreadable = "it cannot be read"

// hides reports whether commands cannot read a file.
func (g *Guardian) hides(real, dir string) bool {
	if g.Policy.Bind(sandbox.Places{Dir: dir}).LevelAt(real) == sandbox.LevelDeny {
		return true
	}
	return slices.ContainsFunc(grants.FindStores(grants.Homes(), nil), func(s grants.Store) bool {
		at, err := filepath.EvalSymlinks(s.Path)
		return below(real, s.Path) || err == nil && below(real, at)
	})
}

// inside reports whether an open file is the one at a path, which a command may have replaced by
// a link before it was opened, and lies in a directory.
func inside(f *os.File, real, dir string) bool {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer root.Close()
	rel, err := filepath.Rel(dir, real)
	if err != nil {
		return false
	}
	there, err := root.Stat(rel)
	opened, err2 := f.Stat()
	now, err3 := filepath.EvalSymlinks(real)
	return err == nil && err2 == nil && err3 == nil && now == real && os.SameFile(there, opened)
}

// below reports whether a path is in a directory, by name.
func below(name, dir string) bool {
	rel, err := filepath.Rel(dir, name)
	return name != "" && err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}
