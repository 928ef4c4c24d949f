// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// appearing are the things that a command can put at a name.
func appearing() []struct {
	name string
	make func(path string) error
	want Kind
} {
	return []struct {
		name string
		make func(path string) error
		want Kind
	}{
		{"file", func(p string) error { return os.WriteFile(p, []byte("gitdir: /x"), 0o600) }, KindFile},
		{"directory", func(p string) error { return os.MkdirAll(filepath.Join(p, "hooks"), 0o755) }, KindDirectory},
		{"closed directory", func(p string) error {
			return errors.Join(os.MkdirAll(filepath.Join(p, "hooks"), 0o755), os.Chmod(p, 0))
		}, KindDirectory},
		{"link", func(p string) error { return os.Symlink("/etc", p) }, KindLink},
		{"dangling link", func(p string) error { return os.Symlink("nowhere", p) }, KindLink},
		{"pipe", func(p string) error { return unix.Mkfifo(p, 0o600) }, KindPipe},
		{"socket", func(p string) error {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: p, Net: "unix"})
			if err != nil {
				return err
			}
			l.SetUnlinkOnClose(false)
			return l.Close()
		}, KindSocket},
	}
}

// TestAppears has everything appear at a watched name: seen at once, or only by
// the last look.
func TestAppears(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedInotify(t)
	for _, tt := range appearing() {
		for _, blind := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, blind %v", tt.name, blind), func(t *testing.T) {
				p := newPlace(t)
				t.Chdir(p.work) // a socket's path is short
				k := p.protector()
				if blind {
					failCall(k, "inotify", unix.EMFILE)
				}
				h := p.hold(k, p.watch(".git")...)
				if blind != (len(h.Weaker()) == 1) {
					t.Errorf("weaker: %v", h.Weaker())
				}
				check(t, tt.make("other"))
				check(t, unix.Rename("other", ".git"))
				found := p.finish(h)
				if len(found) != 1 || found[0].Kind != tt.want || found[0].Path != p.path(".git") ||
					found[0].Why != "git" {
					t.Fatalf("found %+v", found)
				}
				l, err := statAt(unix.AT_FDCWD, found[0].MovedTo)
				check(t, err)
				if l.kind() != tt.want ||
					filepath.Dir(filepath.Dir(found[0].MovedTo)) != filepath.Join(p.state, quarantineDir) {
					t.Errorf("a %s is at %s", l.kind(), found[0].MovedTo)
				}
				if about := noteOf(t, found[0]); about.Path != p.path(".git") || about.Kind != tt.want ||
					cmp.Diff(about.Why, []string{"git"}) != "" {
					t.Errorf("note %+v", about)
				}
				if again := p.finish(h); len(again) != 1 {
					t.Errorf("the second Finish found %v", again)
				}
				h.Release()
				check(t, os.Mkdir(p.path(".git"), 0o700))
				check(t, k.Close())
				if got := names(t, p.work); cmp.Diff(got, []string{".git"}) != "" {
					t.Errorf("after the release: %q", got)
				}
			})
		}
	}
}

// noteOf returns the note of what was moved.
func noteOf(t *testing.T, f Found) (about note) {
	t.Helper()
	data, err := os.ReadFile(filepath.Dir(f.MovedTo) + noteSuffix)
	check(t, err)
	check(t, json.Unmarshal(data, &about))
	return about
}

// TestMovedAtOnce has a name vanish without a last look.
func TestMovedAtOnce(t *testing.T) {
	testenv.NeedInotify(t)
	p := newPlace(t)
	k := p.protector()
	h, other := p.hold(k, p.watch(".git")...), p.hold(k, p.watch(".git")...)
	// What inotify tells about the quarantine is when it has been filled.
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	check(t, err)
	f := os.NewFile(uintptr(fd), "inotify")
	defer f.Close()
	_, err = unix.InotifyAddWatch(fd, p.work, unix.IN_MOVED_FROM)
	check(t, err)
	check(t, os.Mkdir(p.path(".git"), 0o700))
	buf := make([]byte, 4096)
	_, err = f.Read(buf)
	check(t, err)
	if exists(p.path(".git")) {
		t.Error("it is still there")
	}
	if one, two := p.finish(h), p.finish(other); len(one) != 1 || cmp.Diff(one, two) != "" {
		t.Errorf("found %v and %v", one, two)
	}
}

// TestFlicker has a name appear and vanish many times: what is told and moved is
// bounded, and nothing stays.
func TestFlicker(t *testing.T) {
	p := newPlace(t)
	k := p.protector()
	h := p.hold(k, p.watch(".git")...)
	for range 300 {
		_ = os.Mkdir(p.path(".git"), 0o700) // may be there still, when it is not moved at once any more
		_ = os.Remove(p.path(".git"))
	}
	check(t, os.MkdirAll(p.path(".git"), 0o700))
	found := p.finish(h)
	if len(found) == 0 || len(found) > maxFound+maxMoves+1 {
		t.Errorf("%d found", len(found))
	}
	if exists(p.path(".git")) {
		t.Error("it is still there")
	}
	if items := names(t, filepath.Join(p.state, quarantineDir)); len(items) > 2*(maxMoves+1) {
		t.Errorf("%d files in quarantine", len(items))
	}
}

// TestReplacedDirectory has a command that moves the watched directory and puts
// something else there.
func TestReplacedDirectory(t *testing.T) {
	testenv.RunAsOrdinary(t)
	tests := []struct {
		name string
		do   func(p place) error
		want int    // found
		err  string // of Finish
	}{
		{name: "another directory with the name", want: 1, do: func(p place) error {
			return errors.Join(os.Rename(p.path("d"), p.path("e")), os.MkdirAll(p.path("d/.git"), 0o700))
		}},
		{name: "both", want: 2, do: func(p place) error {
			return errors.Join(os.Rename(p.path("d"), p.path("e")), os.MkdirAll(p.path("d/.git"), 0o700),
				os.Mkdir(p.path("e/.git"), 0o700))
		}},
		{name: "removed", do: func(p place) error { return os.Remove(p.path("d")) }},
		{name: "a file", do: func(p place) error {
			return errors.Join(os.Remove(p.path("d")), os.WriteFile(p.path("d"), nil, 0o600))
		}},
		{name: "a link", err: "replaced", do: func(p place) error {
			return errors.Join(os.Mkdir(p.path("e"), 0o700), os.Mkdir(p.path("e/.git"), 0o700),
				os.Remove(p.path("d")), os.Symlink("e", p.path("d")))
		}},
		{name: "closed", want: 1, do: func(p place) error {
			return errors.Join(os.Mkdir(p.path("d/.git"), 0o700), os.Chmod(p.path("d"), 0))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			k := p.protector()
			check(t, os.Mkdir(p.path("d"), 0o700))
			h := p.hold(k, p.watch("d/.git")...)
			check(t, tt.do(p))
			found, err := h.Finish()
			if len(found) != tt.want {
				t.Errorf("found %v, want %d", found, tt.want)
			}
			var q *QuarantineError
			if (tt.err == "") != (err == nil) || err != nil &&
				(!errors.As(err, &q) || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("Finish: %v", err)
			}
			if l, err := statAt(unix.AT_FDCWD, p.path("d")); tt.err == "" && err == nil && l.isDir() &&
				exists(p.path("d/.git")) {
				t.Error("the name is still there")
			}
			_ = os.Chmod(p.path("d"), 0o700) // it is gone in some cases
		})
	}
}

// TestBound fills the quarantine and lets time pass.
func TestBound(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		name string
		max  int64
		ages []time.Duration
		want []int // indexes that stay
	}{
		{name: "room for all", max: 1 << 30, ages: []time.Duration{time.Hour, 29 * 24 * time.Hour}, want: []int{0, 1}},
		{name: "too old", max: 1 << 30, ages: []time.Duration{31 * 24 * time.Hour, 2 * time.Hour}, want: []int{1}},
		{name: "too much, oldest first", max: 150 << 10, ages: []time.Duration{5 * time.Hour, 9 * time.Hour, 3 * time.Hour}, want: []int{2}},
		{name: "too much, but young", max: 1, ages: []time.Duration{time.Minute, 2 * time.Hour}, want: []int{0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			b, err := openQuarantine(p.state, true)
			check(t, err)
			defer b.close()
			b.max = tt.max
			var made []string
			for _, age := range tt.ages {
				b.now = func() time.Time { return now.Add(-age) }
				item, err := b.item()
				check(t, err)
				made = append(made, item)
				check(t, os.Mkdir(filepath.Join(b.path, item, ".git"), 0))
				check(t, os.WriteFile(filepath.Join(b.path, item, "big"), make([]byte, 100<<10), 0o600))
				check(t, os.WriteFile(filepath.Join(b.path, item+noteSuffix), nil, 0o600))
			}
			b.now = func() time.Time { return now }
			var r Report
			check(t, b.bound(&r))
			for i, item := range made {
				stays := exists(filepath.Join(b.path, item))
				if want := slices.Contains(tt.want, i); stays != want ||
					exists(filepath.Join(b.path, item)+noteSuffix) != want {
					t.Errorf("item %d stays: %v, want %v", i, stays, want)
				}
			}
			if r.Quarantined != len(tt.want) || len(r.Discarded) != len(made)-len(tt.want) {
				t.Errorf("told: %+v", r)
			}
		})
	}
}
