// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/safefile"

	"golang.org/x/sys/unix"
)

// journalName is the file of a stage that says what an apply has to put in order, also after it was killed.
const journalName = "applying"

// lockName is the file of a stage that is locked while one call works: with force, the lock of the stage is a
// command's.
const lockName = "apply.lock"

// alone waits until no other call works on the stage.
func (w *work) alone() error {
	name := filepath.Join(w.stage.Dir, lockName)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	w.lock = f
	return safefile.WaitLock(f)
}

// tempName is the temporary name in each directory of the host. A stage has one of its own.
func tempName(id string) string { return ".sallyport-apply-" + id }

// A journal is written before what it says is done. The zero journal is not open.
type journal struct {
	file *os.File
}

// A note is a line of a journal: a directory that has or had the temporary name in it, or one to which
// its owner gave itself the rights for a while.
type note struct {
	Layer int    `json:"layer"`
	Upper bool   `json:"upper,omitempty"` // of the stage, not the host
	Path  []byte `json:"path"`            // below the root
	// Opened says that the directory had Mode, which is to be given back; else it has the temporary name.
	Opened bool   `json:"opened,omitempty"`
	Mode   uint32 `json:"mode,omitempty"`
}

func (w *work) note(n note) error {
	if w.journal.file == nil {
		name := filepath.Join(w.stage.Dir, journalName)
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return err
		}
		w.journal.file = f
	}
	line, err := json.Marshal(n)
	if err != nil {
		return err
	}
	_, err = w.journal.file.Write(append(line, '\n'))
	return err
}

// end removes the journal: all is in order.
func (j *journal) end() error {
	if j.file == nil {
		return nil
	}
	return errors.Join(os.Remove(j.file.Name()), j.close())
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}

// recover puts in order what an apply has left that was killed.
func (w *work) recover() error {
	name := filepath.Join(w.stage.Dir, journalName)
	const most = 64 << 20
	lines, _, err := safefile.Read(name, most)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	all := slices.Collect(bytes.Lines(lines))
	for _, line := range slices.Backward(all) { // what is in a directory before its rights
		var n note
		if json.Unmarshal(line, &n) != nil || n.Layer < 0 || n.Layer >= len(w.layers) {
			continue // the last one may be cut off
		}
		if err := w.undo(n); err != nil {
			return err
		}
	}
	return os.Remove(name)
}

// undo puts in order what one line says. What is not there any more is in order.
func (w *work) undo(n note) error {
	l := w.layers[n.Layer]
	fd, done, err := w.way(l, n.Upper, string(n.Path))
	if err != nil {
		return ignoreMissing(err)
	}
	defer done()
	if !n.Opened {
		dir, err := reader(fd)
		if err != nil {
			return err
		}
		defer dir.Close()
		return safefile.RemoveTreeIn(dir, w.temp, nil)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&0o7777 != n.Mode|0o700 || !isDir(st.Mode) ||
		!n.Upper && w.stage.Closed(filepath.Join(l.Root.Root, string(n.Path))) != nil {
		return err // another program has set it meanwhile
	}
	return unix.Chmod(proc(fd), n.Mode)
}

func ignoreMissing(err error) error {
	for _, gone := range []error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EXDEV} {
		if errors.Is(err, gone) {
			return nil
		}
	}
	return err
}

// way opens a directory of the host or the stage by its path below the root.
func (w *work) way(l *layer, upper bool, path string) (fd int, done func(), err error) {
	at := l.host
	if upper {
		at = l.upper
	}
	if at, err = unix.FcntlInt(uintptr(at), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return -1, nil, err
	}
	if path != "." {
		for name := range strings.SplitSeq(path, "/") {
			next, err := openDir(at, name)
			unix.Close(at)
			if err != nil {
				return -1, nil, err
			}
			at = next
		}
	}
	return at, func() { unix.Close(at) }, nil
}
