// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Now is a time that the kernel stamps files with: all stamps before are at most this one, and all that
// follow at least. That is up to a few milliseconds behind the clock. From Linux 6.13 the coarse clock does
// not do: a file that was looked at gets a finer stamp, which is later than that.
func Now() time.Time {
	if fd, err := unix.MemfdCreate("", unix.MFD_CLOEXEC); err == nil {
		var st unix.Stat_t
		err = unix.Fstat(fd, &st)
		unix.Close(fd)
		if err == nil {
			return time.Unix(st.Ctim.Unix())
		}
	}
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &ts); err != nil {
		return time.Time{} // all that the host has is newer
	}
	return time.Unix(ts.Unix())
}

// Update records every path that is in the uppers and has no record yet, forgets those that are no longer
// there, and saves the record in one step. Call it under the stage's lock when the stage is opened, at the end
// of each run, before a snapshot is read while a run goes on, and when the copy of a file (Layer.Name) was
// made. RunStart is [Now] before the overlays of the last run were mounted.
func (b *Base) Update(ctx context.Context, layers []Layer, runStart time.Time) error {
	for i := range layers {
		l := &layers[i]
		u := &updater{ctx: ctx, start: runStart.UnixNano(), old: b.roots[l.key()], now: map[string]Seen{}}
		if err := u.layer(l); err != nil {
			return err
		}
		if !maps.Equal(u.old, u.now) {
			b.roots[l.key()], b.dirty = u.now, true
		}
	}
	return b.save()
}

// Applied records what the host's files are now as what the stage has seen of them, for entries that were just
// applied, and for directories that were made on the way to them. It forgets those that are no longer in the
// upper, and saves the record in one step. Discarded entries are forgotten by [Base.Update].
func (b *Base) Applied(layers []Layer, entries []Entry) error {
	for i := range layers {
		if err := b.applied(&layers[i], i, entries); err != nil {
			return err
		}
	}
	return b.save()
}

func (b *Base) applied(l *Layer, index int, entries []Entry) (err error) {
	up, err := openWay(l.Upper, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, up.close()) }()
	host, err := openWay(l.Root, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.close()) }()
	records, now := b.roots[l.key()], Now().UnixNano()
	for i := range entries {
		e := &entries[i]
		if s, ok := records[e.Path]; e.Layer != index || !ok && e.Way || e.Way && s.Exists() {
			continue
		}
		var facts [2]Facts // where a directory on the way is gone, so is what was in it
		for n, w := range []*way{up, host} {
			dir, name := split(e.Path)
			if err := w.goTo(dir); errors.Is(err, errChanged) {
				continue
			} else if err != nil {
				return err
			}
			if facts[n], err = w.lstat(name); err != nil {
				return err
			}
		}
		b.dirty = true
		if delete(records, e.Path); facts[0].Exists() && records != nil {
			records[e.Path] = seen(&facts[1], now)
		}
	}
	return nil
}

// An updater makes the records of one layer.
type updater struct {
	ctx      context.Context
	start    int64 // of the run
	old, now map[string]Seen
	up, host *way
}

func (u *updater) layer(l *Layer) (err error) {
	if u.up, err = openWay(l.Upper, true); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.up.close()) }()
	if u.host, err = openWay(l.Root, false); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.host.close()) }()
	if l.Name != "" {
		return u.name(l.Name, l.Name, true, 0)
	}
	defer u.keep()
	own, err := u.host.lstat(".")
	if err != nil {
		return err
	}
	if s, ok := u.old["."]; ok {
		u.now["."] = s
	} else {
		u.now["."] = seen(&own, u.start)
	}
	return u.dir("", true, 0)
}

// seen is the record of a file, without what may be another one after a restart of the machine.
func seen(f *Facts, at int64) Seen {
	s := Seen{Known: true, At: at, Facts: *f}
	s.Dev, s.Rdev, s.Blocks = 0, 0, 0
	return s
}

// dir records what is in the directory at the end of the ways; the host has none where hosts is false. Prefix
// begins the paths of what is in it. If hidden is not 0, the host's was hidden then.
func (u *updater) dir(prefix string, hosts bool, hidden int64) error {
	names, err := u.up.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := u.ctx.Err(); err != nil {
			return err
		}
		if err := u.name(prefix+name, name, hosts, hidden); err != nil {
			return err
		}
	}
	return nil
}

// name records a name in the directory at the end of the ways.
func (u *updater) name(at, name string, hosts bool, hidden int64) error {
	var old Facts
	now, err := u.up.lstat(name)
	if err != nil || !now.Exists() {
		return err
	}
	if hosts {
		if old, err = u.host.lstat(name); err != nil {
			return err
		}
	}
	opaque := false
	if now.IsDir() {
		if err := u.up.enter(name); err != nil {
			return err
		}
		opaque = IsOpaque(u.up.fd())
	}
	s, err := u.record(at, name, &now, &old, hidden, opaque)
	if err != nil {
		return err
	}
	u.now[at] = s
	if !now.IsDir() {
		return nil
	}
	if s.Exists() { // else it stands for all below, of which there was nothing either
		err = u.below(at, name, &old, &s)
	}
	return errors.Join(err, u.up.leave())
}

// below records what is in a directory of the upper that is the end of its way; the host's has its name.
func (u *updater) below(at, name string, old *Facts, s *Seen) error {
	hidden := int64(0)
	if s.Hides {
		hidden = s.At
	}
	if !old.IsDir() {
		return u.dir(at+"/", false, hidden)
	}
	if err := u.host.enter(name); err != nil {
		return err
	}
	return errors.Join(u.dir(at+"/", true, hidden), u.host.leave())
}

// record returns the record of a path: the old one, or one of what the host has now.
func (u *updater) record(at, name string, now, old *Facts, hidden int64, opaque bool) (Seen, error) {
	s, known := u.old[at]
	hides := s.IsDir() || !known && old.IsDir()
	hides = hides && (!now.IsDir() || opaque || hidden != 0)
	if known && (s.Hides || !hides) {
		return s, nil
	}
	born := int64(0)
	var err error
	if !now.IsDir() {
		if born, err = u.up.born(name); err != nil {
			return s, err
		}
	}
	when := u.start
	if born != 0 && (!hides || now.isWhiteout()) {
		when = born // what takes the place of a directory is younger than that directory's end
	}
	if when == u.start { // the times of the kernel are coarse: what has this one was there before the run
		when++
	}
	if hidden != 0 {
		when = min(when, hidden)
	}
	if !known {
		s = seen(old, when)
		s.Late = old.Exists() && !old.IsDir() && old.Ctime >= when
	}
	s.Hides, s.At = hides, when
	return s, nil
}

// keep keeps records below directories of the host that have no place in the upper any more: they are older
// than the end of these.
func (u *updater) keep() {
	var hidden []string
	for at, s := range u.now {
		if s.Hides {
			hidden = append(hidden, at)
		}
	}
	if hidden == nil {
		return
	}
	old := slices.Sorted(maps.Keys(u.old))
	for _, dir := range hidden {
		i, _ := slices.BinarySearch(old, dir+"/")
		for ; i < len(old) && strings.HasPrefix(old[i], dir+"/"); i++ {
			if _, ok := u.now[old[i]]; !ok {
				u.now[old[i]] = u.old[old[i]]
			}
		}
	}
}
