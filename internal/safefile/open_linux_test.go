// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package safefile

import (
	"errors"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpen: a regular file is opened, by a link as well; anything else is not even opened.
func TestOpen(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := errors.Join(os.WriteFile("file", []byte("text"), 0o600), os.Symlink("file", "link"),
		unix.Mkfifo("pipe", 0o600), os.Symlink("pipe", "to-pipe"), os.Mkdir("dir", 0o700)); err != nil {
		t.Fatal(err)
	}
	events, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(events)
	for _, name := range []string{"pipe", "dir"} {
		if _, err := unix.InotifyAddWatch(events, name, unix.IN_OPEN); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"file", "link"} {
		f, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(f); string(text) != "text" || err != nil {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		f.Close()
	}
	for name, want := range map[string]error{"pipe": ErrNotPlain, "to-pipe": ErrNotPlain, "dir": ErrNotPlain,
		"none": os.ErrNotExist} {
		if f, err := Open(name); !errors.Is(err, want) {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
	if n, err := unix.Read(events, make([]byte, 1<<10)); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("something was opened: %d bytes of events, %v", n, err)
	}
}
