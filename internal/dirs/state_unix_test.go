// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package dirs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/names/guard"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestClean: directories without an owner are removed, also when their command has
// closed them; those with one stay, and so does what is no directory.
func TestClean(t *testing.T) {
	testenv.RunAsOrdinary(t)
	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", home)
	state := hostfacts.RealPath(home) + "/sallyport"
	at, held, err := NewTmp()
	if err != nil || at != state {
		t.Fatal(at, err)
	}
	t.Cleanup(func() { _ = held.Remove() })
	all := state + "/tmp/"
	outside := filepath.Join(t.TempDir(), "outside")
	for _, err := range []error{
		os.Mkdir(all+"run-1", 0o700), os.Mkdir(all+"run-1/in", 0o700),
		os.WriteFile(all+"run-1/in/file", nil, 0o600), os.Chmod(all+"run-1/in", 0),
		os.Mkdir(all+"run-2", 0),
		os.Mkdir(outside, 0o700), os.Symlink(outside, all+"run-3"), os.WriteFile(all+"run-4", nil, 0o600),
		os.Mkdir(all+"mine", 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []Report{{
		State:   state,
		TmpDirs: []string{all + "run-1", all + "run-2"},
		Report: guard.Report{
			Held: []guard.Held{{Path: held.Path, Holders: 1}},
			Unknown: []guard.Left{
				{Path: all + "mine", Why: "not a name that sallyport gives"},
				{Path: all + "run-3", Why: "not a directory"}, {Path: all + "run-4", Why: "not a directory"},
			},
		},
	}}
	if diff := cmp.Diff(want, Clean()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, name := range []string{outside, held.Path, all + "run-4", all + "mine"} {
		if _, err := os.Lstat(name); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(all + "run-2"); err == nil {
		t.Error("a directory that was closed is still there")
	}
}

// TestStrangeStates: what stands at the name of a state directory and is none is neither
// cleaned nor hidden nor used, wherever it leads.
func TestStrangeStates(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for name, plant := range map[string]func(own, outside string) error{
		"link":          func(own, outside string) error { return os.Symlink(outside, own) },
		"file":          func(own, _ string) error { return os.WriteFile(own, nil, 0o600) },
		"link below it": func(own, outside string) error { return linkBelow(own, "tmp", outside) },
		"link to quarantine": func(own, outside string) error {
			return linkBelow(own, "quarantine", outside)
		},
		"link to journal": func(own, outside string) error { return linkBelow(own, "guard", outside) },
	} {
		t.Run(name, func(t *testing.T) {
			home := hostfacts.RealPath(t.TempDir())
			t.Setenv("XDG_STATE_HOME", home)
			own, outside := home+"/sallyport", hostfacts.RealPath(t.TempDir())+"/outside"
			old := outside + "/20200101T000000Z-0123456789abcdef" // as in a quarantine
			for _, err := range []error{
				os.MkdirAll(outside+"/run-1", 0o700), os.WriteFile(outside+"/run-1/file", nil, 0o600),
				os.Mkdir(old, 0o700),
				os.WriteFile(outside+"/t-1", nil, 0o600), plant(own, outside),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			reports := Clean()
			if wrong := name == "link" || name == "file"; wrong &&
				(len(reports) != 1 || len(reports[0].Failed) != 1) {
				t.Errorf("what stands in its place is not reported: %+v", reports)
			}
			for _, file := range []string{outside + "/run-1/file", old, outside + "/t-1"} {
				if _, err := os.Lstat(file); err != nil {
					t.Errorf("cleaning has removed something outside: %v", err)
				}
			}
			if hidden, _ := Protected(); slices.ContainsFunc(hidden,
				func(d string) bool { return strings.HasPrefix(d, outside) }) {
				t.Errorf("hidden are %q", hidden)
			}
			if _, tmp, err := NewTmp(); err == nil {
				_ = tmp.Remove()
				if strings.HasPrefix(hostfacts.RealPath(tmp.Path), outside) {
					t.Errorf("the private /tmp is %s", tmp.Path)
				}
			}
		})
	}
}

// TestWayOfOthers: root uses no state directory that another user can replace, such as one in a
// HOME that sudo has kept, and makes nothing where that user's links lead.
func TestWayOfOthers(t *testing.T) {
	testenv.NeedRoot(t)
	home, outside := hostfacts.RealPath(t.TempDir()), hostfacts.RealPath(t.TempDir())
	const other = 1
	if err := errors.Join(os.Symlink(outside, home+"/.local"), os.Lchown(home+"/.local", other, other),
		os.Chown(home, other, other)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{home, home + "/.local/state"} {
		t.Setenv("XDG_STATE_HOME", dir)
		var foreign *safefile.ForeignError
		if at, err := Dir(); !errors.As(err, &foreign) {
			t.Errorf("the state directory is %q, %v", at, err)
		}
		if dirs := Existing(); len(dirs) != 0 {
			t.Errorf("%q would be cleaned", dirs)
		}
	}
	if names, err := os.ReadDir(outside); err != nil || len(names) != 0 {
		t.Errorf("%v was made outside, %v", names, err)
	}
}

// linkBelow makes a state directory in which name leads outside.
func linkBelow(own, name, outside string) error {
	return errors.Join(os.Mkdir(own, 0o700), os.Symlink(outside, own+"/"+name))
}

// TestTemporaryDirectory: a directory that TMPDIR names is none of ours, for commands may have
// filled it.
func TestTemporaryDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", t.TempDir())
	own := fmt.Sprintf("%s/sallyport-%d", dir, os.Getuid())
	if err := os.MkdirAll(own+"/tmp/run-1", 0o700); err != nil {
		t.Fatal(err)
	}
	Clean()
	if _, err := os.Lstat(own + "/tmp/run-1"); err != nil {
		t.Error(err)
	}
	if hidden, missing := Protected(); slices.Contains(hidden, own) || slices.Contains(missing, own) {
		t.Errorf("%q, %q", hidden, missing)
	}
}

// TestProtected: the state directory of runs without XDG_STATE_HOME is hidden, too.
func TestProtected(t *testing.T) {
	home, other := hostfacts.RealPath(t.TempDir()), hostfacts.RealPath(t.TempDir())
	t.Setenv("HOME", home)
	t.Setenv("XDG_STATE_HOME", other)
	usual := home + "/.local/state/sallyport"
	if err := os.MkdirAll(usual, 0o755); err != nil { // its first use closes it
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o755, 0o700} {
		if err := os.Chmod(usual, mode); err != nil {
			t.Fatal(err)
		}
		hidden, missing := Protected()
		if !slices.Contains(hidden, usual) || !slices.Contains(missing, other+"/sallyport") {
			t.Errorf("mode %o: hidden are %q, missing %q", mode, hidden, missing)
		}
	}
}

// TestLock: one process at a time has a lock of a name; it is no other's, and ends with its file.
func TestLock(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	a, err := Lock("a")
	if err != nil {
		t.Fatal(err)
	}
	b, err := Lock("b")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	got := make(chan error)
	go func() {
		again, err := Lock("a")
		if err == nil {
			err = again.Close()
		}
		got <- err
	}()
	other, err := os.Open(a.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := safefile.Lock(other, unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("it is not locked: %v", err)
	}
	a.Close()
	if err := <-got; err != nil {
		t.Error(err)
	}
}
