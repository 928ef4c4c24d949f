// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// ownershipCalls give files to the user other, whom the sandbox does not know. Each reports the
// name of its error.
func ownershipCalls() map[string]attack {
	table := map[string]func(ws, out string, other int) error{
		"give-path":        func(ws, _ string, other int) error { return unix.Chown(ws+"/file", other, -1) },
		"give-group":       func(ws, _ string, other int) error { return unix.Chown(ws+"/file", -1, other) },
		"give-directory":   func(ws, _ string, other int) error { return unix.Chown(ws+"/dir/", other, other) },
		"give-link":        func(ws, _ string, other int) error { return unix.Lchown(ws+"/way-out", other, other) },
		"give-follow-in":   func(ws, _ string, other int) error { return unix.Chown(ws+"/to-file", other, other) },
		"give-follow-out":  func(ws, _ string, other int) error { return unix.Chown(ws+"/way-out", other, other) },
		"give-missing":     func(ws, _ string, other int) error { return unix.Chown(ws+"/missing", other, other) },
		"give-slash":       func(ws, _ string, other int) error { return unix.Chown(ws+"/file/", other, other) },
		"give-closed":      func(ws, _ string, other int) error { return unix.Chown(ws+"/closed/file", other, other) },
		"give-git":         func(ws, _ string, other int) error { return unix.Chown(ws+"/.git/config", other, other) },
		"give-out":         func(_, out string, other int) error { return unix.Chown(out+"/canary", other, other) },
		"give-device":      func(_, _ string, other int) error { return unix.Chown("/dev/null", other, other) },
		"give-out-fd":      func(_, out string, other int) error { return ownFD(out+"/canary", unix.O_RDONLY, other) },
		"give-fd":          func(ws, _ string, other int) error { return ownFD(ws+"/file", unix.O_RDONLY, other) },
		"give-fd-nameless": func(ws, _ string, other int) error { return ownFD(ws, unix.O_TMPFILE|unix.O_RDWR, other) },
		"give-fd-path":     func(ws, _ string, other int) error { return ownFD(ws+"/file", unix.O_PATH, other) },
		"give-fd-none":     func(_, _ string, other int) error { return unix.Fchown(unix.AT_FDCWD, other, other) },
		"give-fd-pipe":     func(_, _ string, other int) error { return unix.Fchown(1, other, other) },
		"give-at":          func(ws, _ string, other int) error { return ownAt(ws, "way-out", other, unix.AT_SYMLINK_NOFOLLOW) },
		"give-at-path":     func(ws, _ string, other int) error { return ownAt(ws+"/file", "", other, unix.AT_EMPTY_PATH) },
		"give-at-empty":    func(ws, _ string, other int) error { return ownAt(ws+"/file", "", other, 0) },
		"give-at-flags":    func(ws, _ string, other int) error { return ownAt(ws, "file", other, 1) },
		"give-at-cwd": func(_, _ string, other int) error {
			return unix.Fchownat(unix.AT_FDCWD, "", other, other, unix.AT_EMPTY_PATH)
		},
		"give-mapped": func(ws, _ string, _ int) error { return unix.Chown(ws+"/file", os.Getuid(), os.Getgid()) },
		"give-keep":   func(ws, _ string, _ int) error { return unix.Chown(ws+"/file", -1, -1) },
	}
	calls := make(map[string]attack)
	for name, call := range table {
		calls[name] = func(kv map[string]string) outcome {
			other, err := strconv.Atoi(kv["other"])
			if err != nil {
				return bad("%v", err)
			}
			if err := call(kv["ws"], kv["out"], other); err != nil {
				return fine("%s", errnoName(err))
			}
			return fine("done")
		}
	}
	return calls
}

func ownFD(name string, flags, other int) error {
	fd, err := unix.Open(name, flags, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fchown(fd, other, other)
}

func ownAt(at, name string, other, flags int) error {
	fd, err := unix.Open(at, unix.O_PATH, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fchownat(fd, name, other, other, flags)
}

// ownable are the calls that succeed for root outside, in a writable place of the sandbox.
var ownable = []string{
	"give-path", "give-group", "give-directory", "give-link", "give-follow-in", "give-fd", "give-fd-nameless",
	"give-at", "give-at-path", "give-at-cwd",
}

// TestOwnership: giving files to others succeeds without effect in writable places for root, is
// counted, and fails as outside for an ordinary user. Everywhere else the error is the kernel's.
func TestOwnership(t *testing.T) {
	testenv.RunAsOrdinary(t)
	given := "done"
	if os.Geteuid() != 0 {
		given = "EPERM"
	}
	for _, tt := range []struct {
		name, level string
		errors      bool
		in, out     string // of ownable calls, and behind a wall
	}{
		{"native", plan.LevelNative, false, given, "EROFS"},
		{"native, error", plan.LevelNative, true, "EINVAL", "EROFS"},
		{"landlock", plan.LevelLandlock, false, given, "EPERM"},
		{"landlock, error", plan.LevelLandlock, true, "EPERM", "EPERM"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := ownershipArena(t, tt.level)
			var after executor.Exit
			got := a.attack(t, &job{after: &after, ownership: tt.errors}, names(ownershipCalls()),
				"other="+strconv.Itoa(os.Geteuid()+1000))
			want := map[string]string{
				"give-missing": "ENOENT", "give-slash": "ENOTDIR", "give-closed": "EACCES", "give-at-empty": "ENOENT", "give-at-flags": "EINVAL",
				"give-fd-path": "EBADF", "give-fd-none": "EBADF", "give-fd-pipe": "EINVAL", "give-mapped": "done", "give-keep": "done",
				"give-out": tt.out, "give-out-fd": tt.out, "give-git": tt.out, "give-device": tt.out, "give-follow-out": tt.out,
			}
			inPlace := ownable
			if tt.level == plan.LevelLandlock {
				// every id is known there, and may not be given
				want["give-fd-pipe"] = "EPERM"
				inPlace = append([]string{"give-git"}, ownable...) // the level does not protect it
			}
			for _, name := range inPlace {
				want[name] = tt.in
			}
			for _, name := range slices.Sorted(maps.Keys(want)) {
				if got[name].detail != want[name] {
					t.Errorf("%s: %s %s, want %s", name, got[name].word, got[name].detail, want[name])
				}
			}
			count := 0
			if tt.in == "done" {
				count = len(inPlace)
			}
			if len(got) != len(want) || after.OwnershipIgnored != count {
				t.Errorf("%d outcomes, want %d; %d ignored, want %d", len(got), len(want),
					after.OwnershipIgnored, count)
			}
			for _, name := range []string{"", "/file", "/dir", "/way-out"} {
				var st unix.Stat_t
				must(t, unix.Lstat(a.ws+name, &st))
				if int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid() {
					t.Errorf("%q belongs to %d:%d", name, st.Uid, st.Gid)
				}
			}
		})
	}
}

// ownershipArena is an arena with links and a directory that no user may search.
func ownershipArena(t *testing.T, level string) *arena {
	t.Helper()
	a := atLevel(t, level)
	must(t, os.Symlink("file", a.ws+"/to-file"))
	must(t, os.Symlink(a.out+"/canary", a.ws+"/way-out"))
	must(t, os.Mkdir(a.ws+"/closed", 0o755))
	write(t, a.ws+"/closed/file", "")
	must(t, os.Chmod(a.ws+"/closed", 0))
	t.Cleanup(func() { _ = os.Chmod(a.ws+"/closed", 0o755) })
	return a
}
