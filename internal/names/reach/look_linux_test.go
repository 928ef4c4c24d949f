// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/dirs"
)

// TestMapped: what a command has mapped into its memory it changes without a sign, so that the files are
// read again where one could.
func TestMapped(t *testing.T) {
	dir := workspace(t, map[string]string{"run": "#!/bin/sh\necho good\n"})
	f, err := os.OpenFile(filepath.Join(dir, "run"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := unix.Mmap(int(f.Fd()), 0, len("#!/bin/sh\necho good\n"), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(text) }()
	text[0] = '#' // the page is known to be changed from now on
	at, err := dirs.Dir()
	if err != nil {
		t.Fatal(err)
	}
	posted, err := dirs.PublishNotice(at, dirs.Writers,
		&dirs.Notice{Run: "r", PID: 1, Program: "w", Paths: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer posted.Withdraw()
	l := TakeLook(command(dir, "./run"), true)
	defer l.Close()
	var by *approval.WriterError
	if err := l.Writer(); !errors.As(err, &by) || by.Path != filepath.Join(dir, "run") || by.Run != "r" {
		t.Errorf("%v", err)
	}
	copy(text[len("#!/bin/sh\necho "):], "evil")
	posted.Withdraw() // its command has ended
	if changed, err := l.Start(true); changed == "" || err != nil {
		t.Errorf("%q, %v", changed, err)
	}
}

// TestUnknownWriter: what another run does and cannot be read may be about every file.
func TestUnknownWriter(t *testing.T) {
	dir := workspace(t, map[string]string{"run": "#!/bin/sh\n"})
	at, err := dirs.Dir()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(at, string(dirs.Writers)), 0o700),
		os.Mkdir(filepath.Join(at, string(dirs.Writers), "x"), 0o700)); err != nil {
		t.Fatal(err)
	}
	l := TakeLook(command(dir, "./run"), true)
	defer l.Close()
	var by *approval.WriterError
	if err := l.Writer(); !errors.As(err, &by) {
		t.Errorf("%v", err)
	}
}

// TestNoState: where other runs cannot be told, nothing that opens anything starts.
func TestNoState(t *testing.T) {
	dir := workspace(t, map[string]string{"run": "#!/bin/sh\n", "state": "x"})
	t.Setenv("XDG_STATE_HOME", dir+"/state")
	l := TakeLook(command(dir, "./run"), true)
	defer l.Close()
	if _, err := l.Start(true); err == nil {
		t.Error("it starts")
	}
}
