// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/testenv"
)

// TestPlaceholders follows placeholders from the first Hold to Close.
func TestPlaceholders(t *testing.T) {
	testenv.RunAsOrdinary(t)
	p := newPlace(t)
	k := p.keeper()
	h := p.hold(k, p.covers(".codex", ".agents", "odd \xff\n\"name")...)
	list := h.Placeholders()
	if len(list) != 3 {
		t.Fatalf("placeholders: %v", list)
	}
	for _, one := range list {
		info, err := os.Lstat(one.Path)
		check(t, err)
		if info.Mode().Perm()&0o222 != 0 || !info.IsDir() {
			t.Errorf("%s has mode %v", one.Path, info.Mode())
		}
		var st unix.Stat_t
		check(t, unix.Lstat(one.Path, &st))
		if st.Dev != one.Dev || st.Ino != one.Ino {
			t.Errorf("%s is %d/%d, told %d/%d", one.Path, st.Dev, st.Ino, one.Dev, one.Ino)
		}
	}
	if found := p.finish(h); len(found) > 0 {
		t.Errorf("found %v", found)
	}
	h.Release()
	h.Release()
	again := p.hold(k, p.covers(".codex")...)
	if got := again.Placeholders()[0]; got != list[0] {
		t.Errorf("the second hold has %v, the first had %v", got, list[0])
	}
	again.Release()
	check(t, k.Close())
	p.wantClean()
	if _, err := k.Hold(nil); !errors.Is(err, ErrClosed) {
		t.Errorf("Hold after Close: %v", err)
	}
}

// TestShared has two keepers, as two processes do.
func TestShared(t *testing.T) {
	p := newPlace(t)
	one, two := p.keeper(), p.keeper()
	first := p.hold(one, p.covers("a", "b")...)
	second := p.hold(two, p.covers("b", "c")...)
	if first.Placeholders()[1] != second.Placeholders()[0] {
		t.Errorf("not shared: %v, %v", first.Placeholders(), second.Placeholders())
	}
	check(t, one.Close())
	if exists(p.path("a")) || !exists(p.path("b")) || !exists(p.path("c")) {
		t.Errorf("after the first: %q", names(t, p.work))
	}
	if cause(second) != nil {
		t.Errorf("the second is broken: %v", cause(second))
	}
	check(t, two.Close())
	p.wantClean()
}

// TestExists has something at the name: it is told, and nothing is left.
func TestExists(t *testing.T) {
	testenv.RunAsOrdinary(t)
	tests := []struct {
		name  string
		make  func(path string) error
		cover bool
		want  Kind
	}{
		{name: "file", make: func(p string) error { return os.WriteFile(p, nil, 0o600) }, cover: true, want: KindFile},
		{name: "directory", make: func(p string) error { return os.Mkdir(p, 0o755) }, cover: true, want: KindDirectory},
		{name: "closed empty directory of the user", make: func(p string) error { return os.Mkdir(p, 0o555) }, cover: true, want: KindDirectory},
		{name: "link", make: func(p string) error { return os.Symlink("/etc", p) }, cover: true, want: KindLink},
		{name: "dangling link", make: func(p string) error { return os.Symlink("nowhere", p) }, cover: true, want: KindLink},
		{name: "pipe", make: func(p string) error { return unix.Mkfifo(p, 0o600) }, cover: true, want: KindPipe},
		{name: "watched directory", make: func(p string) error { return os.Mkdir(p, 0o755) }, want: KindDirectory},
		{name: "watched link", make: func(p string) error { return os.Symlink("nowhere", p) }, want: KindLink},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			k := p.keeper()
			check(t, tt.make(p.path("x")))
			before := inode(t, p.path("x"))
			claims := append(p.covers("first"), Claim{Path: p.path("x"), Placeholder: tt.cover})
			claims = append(claims, p.covers("last")...)
			_, err := k.Hold(claims)
			var exist *ExistsError
			if !errors.As(err, &exist) || exist.Kind != tt.want || exist.Path != p.path("x") {
				t.Fatalf("Hold: %v", err)
			}
			if got := names(t, p.work); len(got) != 1 {
				t.Errorf("in the workspace: %q", got)
			}
			check(t, k.Close())
			if inode(t, p.path("x")) != before {
				t.Error("what stood there was replaced")
			}
			check(t, os.RemoveAll(p.path("x")))
			p.wantClean()
		})
	}
}

// TestRefused has claims that cannot be held.
func TestRefused(t *testing.T) {
	tests := []struct {
		name, path string
		make       func(p place) error
		want       error
		fix        string
	}{
		{name: "empty", want: unix.EINVAL, fix: "absolute"},
		{name: "relative", path: "x", want: unix.EINVAL, fix: "absolute"},
		{name: "root", path: "/", want: unix.EINVAL, fix: "absolute"},
		{name: "not clean", path: "/tmp/../x", want: unix.EINVAL, fix: "absolute"},
		{name: "zero byte", path: "/tmp/a\x00b", want: unix.EINVAL, fix: "absolute"},
		{name: "no directory", path: "WORK/none/x", want: unix.ENOENT, fix: "must exist"},
		{name: "file as directory", path: "WORK/f/x", want: unix.ENOTDIR, fix: "must exist",
			make: func(p place) error { return os.WriteFile(p.path("f"), nil, 0o600) }},
		{name: "link as directory", path: "WORK/l/x", want: unix.ELOOP, fix: "symbolic link",
			make: func(p place) error { return os.Symlink(p.state, p.path("l")) }},
		{name: "link further up", path: "WORK/l/sub/x", want: unix.ELOOP, fix: "symbolic link",
			make: func(p place) error {
				return errors.Join(os.Symlink(p.state, p.path("l")), os.Mkdir(filepath.Join(p.state, "sub"), 0o700))
			}},
		{name: "name too long", path: "WORK/" + strings.Repeat("x", 300), want: unix.ENAMETOOLONG, fix: "shorter"},
	}
	for _, tt := range tests {
		for _, cover := range []bool{true, false} {
			name := tt.name + ", watch"
			if cover {
				name = tt.name + ", placeholder"
			}
			t.Run(name, func(t *testing.T) {
				p := newPlace(t)
				k := p.keeper()
				if tt.make != nil {
					check(t, tt.make(p))
				}
				path := strings.Replace(tt.path, "WORK", p.work, 1)
				_, err := k.Hold([]Claim{{Path: path, Placeholder: cover}})
				var hold *HoldError
				if !errors.As(err, &hold) || !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.fix) {
					t.Errorf("Hold: %v", err)
				}
				if exists(filepath.Join(p.state, "x")) || exists(filepath.Join(p.state, "sub/x")) {
					t.Error("a link was followed")
				}
			})
		}
	}
}

// TestOpenDir: no symbolic link is followed, wherever on the way it is.
func TestOpenDir(t *testing.T) {
	p := newPlace(t)
	check(t, os.MkdirAll(p.path("a/b"), 0o700))
	check(t, os.Symlink("a", p.path("l")))
	check(t, os.WriteFile(p.path("f"), nil, 0o600))
	for path, want := range map[string]error{
		"/": nil, p.work: nil, p.path("a"): nil, p.path("a/b"): nil, p.path("l"): unix.ELOOP, p.path("l/b"): unix.ELOOP,
		p.path("f"): unix.ENOTDIR, p.path("f/b"): unix.ENOTDIR, p.path("none"): unix.ENOENT,
	} {
		fd, err := openDir(path)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
		if err != nil {
			continue
		}
		if s, err := statAt(fd, ""); err != nil || s.ident != inode(t, path) {
			t.Errorf("%s: %v, %v", path, s, err)
		}
		unix.Close(fd)
	}
}

// TestSkipped has directories that are not this user's to write.
func TestSkipped(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedInotify(t)
	testenv.NeedOrdinaryUser(t)
	p := newPlace(t)
	k := p.keeper()
	h := p.hold(k, Claim{Path: "/etc/sallyport-test-name", Placeholder: true}, p.covers("x")[0])
	if len(h.Placeholders()) != 1 || len(h.Weaker()) > 0 {
		t.Errorf("placeholders %v, weaker %v", h.Placeholders(), h.Weaker())
	}
	check(t, k.Close())
	p.wantClean()
}

// TestClosedDirectory has a directory that is closed, but which a command of the same
// user can open.
func TestClosedDirectory(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedInotify(t)
	testenv.NeedOrdinaryUser(t)
	p := newPlace(t)
	k := p.keeper()
	check(t, os.Mkdir(p.path("d"), 0o555))
	h := p.hold(k, p.covers("d/x")...)
	if len(h.Placeholders()) > 0 || len(h.Weaker()) != 1 {
		t.Errorf("placeholders %v, weaker %v", h.Placeholders(), h.Weaker())
	}
	check(t, os.Chmod(p.path("d"), 0o755))
	check(t, os.Mkdir(p.path("d/x"), 0o755))
	if found := p.finish(h); len(found) != 1 || exists(p.path("d/x")) {
		t.Errorf("found %v", found)
	}
	h.Release()

	check(t, os.Chmod(p.path("d"), 0))
	check(t, os.Chmod(p.work, 0))
	_, err := k.Hold(p.covers("d/y"))
	check(t, os.Chmod(p.work, 0o700))
	var hold *HoldError
	if !errors.As(err, &hold) || !strings.Contains(err.Error(), "chmod u+x") {
		t.Errorf("a directory above is closed: %v", err)
	}
	check(t, os.Remove(p.path("d")))
}

// TestBroken loses a placeholder in every way.
func TestBroken(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedInotify(t)
	tests := []struct {
		name string
		do   func(p place) error
		what string
		late bool // no event tells it
	}{
		{name: "removed", do: func(p place) error { return os.Remove(p.path("d/x")) }, what: "removed"},
		{name: "moved away", do: func(p place) error { return os.Rename(p.path("d/x"), p.path("d/y")) }, what: "moved away"},
		{name: "replaced by a file", what: "", do: func(p place) error {
			return errors.Join(os.Remove(p.path("d/x")), os.WriteFile(p.path("d/x"), nil, 0o600))
		}},
		{name: "replaced by an empty directory", do: func(p place) error {
			return errors.Join(os.Remove(p.path("d/x")), os.Mkdir(p.path("d/x"), 0o555))
		}},
		{name: "replaced by rename", what: "replaced", do: func(p place) error {
			return errors.Join(os.Mkdir(p.path("d/z"), 0o700), unix.Rename(p.path("d/z"), p.path("d/x")))
		}},
		{name: "directory moved", what: "with its directory", do: func(p place) error { return os.Rename(p.path("d"), p.path("e")) }},
		{name: "directory above moved", what: "with its directory", late: true, do: func(p place) error { return os.Rename(p.work, p.work+"2") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			k := p.keeper()
			check(t, os.Mkdir(p.path("d"), 0o700))
			h, other := p.hold(k, p.covers("d/x")...), p.hold(k, p.covers("y")...)
			h.OnBroken(func(error) { t.Error("the function of an earlier call was called") })
			told := whenBroken(h)
			check(t, tt.do(p))
			if !tt.late {
				await(t, "OnBroken", told)
			}
			_, err := h.Finish()
			var broken *BrokenError
			if !errors.As(err, &broken) || broken.Path != p.path("d/x") || !strings.Contains(broken.What, tt.what) {
				t.Errorf("Finish: %v", err)
			}
			if !errors.As(cause(h), &broken) {
				t.Errorf("Cause: %v", cause(h))
			}
			await(t, "OnBroken", told)
			await(t, "OnBroken after it was broken", whenBroken(h))
			if !tt.late && cause(other) != nil {
				t.Errorf("the other hold: %v", cause(other))
			}
		})
	}
}

// TestCreatedAgain loses a placeholder between two runs.
func TestCreatedAgain(t *testing.T) {
	p := newPlace(t)
	k := p.keeper()
	p.hold(k, p.covers("x", "y")...).Release()
	before := inode(t, p.path("x"))
	check(t, os.Remove(p.path("x")))
	h := p.hold(k, p.covers("x", "y")...)
	if after := inode(t, p.path("x")); after == before || len(h.Placeholders()) != 2 {
		t.Errorf("was %v, is %v, placeholders %v", before, after, h.Placeholders())
	}
	if _, err := h.Finish(); err != nil {
		t.Error(err)
	}
	h.Release()
	// The user makes it himself.
	check(t, os.Remove(p.path("x")))
	check(t, os.Mkdir(p.path("x"), 0o755))
	var exist *ExistsError
	if _, err := k.Hold(p.covers("y", "x")); !errors.As(err, &exist) {
		t.Errorf("Hold: %v", err)
	}
	check(t, k.Close())
	if !exists(p.path("x")) {
		t.Error("the user's directory was removed")
	}
	check(t, os.Remove(p.path("x")))
	p.wantClean()
}
