// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package trust

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// storeDir is the directory of the records in the state directory.
const storeDir = "trust"

// judge compares the project with its record.
func (p *Project) judge() error {
	p.State = Untrusted
	for _, dir := range dirs.Existing() {
		if p.holds(dir) {
			continue
		}
		r, err := load(dir, recordName(p.Dir), p.Dir)
		var damaged *RecordError
		switch {
		case err == nil:
			p.compare(r)
			return nil
		// Else there is none, or the directory is hidden, as from a sallyport in a sandbox.
		case errors.As(err, &damaged) || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission):
			return err
		}
	}
	return nil
}

// Recorded reports whether something was trusted in a directory, absolute and existing, whatever is
// in it now. The error is a [*RecordError], or the system's.
func Recorded(dir string) (bool, error) {
	p := &Project{Dir: hostfacts.RealPath(filepath.Clean(dir))}
	// Usually there is no record, which is one system call.
	absent := func(d string) bool {
		var st unix.Stat_t
		err := unix.Lstat(filepath.Join(d, storeDir, recordName(p.Dir)), &st)
		return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
	}
	if !slices.ContainsFunc(dirs.Candidates(), func(d string) bool { return !absent(d) }) {
		return false, nil
	}
	err := p.judge()
	return p.State != Untrusted, err
}

// holds reports whether a state directory lies in the project, so that its records may be the
// project's own words: XDG_STATE_HOME and HOME can be set by a tool that the project configures.
// Where the user's home is the project, its usual one counts, which no command reaches.
func (p *Project) holds(dir string) bool {
	usual := hostfacts.RealPath(filepath.Join(grants.DatabaseHome(), ".local", "state"))
	return hostfacts.Below(dir, p.Dir) && filepath.Dir(dir) != usual
}

// Trust records the files as they were read, and returns when that is on the disk. It blocks
// while another process records.
func (p *Project) Trust() error {
	if len(p.Files) == 0 {
		return ErrNoFiles
	}
	if !utf8.ValidString(p.Dir) {
		return &RefusedError{p.Dir, "its name is not valid UTF-8", "rename it"}
	}
	dir, err := dirs.Dir()
	if err != nil {
		return err
	}
	if p.holds(dir) {
		return &RefusedError{dir, "this state directory lies in the project",
			"set XDG_STATE_HOME to a directory outside of it"}
	}
	r := p.record(time.Now())
	text, err := r.encode()
	if err != nil {
		return err
	}
	if err := store(dir, recordName(p.Dir), text); err != nil {
		return fmt.Errorf("record what is trusted: %w", err)
	}
	p.compare(r)
	return nil
}

// store writes a file into the directory of records.
func store(dir, name string, text []byte) error {
	root, err := safefile.OpenTreePath(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	all, err := safefile.MakeDir(root, storeDir)
	if err != nil {
		return err
	}
	defer all.Close()
	lock, err := all.Open(".")
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := safefile.WaitLock(lock); err != nil {
		return err
	}
	const unfinished = "new" // what a killed process left there is written over
	if err := all.Remove(unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := all.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = all.Rename(unfinished, name)
	}
	if err != nil {
		_ = all.Remove(unfinished) // the error says more
		return err
	}
	return errors.Join(lock.Sync(), syncDir(root))
}

// syncDir puts the names in a directory on the disk.
func syncDir(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// open opens the directory of the records in a state directory.
func open(dir string) (*os.File, error) {
	root, err := safefile.OpenTreePath(dir)
	if err == nil {
		defer root.Close()
		root, err = safefile.OpenTree(root, storeDir)
	}
	if err != nil {
		return nil, fmt.Errorf("trust records in %s: %w", text.Word(dir), err)
	}
	defer root.Close()
	return root.Open(".")
}

// load reads a record. The directory is for the error, empty where it is not known.
func load(stateDir, name, dir string) (Record, error) {
	all, err := open(stateDir)
	if err != nil {
		return Record{}, err
	}
	defer all.Close()
	return loadFrom(all, name, dir)
}

func loadFrom(all *os.File, name, dir string) (Record, error) {
	path := filepath.Join(all.Name(), name)
	failed := func(line, col int, err error) (Record, error) {
		return Record{}, &RecordError{Path: path, Line: line, Col: col, Dir: dir, Err: err}
	}
	f, err := openAt(all, path, unix.O_RDONLY|unix.O_NONBLOCK)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, err
	}
	if err != nil {
		return failed(1, 1, err)
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return failed(1, 1, err)
	}
	switch {
	case kind(&st) != unix.S_IFREG:
		return failed(1, 1, errors.New("it is no regular file"))
	case st.Uid != uint32(os.Geteuid()):
		return failed(1, 1, fmt.Errorf("it belongs to another user (%d)", st.Uid))
	case st.Mode&0o022 != 0 || st.Nlink > 1:
		return failed(1, 1, errors.New("others can write to it"))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	switch {
	case err != nil:
		return failed(1, 1, err)
	case len(data) > maxRecord:
		return failed(1, 1, fmt.Errorf("it is larger than %d MiB", maxRecord>>20))
	}
	r, offset, err := decode(data, name)
	if err != nil {
		before := data[:min(offset, len(data))]
		return failed(1+bytes.Count(before, []byte("\n")), len(before)-bytes.LastIndexByte(before, '\n'), err)
	}
	return r, nil
}

// List returns the records in the order of their directories, those that load also with an
// error, which is a [*RecordError] for each of the others.
func List() ([]Record, error) {
	var records []Record
	var failed []error
	for _, dir := range dirs.Existing() {
		all, err := open(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		defer all.Close()
		names, err := all.Readdirnames(-1)
		failed = append(failed, err)
		for _, name := range names {
			if filepath.Ext(name) != recordExt {
				continue
			}
			if r, err := loadFrom(all, name, ""); err == nil {
				records = append(records, r)
			} else if !errors.Is(err, fs.ErrNotExist) {
				failed = append(failed, err)
			}
		}
	}
	slices.SortFunc(records, func(a, b Record) int { return strings.Compare(a.Dir, b.Dir) })
	return records, errors.Join(failed...)
}

// Revoke removes the record of a directory, which need not exist any more; dir must be
// absolute. It reports whether there was one, also one that does not load.
func Revoke(dir string) (bool, error) {
	found := false
	name := recordName(hostfacts.Deepest(filepath.Clean(dir)))
	for _, dir := range dirs.Existing() {
		all, err := open(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return found, err
		}
		defer all.Close()
		switch err := unix.Unlinkat(int(all.Fd()), name, 0); {
		case err == nil:
			found = true
			if err := all.Sync(); err != nil {
				return true, err
			}
		case !errors.Is(err, unix.ENOENT):
			return found, &fs.PathError{Op: "remove", Path: filepath.Join(all.Name(), name), Err: err}
		}
	}
	return found, nil
}
