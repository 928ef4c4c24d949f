// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

// The tests are in a package of their own: with their imports, package rlimit would be
// initialized after package syscall.
package rlimit_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/linux/rlimit"
)

// The names under which this test binary acts as a helper program.
const (
	lower = "helper:lower" // sets the soft limit to its argument and executes show
	show  = "helper:show"  // prints both limits of this package and of the kernel
)

func TestMain(m *testing.M) {
	switch os.Args[0] {
	case lower:
		fmt.Fprintln(os.Stderr, lowerAndShow(os.Args[1])) // returns only when it fails
		os.Exit(2)
	case show:
		soft, hard, ok := rlimit.FilesAtStart()
		var now syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &now); err != nil {
			os.Exit(2)
		}
		fmt.Println(soft, hard, ok, now.Cur, now.Max)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func lowerAndShow(text string) error {
	soft, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return err
	}
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return err
	}
	l.Cur = soft
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(self, []string{show}, os.Environ())
}

// TestFilesAtStart starts programs with a soft limit below the hard one. Package syscall
// raises it at the start; this package must read it before.
func TestFilesAtStart(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var mine syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &mine); err != nil {
		t.Fatal(err)
	}
	for _, want := range []uint64{200, 201, 64} {
		t.Run(fmt.Sprint(want), func(t *testing.T) {
			cmd := exec.Cmd{Path: self, Args: []string{lower, fmt.Sprint(want)}}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var soft, hard, nowSoft, nowHard uint64
			var ok bool
			if _, err := fmt.Sscan(string(out), &soft, &hard, &ok, &nowSoft, &nowHard); err != nil {
				t.Fatalf("%v in %q", err, out)
			}
			if soft != want || hard != mine.Max || !ok {
				t.Errorf("limits %d and %d, %v; want %d and %d", soft, hard, ok, want, mine.Max)
			}
			// Otherwise the test would not detect a package that reads too late.
			if nowSoft == want {
				t.Errorf("package syscall did not raise the soft limit %d of %d", nowSoft, nowHard)
			}
		})
	}
}

func TestFilesAtStartHere(t *testing.T) {
	soft, hard, ok := rlimit.FilesAtStart()
	if !ok || soft == 0 || soft > hard {
		t.Errorf("limits %d and %d, %v", soft, hard, ok)
	}
}
