// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package trust

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// Read reads the files of the project in dir, which must be absolute, and says whether they
// are trusted. Where there are none it costs one system call. The error is a [*RefusedError]
// for files that cannot be trusted, a [*RecordError] for a record that does not load, or the
// system's; the Project is nil then.
func Read(dir string) (*Project, error) {
	p := &Project{Dir: filepath.Clean(dir)}
	var st unix.Stat_t
	if err := unix.Lstat(p.path(configDir), &st); errors.Is(err, unix.ENOENT) {
		return p, nil
	}
	root, err := p.locate()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err = p.readAll(root); err == nil && len(p.Files) > 0 {
		err = p.judge()
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// locate opens the directory of the project, and notes which one it is.
func (p *Project) locate() (root *os.File, err error) {
	if p.Dir, err = hostfacts.EvalSymlinks(p.Dir); err != nil {
		return nil, err
	}
	if root, err = openAt(nil, p.Dir, searchOnly|unix.O_DIRECTORY); err != nil {
		return nil, err
	}
	if p.id, err = identify(root); err != nil {
		root.Close()
		return nil, &fs.PathError{Op: "stat", Path: p.Dir, Err: err}
	}
	return root, nil
}

// found locates a project that may have no files yet, which Read does not.
func (p *Project) found() error {
	root, err := p.locate()
	if err != nil {
		return err
	}
	return root.Close()
}

// readAll reads the files below the directory of the project, which is open.
func (p *Project) readAll(root *os.File) error {
	config, err := p.directory(root, configDir)
	if config == nil {
		return err
	}
	defer config.Close()
	if err := p.read(config, trustConfigFile, maxConfig); err != nil {
		return err
	}
	all, err := p.directory(config, rulesDir)
	if err != nil {
		return err
	}
	if all != nil {
		defer all.Close()
		if err := p.readRules(all); err != nil {
			return err
		}
	}
	if len(p.Files) == 0 {
		return nil // the owner of nothing does not matter
	}
	if err := checkOwner(config); err != nil || all == nil {
		return err
	}
	return checkOwner(all)
}

func (p *Project) readRules(dir *os.File) error {
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(n string) bool {
		return n[0] == '.' ||
			filepath.Ext(n) != rulesExt
	})
	if len(names) > maxFiles {
		return &RefusedError{dir.Name(), fmt.Sprintf("it has more than %d rule files", maxFiles),
			"remove some of them"}
	}
	slices.Sort(names)
	for _, n := range names {
		if err := p.read(dir, rulesDir+"/"+n, maxRules); err != nil {
			return err
		}
	}
	return nil
}

func (p *Project) path(name string) string { return filepath.Join(p.Dir, name) }

// directory opens a directory in the one above it. It is nil if it does not exist.
func (p *Project) directory(above *os.File, name string) (*os.File, error) {
	var st unix.Stat_t
	switch err := statAt(above, p.path(name), &st); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case kind(&st) != unix.S_IFDIR:
		return nil, p.notA("directory", name, &st)
	}
	return openAt(above, p.path(name), unix.O_RDONLY|unix.O_DIRECTORY)
}

// read adds a file in an open directory to those of the project, unless it does not exist.
func (p *Project) read(dir *os.File, name string, most int) error {
	path := p.path(name)
	var named, st unix.Stat_t
	switch err := statAt(dir, path, &named); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case kind(&named) != unix.S_IFREG: // not even opened, which can start something
		return p.notA("regular file", name, &named)
	case !utf8.ValidString(name):
		return &RefusedError{path, "its name is not valid UTF-8", "rename it"}
	}
	f, err := openAt(dir, path, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	switch {
	case st.Dev != named.Dev || st.Ino != named.Ino:
		return &RefusedError{path, "it was replaced while it was opened", "try again"}
	case st.Nlink > 1:
		return &RefusedError{path, "it has a hard link, another name by which it can be changed",
			"put a copy in its place"}
	}
	if err := checkOwner(f); err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err != nil {
		return err
	}
	if p.size += len(data); len(data) > most {
		return &RefusedError{path, fmt.Sprintf("it is larger than %d KiB", most>>10), "make it smaller"}
	}
	if p.size > maxTotal {
		return &RefusedError{path, fmt.Sprintf("with it, the project's files are larger than %d MiB",
			maxTotal>>20), "remove some of them"}
	}
	p.Files = append(p.Files, File{Name: name, Path: path, Data: data})
	return nil
}

// notA returns the error for a name of another kind.
func (p *Project) notA(what, name string, st *unix.Stat_t) error {
	why := "it is no " + what
	if kind(st) == unix.S_IFLNK {
		why = "it is a symbolic link"
	}
	return &RefusedError{p.path(name), why, "put a " + what + " in its place"}
}

// checkOwner refuses what other users can change. Root's files are as good as the user's own.
// A group may write: what it writes is not what was trusted.
func checkOwner(f *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	switch {
	case st.Uid != 0 && st.Uid != uint32(os.Geteuid()):
		return &RefusedError{f.Name(), fmt.Sprintf("it belongs to another user (%d)", st.Uid),
			"put a copy of your own in its place"}
	case st.Mode&unix.S_IWOTH != 0:
		return &RefusedError{f.Name(), "every user can write to it", "run chmod o-w " + text.Word(f.Name())}
	}
	return nil
}

func kind(st *unix.Stat_t) uint32 { return uint32(st.Mode) & unix.S_IFMT } //nolint:unconvert,nolintlint // 16 bits on macOS

// statAt looks at the last part of a path in the directory that is open for the others.
func statAt(dir *os.File, path string, st *unix.Stat_t) error {
	if err := unix.Fstatat(int(dir.Fd()), filepath.Base(path), st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return nil
}

// openAt opens the last part of a path in the directory that is open for the others, nil for
// the whole path. It follows no link at the last part.
func openAt(dir *os.File, path string, flags int) (*os.File, error) {
	at, name := unix.AT_FDCWD, path
	if dir != nil {
		at, name = int(dir.Fd()), filepath.Base(path)
	}
	for {
		fd, err := unix.Openat(at, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == nil {
			return os.NewFile(uintptr(fd), path), nil
		}
		if !errors.Is(err, unix.EINTR) {
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// The bounds of what is read.
const (
	maxConfig = 256 << 10 // bytes of the configuration
	maxRules  = 4 << 20   // of a rule file
	maxTotal  = 16 << 20  // of all files
	maxFiles  = 1024      // rule files
)

// A reading is what only this system knows of a project that was read.
type reading struct {
	id   identity
	size int // of the files, in bytes
}

// identity tells a directory from others that have its name later.
type identity struct {
	device, inode uint64
	born          int64 // in ns; 0 if the file system does not say
}

// same reports whether both are of one directory. Some file systems get another device
// number at every start of the machine; the time of birth does not change.
func (i identity) same(other identity) bool {
	if i.born != 0 && other.born != 0 {
		return i.inode == other.inode && i.born == other.born
	}
	return i.inode == other.inode && i.device == other.device
}
