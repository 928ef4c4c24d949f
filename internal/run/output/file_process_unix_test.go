// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package output

import (
	"bufio"
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

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// childEnv makes this program another process that uses a directory: what it is to do.
const childEnv = "SALLYPORT_TEST_SPILL"

const childSize = 1000

func TestMain(m *testing.M) {
	what, dir, ok := strings.Cut(os.Getenv(childEnv), ",")
	logDir := os.Getenv(limitEnv)
	if !ok && logDir == "" {
		os.Exit(m.Run())
	}
	run := func() error { return child(what, dir) }
	if logDir != "" {
		run = func() error { return limitedLog(logDir) }
	}
	if err := run(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// child writes a file, says so, and waits for the end of its input.
func child(what, dir string) error {
	s := &Store{Dir: dir, Total: 3 * childSize}
	if what == "limited" {
		return limited(&Store{Dir: dir})
	}
	f, err := s.Create(childSize)
	if err != nil {
		return err
	}
	f.Append(sample(0, childSize))
	if what == "ended" {
		f.End()
	}
	fmt.Println(f.name)
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	n := 0
	for _, ok := range readable(fatal(func(error) {}), f, sample(0, childSize), childSize) {
		if ok {
			n++
		}
	}
	fmt.Println(n)
	return s.Close()
}

// limited writes more than the system lets it, which also sends a signal.
func limited(s *Store) error {
	const allowed = 300_000
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: allowed, Max: allowed}); err != nil {
		return err
	}
	f, err := s.Create(usual)
	if err != nil {
		return err
	}
	all := sample(0, 1<<20)
	for i := 0; i < len(all); i += 50_000 {
		f.Append(all[i:min(i+50_000, len(all))])
	}
	f.End()
	head, tail, end := f.Kept()
	if end != allowed || head != tail || !errors.Is(f.Err(), unix.EFBIG) {
		return fmt.Errorf("kept %d, %d..%d, %w", head, tail, end, f.Err())
	}
	var failed error
	readable(fatal(func(err error) { failed = errors.Join(failed, err) }), f, all, 4096)
	if failed == nil {
		fmt.Println("limited")
	}
	return errors.Join(failed, s.Close())
}

// fatal stands for a test.
type fatal func(error)

func (fatal) Helper() {}

func (f fatal) Fatalf(format string, args ...any) { f(fmt.Errorf(format, args...)) }

// A process is a child and how to talk to it.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t *testing.T, what, dir string) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+what+","+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &process{cmd, in, bufio.NewScanner(out)}
}

func (p *process) line(t *testing.T) string {
	t.Helper()
	if !p.out.Scan() {
		t.Fatalf("the other process says nothing: %v", p.out.Err())
	}
	return p.out.Text()
}

// finish ends the input of a child and returns what it could still read.
func (p *process) finish(t *testing.T) string {
	t.Helper()
	p.in.Close()
	line := p.line(t)
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the other process: %v", err)
	}
	return line
}

func exists(t *testing.T, dir, name string) bool {
	t.Helper()
	_, err := os.Lstat(filepath.Join(dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// TestTwoProcesses: what another process writes stays, what it has ended makes room.
func TestTwoProcesses(t *testing.T) {
	testenv.RunAsOrdinary(t)
	s := newStore(t, 3*childSize)
	writing, ended := start(t, "writing", s.Dir), start(t, "ended", s.Dir)
	writes, done := writing.line(t), ended.line(t) // the names of their files
	a := create(t, s, childSize)
	if !exists(t, s.Dir, writes) || !exists(t, s.Dir, done) {
		t.Fatal("a file of a living process was taken for one that was left")
	}
	a.Append(sample(0, childSize)) // fits
	if !exists(t, s.Dir, done) || a.Err() != nil {
		t.Fatalf("there was room: %v", a.Err())
	}
	b := create(t, s, childSize)
	b.Append(sample(0, childSize/2))
	if exists(t, s.Dir, done) || b.Err() != nil {
		t.Errorf("the ended file of another process makes no room: %v", b.Err())
	}
	if !exists(t, s.Dir, writes) {
		t.Error("a file that another process writes is gone")
	}
	if got := ended.finish(t); got != "0" {
		t.Errorf("its owner reads %s bytes of what was removed", got)
	}
	if got := writing.finish(t); got != fmt.Sprint(childSize) {
		t.Errorf("the other process reads %s bytes", got)
	}
}

// TestCrashLeavesNothing: the files of a killed process go at the next start.
func TestCrashLeavesNothing(t *testing.T) {
	testenv.RunAsOrdinary(t)
	s := newStore(t, 0)
	var names []string
	for _, what := range []string{"writing", "ended"} {
		p := start(t, what, s.Dir)
		names = append(names, p.line(t))
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = p.cmd.Wait() // it was killed
		if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
			t.Fatal("it ended by itself")
		}
	}
	if exists(t, s.Dir, names[0]) || !exists(t, s.Dir, names[1]) {
		t.Fatal("the second process did not remove what the first one left")
	}
	mine := create(t, s, usual)
	if exists(t, s.Dir, names[1]) || !exists(t, s.Dir, mine.name) {
		t.Error("what a killed process has left is still there")
	}
}

// TestWriteError: where writing fails, what comes later is missing, and that is all.
func TestWriteError(t *testing.T) {
	testenv.RunAsOrdinary(t)
	p := start(t, "limited", filepath.Join(t.TempDir(), "spill"))
	if got := p.finish(t); got != "limited" {
		t.Error(got)
	}
}
