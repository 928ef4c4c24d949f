// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// Options say where a patch applies.
type Options struct {
	Dir string // the absolute directory of relative names
	// Allow reports whether a file may be read and changed, by its name without links; nil allows all.
	// It is called before anything of the file is read.
	Allow func(path string) bool
}

// ErrNothing says that a patch has no hunks.
var ErrNothing = errors.New("No files were modified.") //nolint:staticcheck // the tool's sentence

// A FileError says what failed with which file.
type FileError struct {
	Doing string // such as "write file"
	Path  string // absolute
	Err   error
	Says  string // the reason as the tool prints it; empty if it prints none
}

// Error returns the sentence that the tool prints.
func (e *FileError) Error() string {
	s := fmt.Sprintf("Failed to %s %s", e.Doing, e.Path)
	if e.Says != "" {
		s += ": " + e.Says
	}
	return s
}

// Unwrap returns the error of the system.
func (e *FileError) Unwrap() error { return e.Err }

// A state is what a name leads to, before a patch or after some of its hunks.
type state struct {
	exists  bool
	content []byte
	mode    fs.FileMode // of a file that is written; 0 for what the system gives to a new one
	like    fs.FileInfo // whose owner a file that is written gets, if any
}

// An entry is a name that a patch touches.
type entry struct {
	path   string
	before fs.FileInfo // nil if it was missing
	read   bool        // its content, which is text
	text   string
	now    state
}

// A Plan is everything that a patch does. [Plan.Close] it.
type Plan struct {
	tree    *tree
	dir     string
	allow   func(string) bool
	entries []*entry
	byPath  map[string]*entry
	dirs    map[string]bool // that hunks make on their way
	known   map[string]bool // as of resolve
	hunks   []Hunk
	work    work
}

// Make computes what a patch does, unless ctx ends. It writes nothing.
func Make(ctx context.Context, p *Patch, o Options) (*Plan, error) {
	if len(p.Hunks) == 0 {
		return nil, ErrNothing
	}
	r, err := openTree(o.Dir)
	if err != nil {
		return nil, err
	}
	pl := &Plan{tree: r, dir: o.Dir, allow: o.Allow, hunks: p.Hunks,
		byPath: map[string]*entry{}, dirs: map[string]bool{}, known: map[string]bool{},
		work: work{stop: ctx.Done()}}
	for i := range p.Hunks {
		err := pl.hunk(&p.Hunks[i])
		if err = cmp.Or(ctx.Err(), err); err != nil {
			return nil, errors.Join(err, pl.Close())
		}
	}
	return pl, nil
}

// Close closes the directories of a plan.
func (pl *Plan) Close() error { return pl.tree.close() }

// Summary returns what the tool prints after success: files that were added, updated and deleted, each in
// the order and the spelling of the patch.
func (pl *Plan) Summary() string {
	var b strings.Builder
	b.WriteString("Success. Updated the following files:\n")
	for _, kind := range []Kind{Add, Update, Delete} {
		for _, h := range pl.hunks {
			if h.Kind == kind {
				path := h.Path
				if h.To != "" {
					path = h.To
				}
				fmt.Fprintf(&b, "%c %s\n", " ADM"[kind], path)
			}
		}
	}
	return b.String()
}

func (e *entry) changes() bool {
	if !e.now.exists || e.before == nil {
		return e.now.exists != (e.before != nil)
	}
	return !e.read || e.text != string(e.now.content) || e.now.mode != e.before.Mode().Perm()
}

func (pl *Plan) abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(pl.dir, path)
}

// at returns the entry of a path.
func (pl *Plan) at(path string, followLast bool) (*entry, error) {
	real, err := resolve(path, followLast, pl.known)
	if err != nil {
		return nil, err
	}
	if e := pl.byPath[real]; e != nil {
		return e, nil
	}
	if real == topOf(real) || pl.allow != nil && !pl.allow(real) {
		return nil, &OutsideError{path}
	}
	e := &entry{path: real}
	for above := filepath.Dir(real); above != topOf(above); above = filepath.Dir(above) {
		if made := pl.byPath[above]; made != nil {
			if made.now.exists {
				return nil, syscall.ENOTDIR
			}
			return e, nil // below what a hunk deleted nothing is left
		}
	}
	e.before, err = pl.tree.lstat(real)
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err == nil {
		e.now = state{exists: true, mode: e.before.Mode().Perm(), like: e.before}
	}
	return e, err
}

// Names returns the names without links of all files that a patch is about as they are now, for questions
// and for [Options.Allow]: each once, in the order of the patch.
func (p *Patch) Names(dir string) ([]string, error) {
	var names []string
	pl, known, named := Plan{dir: dir}, map[string]bool{}, map[string]bool{}
	for _, h := range p.Hunks {
		for _, path := range []string{h.Path, h.To} {
			if path == "" {
				continue
			}
			for _, follow := range []bool{true, false} {
				real, err := resolve(pl.abs(path), follow, known)
				if err != nil {
					return nil, &FileError{Doing: "read", Path: path, Err: err, Says: systemSays(err)}
				}
				if removed := h.Kind == Delete || h.To != "" && path == h.Path; !follow && !removed ||
					follow && h.Kind == Delete {
					continue
				}
				if !named[real] {
					names, named[real] = append(names, real), true
				}
			}
		}
	}
	return names, nil
}

// touch makes an entry one of the plan's.
func (pl *Plan) touch(e *entry) {
	if pl.byPath[e.path] == nil {
		pl.byPath[e.path], pl.known[e.path] = e, true
		pl.entries = append(pl.entries, e)
	}
}

func (pl *Plan) hunk(h *Hunk) error {
	path := pl.abs(h.Path)
	switch h.Kind {
	case Add:
		var b strings.Builder
		for _, line := range h.Lines {
			b.WriteString(line + "\n")
		}
		return pl.write(path, state{content: []byte(b.String())})
	case Delete:
		return pl.remove(path, "delete file")
	}
	e, text, err := pl.read(path)
	if err != nil {
		return err
	}
	next, err := update(path, text, h.Chunks, &pl.work)
	if err != nil {
		return err
	}
	to := path
	if h.To != "" {
		to = pl.abs(h.To)
	}
	now := state{content: next, mode: e.now.mode, like: e.now.like}
	if to == path {
		return pl.write(path, now)
	}
	if into, err := pl.at(to, true); err == nil && into == e {
		// By another name it is the same file, which a link leads to: it stays, and so does the link.
		return pl.write(path, now)
	}
	if err := pl.write(to, now); err != nil {
		return err
	}
	return pl.remove(path, "remove original")
}

// write makes a file.
func (pl *Plan) write(path string, s state) error {
	failed := func(err error) error {
		if outside := (*OutsideError)(nil); errors.As(err, &outside) {
			return err
		}
		return &FileError{Doing: "write file", Path: path, Err: err}
	}
	e, err := pl.at(path, true)
	if err != nil {
		return failed(err)
	}
	if pl.dirs[e.path] {
		return failed(syscall.EISDIR)
	}
	if e.before != nil && pl.byPath[e.path] == nil && !e.before.Mode().IsRegular() {
		return failed(safefile.ErrNotPlain)
	}
	if s.mode == 0 && e.now.exists {
		s.mode, s.like = e.now.mode, e.now.like
	}
	s.exists = true
	for above := filepath.Dir(e.path); above != topOf(above) && !pl.dirs[above]; above = filepath.Dir(above) {
		pl.dirs[above] = true
	}
	e.now = s
	pl.touch(e)
	return nil
}

// remove removes a name, which can be a link.
func (pl *Plan) remove(path, doing string) error {
	e, err := pl.at(path, false)
	if outside := (*OutsideError)(nil); errors.As(err, &outside) {
		return err
	}
	switch {
	case err != nil:
	case !e.now.exists:
		err = fs.ErrNotExist
	case pl.byPath[e.path] == nil && e.before.IsDir():
		err = syscall.EISDIR
	}
	if err != nil {
		return &FileError{Doing: doing, Path: path, Err: err}
	}
	e.now = state{}
	pl.touch(e)
	return nil
}

// read returns a file as the hunks before leave it.
func (pl *Plan) read(path string) (*entry, string, error) {
	failed := func(err error, says string) (*entry, string, error) {
		return nil, "", &FileError{Doing: "read file to update", Path: path, Err: err, Says: says}
	}
	e, err := pl.at(path, true)
	if outside := (*OutsideError)(nil); errors.As(err, &outside) {
		return nil, "", err
	}
	if err == nil && !e.now.exists {
		err = fs.ErrNotExist
	}
	if err != nil {
		return failed(err, systemSays(err))
	}
	text := string(e.now.content)
	if pl.byPath[e.path] == nil {
		var content []byte
		content, e.before, err = pl.tree.read(e.path, e.before)
		if errors.Is(err, safefile.ErrNotPlain) {
			return failed(err, "path `"+path+"` is not a file")
		}
		if err != nil {
			return failed(err, systemSays(err))
		}
		text = string(content)
		e.read, e.text = true, text
		pl.touch(e)
	}
	if says := invalidUTF8(text); says != "" {
		return failed(errors.New(says), says)
	}
	return e, text, nil
}

// systemSays returns an error of the system with its number.
func systemSays(err error) string {
	var errno syscall.Errno
	switch {
	case errors.Is(err, fs.ErrNotExist):
		errno = syscall.ENOENT
		return fmt.Sprintf("No such file or directory (os error %d)", int(errno))
	case errors.As(err, &errno):
		s := errno.Error()
		return fmt.Sprintf("%s%s (os error %d)", strings.ToUpper(s[:1]), s[1:], int(errno))
	}
	return err.Error()
}

// invalidUTF8 says where a text is not UTF-8; empty if it is.
func invalidUTF8(text string) string {
	if utf8.ValidString(text) {
		return ""
	}
	for i := 0; ; {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r != utf8.RuneError || n > 1 {
			i += n
			continue
		}
		if !utf8.FullRuneInString(text[i:]) {
			return fmt.Sprintf("incomplete utf-8 byte sequence from index %d", i)
		}
		// As many bytes are wrong together as could begin a character.
		for i+n < len(text) && !utf8.FullRuneInString(text[i:i+n+1]) {
			n++
		}
		return fmt.Sprintf("invalid utf-8 sequence of %d bytes from index %d", n, i)
	}
}
