// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ordinaryID is the overflow user and group of Linux, /proc/sys/kernel/overflowuid:
// it owns nothing and has no rights on any usual system.
const ordinaryID = 65534

// runAsOrdinary is RunAsOrdinary for Linux.
func runAsOrdinary(t *testing.T) {
	t.Helper()
	if !IsRoot() || !IsLong() || os.Getenv("SALLYPORT_TEST_ORDINARY") == "elsewhere" {
		return
	}
	name := t.Name()
	t.Run("ordinary", func(t *testing.T) {
		cmd, err := ordinaryCommand(t, name)
		if err != nil {
			t.Fatalf("testenv: prepare the run as user %d: %v", ordinaryID, err)
		}
		output, err := cmd.CombinedOutput()
		report(t, name, string(output), err)
	})
}

// report turns the child's output and end into the result of t.
func report(t testing.TB, name, output string, err error) {
	t.Helper()
	outcome := outcomeOf(output, name)
	switch {
	case err != nil:
		t.Fatalf("%s as user %d: %v\n%s", name, ordinaryID, err, output)
	case outcome == outcomePass:
		t.Logf("%s as user %d:\n%s", name, ordinaryID, output)
	case outcome == outcomeSkip:
		t.Skipf("%s as user %d was skipped:\n%s", name, ordinaryID, output)
	default:
		t.Fatalf("%s as user %d: the run says nothing about the test\n%s", name, ordinaryID, output)
	}
}

// ordinaryCommand returns the command that runs the test name of this binary as
// the ordinary user. What it needs lies in a directory that ends with t.
func ordinaryCommand(t *testing.T, name string) (*exec.Cmd, error) {
	room, err := ordinaryRoom(t)
	if err != nil {
		return nil, err
	}
	program, err := placeProgram(room)
	if err != nil {
		return nil, err
	}
	dir, err := placeDir(room)
	if err != nil {
		return nil, err
	}
	args := []string{"-test.v=true", "-test.count=1", "-test.paniconexit0", "-test.run=" + patternFor(name)}
	if testing.Short() {
		args = append(args, "-test.short=true")
	}
	if deadline, ok := t.Deadline(); ok {
		// A little sooner than ours, so that the child prints its goroutines.
		args = append(args, "-test.timeout="+max(time.Until(deadline)-2*time.Second, time.Second).String())
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	cmd.Env = ordinaryEnviron(room)
	cmd.WaitDelay = 5 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinaryID, Gid: ordinaryID}}
	return cmd, nil
}

// ordinaryRoom makes the directory for one run: traversable for everyone, with home
// and tmp in it that belong to the ordinary user. t.TempDir does not serve, its
// parent is closed to other users.
func ordinaryRoom(t *testing.T) (string, error) {
	parent := os.TempDir()
	if !reachable(parent) {
		parent = "/tmp"
	}
	room, err := os.MkdirTemp(parent, "sallyport-test-")
	if err != nil {
		return "", err
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(room); err != nil {
			t.Errorf("testenv: %v", err)
		}
	})
	if err := os.Chmod(room, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{"home", "tmp"} {
		dir := filepath.Join(room, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return "", err
		}
		if err := os.Chown(dir, ordinaryID, ordinaryID); err != nil {
			return "", err
		}
	}
	return room, nil
}

// placeProgram puts this test binary where the ordinary user may start it; the
// directory in which the go command builds is closed to other users. A hard link
// costs nothing, a copy is for other file systems.
func placeProgram(room string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	program := filepath.Join(room, filepath.Base(self))
	if info, err := os.Stat(self); err == nil && info.Mode().Perm()&0o005 == 0o005 {
		if err := os.Link(self, program); err == nil {
			return program, nil
		}
	}
	// Another goroutine that forks now would keep the file open for writing for a
	// moment, and starting it would fail with ETXTBSY.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return program, copyFile(self, program, 0o755)
}

// placeDir returns the directory for the child to start in: empty, which means the
// directory of this process, if the ordinary user can reach and read it, else a copy
// of its files and its testdata.
func placeDir(room string) (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if reachable(here) && readable(here) {
		return "", nil
	}
	there := filepath.Join(room, "package")
	if err := os.Mkdir(there, 0o755); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(here)
	if err != nil {
		return "", err
	}
	for _, entry := range entries {
		from, to := filepath.Join(here, entry.Name()), filepath.Join(there, entry.Name())
		switch {
		case entry.Type().IsRegular():
			err = copyFile(from, to, 0o644)
		case entry.IsDir() && entry.Name() == "testdata":
			err = copyTree(from, to)
		}
		if err != nil {
			return "", err
		}
	}
	return there, nil
}

// reachable reports whether every directory from / down to dir lets others through.
func reachable(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// readable reports whether others may read what a test reads in dir: the directory
// itself, its files, and all of its testdata.
func readable(dir string) bool {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		outside, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if entry.IsDir() && outside != "." &&
			strings.Split(outside, string(filepath.Separator))[0] != "testdata" {
			return filepath.SkipDir
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		need := fs.FileMode(0o004)
		if entry.IsDir() {
			need = 0o005
		}
		if entry.Type()&fs.ModeSymlink == 0 && info.Mode().Perm()&need != need {
			return fmt.Errorf("%s: %w", path, fs.ErrPermission)
		}
		return nil
	})
	return err == nil
}

// copyTree copies the directory from to the new directory to, readable for everyone.
// Symbolic links are copied as links.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, inside)
		switch {
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case entry.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case entry.Type().IsRegular():
			return copyFile(path, target, 0o644)
		}
		return fmt.Errorf("%s: neither file, directory nor link", path)
	})
}

// copyFile copies a file to the new name to and gives it exactly the mode. A file
// that its owner may run stays one that everyone may run.
func copyFile(from, to string, mode fs.FileMode) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o100 != 0 {
		mode |= 0o111
	}
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Chmod(mode), target.Close())
}

// ordinaryEnviron is the child's environment: ours, with the private home and
// temporary directory and without what names directories of root.
func ordinaryEnviron(room string) []string {
	var env []string
	for _, entry := range Environ() {
		switch name, _, _ := strings.Cut(entry, "="); {
		case strings.HasPrefix(name, "XDG_"), strings.HasPrefix(name, "SUDO_"):
		case name == "GOCACHE", name == "GOMODCACHE", name == "GOPATH", name == "GOTMPDIR",
			name == "GOCOVERDIR":
		case name == "GORACE", name == "HOME", name == "TMPDIR", name == "USER", name == "LOGNAME",
			name == "MAIL":
		default:
			env = append(env, entry)
		}
	}
	return append(env,
		// The race detector otherwise waits a second at the end of each process.
		"GORACE=atexit_sleep_ms=0",
		"HOME="+filepath.Join(room, "home"),
		"TMPDIR="+filepath.Join(room, "tmp"),
		"USER=nobody", "LOGNAME=nobody")
}
