// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/diff"
	"github.com/sallyport-dev/sallyport/internal/names/gitstate"
	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// maxText is how large a text may be to be shown, in bytes.
const maxText = 32 << 20

// Diff writes entries, which [Read] returned for the layers, as a unified diff that git apply and patch -p1
// take. Paths are relative to the workspace, those outside of it absolute without the first slash. What is not
// text, larger than 32 MiB, or nothing that git apply takes, is named in a line outside of any patch, which
// begins with "# ". Empty directories are left out.
func Diff(ctx context.Context, w io.Writer, entries []Entry, layers []Layer, workspace string) (err error) {
	d := &differ{ctx: ctx, out: bufio.NewWriter(w), workspace: workspace, layers: layers,
		up: make([]*way, len(layers)), host: make([]*way, len(layers))}
	defer func() {
		for _, w := range slices.Concat(d.up, d.host) {
			if w != nil {
				err = errors.Join(err, w.close())
			}
		}
	}()
	for i := range entries {
		if err := d.entry(&entries[i]); err != nil {
			return err
		}
	}
	return d.out.Flush()
}

// A differ is one Diff.
type differ struct {
	ctx       context.Context
	out       *bufio.Writer
	workspace string
	layers    []Layer
	up, host  []*way // by layer; nil before their first use
}

// A side is a file before or after a change. The zero side is none.
type side struct {
	diff.File
	why string // why it is not shown; empty if it is
}

func (d *differ) entry(e *Entry) error {
	if e.Way {
		return nil
	}
	if err := d.open(e.Layer); err != nil {
		return err
	}
	up, host := d.up[e.Layer], d.host[e.Layer]
	dir, name := path.Split(e.Path)
	dir = path.Clean(dir)
	shown := d.name(e.path())
	if e.Old.IsDir() && !e.New.IsDir() {
		err := host.goTo(dir)
		if err == nil {
			err = d.tree(host, name, shown)
		}
		if err != nil && !errors.Is(err, errChanged) {
			return err
		}
	}
	old, err := d.side(host, dir, name, &e.Old)
	if err != nil {
		return err
	}
	now, err := d.side(up, dir, name, &e.New)
	if err != nil {
		return err
	}
	if err := d.patch(shown, e.Kind, old, now); err != nil || e.Kind == executor.ChangeDeleted {
		return err
	}
	if before, after := e.Old.Mode&permMask, e.New.Mode&permMask; e.Old.sameType(&e.New) && before != after &&
		old.Mode == now.Mode {
		return d.note("mode of", shown, fmt.Sprintf("changed from %04o to %04o", before, after))
	}
	if e.Kind == executor.ChangeMode && old.Mode == now.Mode {
		return d.note("owner or attributes of", shown, "changed")
	}
	return nil
}

func (d *differ) open(layer int) (err error) {
	l := &d.layers[layer]
	if d.up[layer] == nil {
		if d.up[layer], err = openWay(l.Upper, true); err != nil {
			return err
		}
	}
	if d.host[layer] == nil {
		d.host[layer], err = openWay(l.Root, false)
	}
	return err
}

// name is how a diff names an absolute path.
func (d *differ) name(abs string) string {
	if safefile.Within(abs, d.workspace) && abs != d.workspace {
		return strings.TrimPrefix(abs[len(d.workspace):], "/")
	}
	return strings.TrimPrefix(abs, "/")
}

// note writes a line that is no part of a patch.
func (d *differ) note(what, name, why string) error {
	_, err := fmt.Fprintf(d.out, "# %s %s: %s\n", what, diff.Quote(name), why)
	return err
}

// patch writes the difference between two files.
func (d *differ) patch(name, kind string, old, now side) error {
	why := old.why
	if now.why != "" {
		why = now.why
	}
	inGit := !gitstate.InsideName(name) || strings.EqualFold(path.Base(name), ".gitmodules") &&
		(old.Mode == diff.ModeLink || now.Mode == diff.ModeLink)
	if (old.Mode != 0 || now.Mode != 0) && why == "" && inGit {
		why = "git apply takes no file of that name"
	}
	if why != "" {
		return d.note(kind, name, why)
	}
	_, err := d.out.Write(diff.Patch(name, old.File, now.File))
	return err
}

// tree writes that all files in a directory of the host are deleted. The directory at the end of the way
// has it.
func (d *differ) tree(host *way, name, shown string) (err error) {
	if err := host.enter(name); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.leave()) }()
	names, err := host.names()
	if errors.Is(err, unix.EACCES) {
		return d.note("deleted directory", shown, "it cannot be read")
	}
	slices.Sort(names)
	for _, name := range names {
		if err := d.ctx.Err(); err != nil {
			return err
		}
		f, err := host.lstat(name)
		switch {
		case err != nil:
			return err
		case f.IsDir():
			err = d.tree(host, name, shown+"/"+name)
		case f.Exists():
			err = d.patch(shown+"/"+name, executor.ChangeDeleted, d.read(host, name, &f), side{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// side reads a file in a directory of a layer. It is none for a directory.
func (d *differ) side(w *way, dir, name string, f *Facts) (side, error) {
	if !f.Exists() || f.IsDir() {
		return side{}, d.ctx.Err()
	}
	if err := w.goTo(dir); errors.Is(err, errChanged) {
		return side{why: errChanged.Error()}, nil
	} else if err != nil {
		return side{}, err
	}
	return d.read(w, name, f), nil
}

// read reads a file in the directory at the end of the way.
func (d *differ) read(w *way, name string, f *Facts) (s side) {
	switch f.Mode & typeMask {
	case typeLink:
		target, err := w.link(name, f)
		if err != nil {
			return side{why: why(err)}
		}
		return side{File: diff.File{Mode: diff.ModeLink, Text: []byte(target)}}
	case typeFile:
	default:
		return side{why: "it is no file, directory or symbolic link"}
	}
	if f.Size > maxText {
		return side{why: fmt.Sprintf("it is too large to be shown (%d bytes)", f.Size)}
	}
	fd, err := w.open(name, f)
	if err != nil {
		return side{why: why(err)}
	}
	defer unix.Close(fd)
	s.Mode, s.Text = diff.ModeFile, make([]byte, f.Size)
	if f.Mode&0o100 != 0 {
		s.Mode = diff.ModeExecutable
	}
	n, err := readFull(fd, s.Text)
	if s.Text = s.Text[:n]; err != nil {
		return side{why: why(err)}
	}
	if isBinary(s.Text) {
		return side{why: fmt.Sprintf("it is binary (%d bytes)", f.Size)}
	}
	return s
}

// why is the reason in an error, for a note.
func why(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err.Error()
}
