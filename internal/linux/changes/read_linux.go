// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/text"
)

const (
	// maxPaths bounds the bytes of all paths together: commands can make deep trees cheaply.
	maxPaths = 256 << 20
	// maxLooks is how often what changes meanwhile is looked at again.
	maxLooks = 100
	// sniffed is in how many bytes of a file git looks for a NUL byte to call it binary.
	sniffed = 8000
)

// Read lists what the stage changed, by root and path (bytes), a directory before what is in it, with the
// entries that are [Entry.Way]; it never is partial. A nil base has no records. It is safe while others change
// both trees, follows no link, and blocks for the file system only. A change that the host has as well by now
// is none.
//
// The user's own directories and files without permissions in an upper are given some while they are read.
func Read(ctx context.Context, layers []Layer, base *Base) ([]Entry, error) {
	return read(ctx, layers, base, false)
}

// ReadPlain is Read without Binary and RunsLater, and takes half the time.
func ReadPlain(ctx context.Context, layers []Layer, base *Base) ([]Entry, error) {
	return read(ctx, layers, base, true)
}

// Tidy is Read, and removes copies of files that never were a change from the uppers: they would hide what the
// user writes to the host's files later. Their records go, too. No overlay may be mounted over the uppers.
func Tidy(ctx context.Context, layers []Layer, base *Base) ([]Entry, error) {
	list, err := (&reader{ctx: ctx, base: base, tidies: true}).list(layers)
	if err == nil && base != nil {
		err = base.save()
	}
	return list, err
}

func read(ctx context.Context, layers []Layer, base *Base, plain bool) ([]Entry, error) {
	return (&reader{ctx: ctx, base: base, plain: plain}).list(layers)
}

func (r *reader) list(layers []Layer) ([]Entry, error) {
	homes := grants.Homes()
	r.modes = map[uint32]string{}
	for i := range layers {
		r.layer, r.index, r.later = &layers[i], i, later{root: layers[i].Root, homes: homes}
		if err := r.read(); err != nil {
			return nil, err
		}
	}
	order := func(a, b Entry) int {
		return cmp.Or(strings.Compare(a.Root, b.Root), strings.Compare(a.Path, b.Path))
	}
	if !slices.IsSortedFunc(r.out, order) { // as most are: sorting moves large things
		slices.SortStableFunc(r.out, order)
	}
	return r.out, nil
}

// A reader is one Read.
type reader struct {
	ctx    context.Context
	base   *Base
	out    []Entry
	paths  int // bytes of all paths
	modes  map[uint32]string
	bufs   [2][64 << 10]byte
	plain  bool // without what only people are told
	tidies bool // removes copies that are no change

	looks int // how often something was looked at again

	layer    *Layer
	index    int
	later    later
	up, host *way
	at       []byte // path of what is looked at, relative to the root
	cover    Seen   // what the directories above it say of a path without a record
}

func (r *reader) read() (err error) {
	if r.up, err = openWay(r.layer.Upper, true); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.up.close()) }()
	if r.host, err = openWay(r.layer.Root, false); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.host.close()) }()
	r.at = r.at[:0]
	if r.layer.Name != "" {
		return r.file()
	}
	now, err := r.up.lstat(".")
	if err != nil {
		return err
	}
	old, err := r.host.lstat(".")
	if err != nil {
		return err
	}
	if err := r.dir(true, false); err != nil {
		return err
	}
	r.at = append(r.at, '.')
	e := r.entry(&now, &old)
	switch err := r.rights(e, r.up.fd(), r.host.fd()); {
	case err != nil:
		return err
	case e.Kind != "":
		return r.add(e)
	}
	return nil
}

// file reads a layer of one file.
func (r *reader) file() error {
	now, err := r.up.lstat(r.layer.Name)
	if err != nil {
		return err
	}
	if !now.Exists() || now.isWhiteout() {
		return fmt.Errorf("the stage has lost its copy of %s; discard the stage",
			text.Word(path.Join(r.layer.Root, r.layer.Name)))
	}
	return r.name(r.layer.Name, true, false)
}

// dir lists what is in the directory at the end of the ways. The host has none where hosts is false; hides
// says that what is in it only is deleted.
func (r *reader) dir(hosts, hides bool) error {
	names, err := r.up.names()
	if err != nil {
		return err
	}
	if hides && hosts {
		more, err := r.host.names()
		if err != nil {
			return err
		}
		names = append(names, more...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, name := range names {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if err := r.name(name, hosts, hides); err != nil {
			return err
		}
	}
	return nil
}

// name looks at a name in the directory at the end of the ways. It looks again where it is changed
// meanwhile.
func (r *reader) name(name string, hosts, hides bool) error {
	before, out, paths, cover := len(r.at), len(r.out), r.paths, r.cover
	if before > 0 {
		r.at = append(r.at, '/')
	}
	r.at = append(r.at, name...)
	for {
		err := r.look(name, hosts, hides)
		if !errors.Is(err, errChanged) || r.looks >= maxLooks || r.up.fd() < 0 || r.host.fd() < 0 {
			r.at = r.at[:before]
			return err
		}
		r.looks++
		r.out, r.paths, r.cover = r.out[:out], paths, cover
	}
}

func (r *reader) look(name string, hosts, hides bool) error {
	now, err := r.up.lstat(name)
	if err != nil {
		return err
	}
	var old Facts
	if hosts {
		if old, err = r.host.lstat(name); err != nil {
			return err
		}
	}
	switch deleted := now.isWhiteout() || hides && !now.Exists(); {
	case deleted && !old.Exists() || !now.Exists() && !hides:
		return nil // it is gone, or was never there
	case deleted:
		return r.deleted(name, &old)
	case now.IsDir():
		return r.subdir(name, &now, &old, hides)
	}
	before := len(r.out)
	err = r.changed(name, &now, &old)
	if err == nil && !hides && len(r.out) == before && r.tidies && r.base != nil && r.layer.Name == "" {
		r.tidy(name, &now, &old)
	}
	return err
}

// tidy removes a copy that never was a change, as the host's has not changed since the stage met it. Only a
// file with no other name is certain to be seen again through the overlay. What cannot be removed stays.
func (r *reader) tidy(name string, now, old *Facts) {
	records := r.base.roots[r.layer.key()]
	s, met := records[string(r.at)]
	if !met || s.Mode&typeMask != typeFile || s.Conflict(old) != "" || now.Nlink > 1 {
		return
	}
	var dir unix.Stat_t
	if unix.Fstat(r.up.fd(), &dir) != nil || unix.Unlinkat(r.up.fd(), name, 0) != nil {
		return
	}
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, dir.Mtim}
	_ = unix.UtimesNanoAt(r.up.fd(), ".", times, 0) // it is as commands have left it
	delete(records, string(r.at))
	r.base.dirty = true
}

// entry makes an entry of the path that is looked at.
func (r *reader) entry(now, old *Facts) *Entry {
	e := &Entry{Layer: r.index, New: *now, Old: *old}
	e.Path, e.Root = string(r.at), r.layer.Root
	e.Base = r.seen()
	e.RunsLater = !r.plain && r.later.is(e.Path)
	is := now
	if !now.Exists() {
		is = old
	}
	switch is.Mode & typeMask {
	case typeFile:
		e.File = "file"
	case typeDir:
		e.File = "dir"
	case typeLink:
		e.File = "symlink"
	default:
		e.File = "special"
	}
	if now.Mode&typeMask == typeFile {
		e.Size = now.Size
	}
	if old.Mode&typeMask == typeFile {
		e.OldSize = old.Size
	}
	mode, ok := r.modes[is.Mode&permMask]
	if !ok {
		mode = fmt.Sprintf("%04o", is.Mode&permMask)
		r.modes[is.Mode&permMask] = mode
	}
	e.Mode = mode
	return e
}

// seen is Base.Lookup for the path that is looked at.
func (r *reader) seen() Seen {
	if r.base == nil || r.cover.Known && !r.cover.Below { // nothing has a record where nothing was
		return r.cover
	}
	if s, ok := r.base.roots[r.layer.key()][string(r.at)]; ok {
		return s
	}
	return r.cover
}

func (r *reader) add(e *Entry) error {
	if r.paths += len(e.Path); r.paths > maxPaths {
		return &executor.StageError{Why: "the paths of the changes are too many or too long to list them",
			Fix: "discard the stage"}
	}
	r.out = append(r.out, *e)
	return nil
}

// deleted adds what the host has and the stage has not.
func (r *reader) deleted(name string, old *Facts) error {
	e := r.entry(&Facts{}, old)
	e.Kind = executor.ChangeDeleted
	var err error
	switch e.File {
	case "dir":
		err = r.count(name, e)
	case "file":
		if !r.plain {
			e.Binary, err = r.binary(r.host, name, old)
		}
	}
	if err != nil {
		return err
	}
	return r.add(e)
}

// count counts what is in a directory of the host that the stage has not, and looks for what is newer.
func (r *reader) count(name string, e *Entry) error {
	if err := r.host.enter(name); err != nil {
		return err
	}
	names, err := r.host.names()
	if errors.Is(err, unix.EACCES) { // nothing is known of it
		e.Newer, names, err = cmp.Or(e.Newer, string(r.at)), nil, nil
	}
	for _, name := range names {
		if err == nil {
			err = r.ctx.Err()
		}
		if err != nil {
			break
		}
		err = r.counted(name, e)
	}
	return errors.Join(err, r.host.leave())
}

func (r *reader) counted(name string, e *Entry) error {
	f, err := r.host.lstat(name)
	if err != nil || !f.Exists() {
		return err
	}
	e.Entries++
	before := len(r.at)
	r.at = append(append(r.at, '/'), name...)
	if e.Newer == "" && e.Base.Known {
		seen := r.seen()
		if !seen.Known { // it has no record of its own
			seen = Seen{Known: true, Below: true, At: e.Base.At}
		}
		if seen.Conflict(&f) != "" {
			e.Newer = string(r.at)
		}
	}
	if f.IsDir() {
		err = r.count(name, e)
	}
	r.at = r.at[:before]
	return err
}

// subdir looks at a directory of the upper.
func (r *reader) subdir(name string, now, old *Facts, hides bool) error {
	e := r.entry(now, old)
	e.Path = "" // many long ones would be kept
	if old.Exists() && !old.IsDir() {
		e.Kind = executor.ChangeType
	}
	if err := r.up.enter(name); err != nil {
		return err
	}
	first, cover := len(r.out), r.cover
	switch s := &e.Base; {
	case s.Known && !s.Below && !s.IsDir():
		r.cover = Seen{Known: true, At: s.At}
	case s.Hides:
		r.cover = Seen{Known: true, Below: true, At: s.At}
	}
	err := r.below(name, e, hides)
	r.cover = cover
	if err = errors.Join(err, r.up.leave()); err != nil {
		return err
	}
	switch {
	case e.Kind != "":
	case len(r.out) > first: // its path is the beginning of theirs: one copy is enough
		e.Way, e.Path = true, r.out[first].Path[:len(r.at)]
		r.out = append(r.out, *e)
		return nil
	case !old.Exists():
		e.Kind = executor.ChangeAdded
	default:
		return nil
	}
	e.Path = string(r.at)
	return r.add(e)
}

// below looks at what is in a directory of the upper, which is the end of its way.
func (r *reader) below(name string, e *Entry, hides bool) error {
	if !e.Old.IsDir() {
		return r.dir(false, false)
	}
	hides = hides || IsOpaque(r.up.fd())
	if r.cover.Known && !r.cover.Below {
		hides = false // all that the host has there is newer than the stage's
	}
	if err := r.host.enter(name); err != nil {
		return err
	}
	err := r.rights(e, r.up.fd(), r.host.fd())
	if err == nil {
		err = r.dir(true, hides)
	}
	return errors.Join(err, r.host.leave())
}
