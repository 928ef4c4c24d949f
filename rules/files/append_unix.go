// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/rules"
)

// Append adds a line to a rule file, as [rules.Set.Amend] returns it, unless the file has
// this line already. It makes the file, its directory and the directory above if they do
// not exist, and returns when the line is on the disk. It takes the lock of the file if that
// is free, and waits for no process: any that can read the file can hold its lock. Processes that
// change a file at once agree by a lock of their own, or a removal may take an added line along.
//
// The file must be a regular one that belongs to this user, by its own name: a symbolic
// link is refused. The error is an [fs.PathError], and the file is as it was.
func Append(path, line string) error {
	if err := appendTo(path, line); err != nil {
		return &fs.PathError{Op: "append a rule to", Path: path, Err: err}
	}
	return nil
}

// Remove removes each line of a rule file that is this one, and reports whether there was one.
// It returns when that is on the disk. The file is replaced by one with the same mode, so that a
// reader sees the old one or the new one. What Append refuses, Remove refuses, and it takes
// the same lock.
func Remove(path, line string) (found bool, err error) {
	dir, err := directory(path)
	if err == nil {
		defer dir.Close()
		err = locked(dir, filepath.Base(path), unix.O_RDWR, func(f *os.File) error {
			found, err = removeLine(dir, f, filepath.Base(path), line)
			return err
		})
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, &fs.PathError{Op: "remove a rule from", Path: path, Err: err}
	}
	return found, nil
}

func appendTo(path, line string) error {
	if strings.ContainsAny(line, "\r\n\x00") || strings.TrimSpace(line) == "" {
		return errors.New("a rule is one line")
	}
	above := filepath.Dir(path)
	for _, dir := range []string{filepath.Dir(above), above} {
		if err := unix.Mkdir(dir, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("make %s: %w", dir, err)
		}
	}
	dir, err := directory(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return locked(dir, filepath.Base(path), unix.O_RDWR|unix.O_APPEND|unix.O_CREAT,
		func(f *os.File) error { return appendLine(f, line) })
}

// directory opens the directory of a rule file, which must be this user's.
func directory(path string) (*os.File, error) {
	dir, err := open(unix.AT_FDCWD, filepath.Dir(path), unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	if err := own(dir, fs.ModeDir); err != nil {
		dir.Close()
		return nil, fmt.Errorf("its directory %w", err)
	}
	return dir, nil
}

// changing is held by the change of a rule file of this process.
var changing sync.Mutex

// locked calls change with a file that is open and locked, and has this name then.
func locked(dir *os.File, name string, flags int, change func(*os.File) error) error {
	changing.Lock()
	defer changing.Unlock()
	const attempts = 100
	for range attempts {
		f, err := open(int(dir.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK)
		if err != nil {
			return err
		}
		replaced, err := lock(dir, f, name)
		if err == nil && !replaced {
			err = change(f)
		}
		f.Close()
		if !replaced || err != nil {
			return errors.Join(err, dir.Sync()) // a new name in the directory
		}
	}
	return errors.New("another program replaces it again and again")
}

// open opens a name below a directory.
func open(dir int, name string, flags int) (*os.File, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_CLOEXEC, 0o600)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), name), nil
		case errors.Is(err, unix.ELOOP) && flags&unix.O_NOFOLLOW != 0:
			return nil, errors.New("it is a symbolic link; name the file itself")
		case !errors.Is(err, unix.EINTR):
			return nil, err
		}
	}
}

// own returns an error unless a file is of this kind and belongs to this user.
func own(f *os.File, kind fs.FileMode) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var st unix.Stat_t
	switch err := unix.Fstat(int(f.Fd()), &st); {
	case err != nil:
		return err
	case info.Mode().Type() != kind:
		return errors.New("is not a regular file")
	case st.Uid != uint32(os.Geteuid()):
		return errors.New("belongs to another user")
	}
	return nil
}

// lock takes the lock of a file if it is free: a command that sees the file could hold it for ever.
// It reports whether another file has taken its name meanwhile, as editors do it.
func lock(dir, f *os.File, name string) (replaced bool, err error) {
	if err := own(f, 0); err != nil {
		return false, fmt.Errorf("it %w", err)
	}
	if err := safefile.Lock(f, unix.LOCK_EX|unix.LOCK_NB); err != nil && !errors.Is(err, unix.EWOULDBLOCK) {
		return false, fmt.Errorf("lock it: %w", err)
	}
	var here, there unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &here); err != nil {
		return false, err
	}
	gone := errors.Is(unix.Fstatat(int(dir.Fd()), name, &there, unix.AT_SYMLINK_NOFOLLOW), unix.ENOENT)
	return gone || here.Dev != there.Dev || here.Ino != there.Ino, nil
}

// appendLine adds a line to a file that is locked.
func appendLine(f *os.File, line string) error {
	text, err := io.ReadAll(io.LimitReader(f, rules.MaxFile+1))
	if err != nil {
		return err
	}
	for has := range bytes.Lines(text) {
		if string(bytes.TrimRight(has, "\r\n")) == line {
			return nil
		}
	}
	if n := len(text); n > 0 && text[n-1] != '\n' {
		line = "\n" + line
	}
	if len(text)+len(line) >= rules.MaxFile {
		return fmt.Errorf("it has more than %d MiB", rules.MaxFile>>20)
	}
	if _, err = f.WriteString(line + "\n"); err == nil {
		err = f.Sync()
	}
	if err != nil {
		return errors.Join(err, f.Truncate(int64(len(text)))) // half a line would not load
	}
	return nil
}

// removeLine replaces a file that is locked by one without a line.
func removeLine(dir, f *os.File, name, line string) (found bool, err error) {
	text, err := io.ReadAll(io.LimitReader(f, rules.MaxFile+1))
	if err != nil {
		return false, err
	}
	if len(text) > rules.MaxFile {
		return false, fmt.Errorf("it has more than %d MiB", rules.MaxFile>>20)
	}
	var rest []byte
	for has := range bytes.Lines(text) {
		if string(bytes.TrimRight(has, "\r\n")) == line {
			found = true
		} else {
			rest = append(rest, has...)
		}
	}
	info, err := f.Stat()
	if err != nil || !found {
		return false, err
	}
	fresh := "." + name + ".new" // what a killed process left there is written over
	if err := unix.Unlinkat(int(dir.Fd()), fresh, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return false, err
	}
	next, err := open(int(dir.Fd()), fresh, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW)
	if err != nil {
		return false, err
	}
	_, err = next.Write(rest)
	if err = errors.Join(err, next.Chmod(info.Mode().Perm()), next.Sync(), next.Close()); err == nil {
		err = unix.Renameat(int(dir.Fd()), fresh, int(dir.Fd()), name)
	}
	if err != nil {
		_ = unix.Unlinkat(int(dir.Fd()), fresh, 0) // the error above it says more
		return false, err
	}
	return true, nil
}
