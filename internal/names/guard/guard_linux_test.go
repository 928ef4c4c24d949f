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

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestRound follows a watch from Hold to Close: nothing is made in the workspace, and, where nothing
// is remembered, nothing in the state directory.
func TestRound(t *testing.T) {
	testenv.RunAsOrdinary(t)
	p := newPlace(t)
	k := p.protector()
	h := p.hold(k, p.watch(".codex", ".agents", "odd \xff\n\"name")...)
	p.wantClean()
	if found := p.finish(h); len(found) > 0 || k.Lock() != nil || k.Remains() != nil {
		t.Errorf("found %v, lock %v", found, k.Lock())
	}
	h.Release()
	h.Release()
	p.hold(k, p.watch(".codex")...).Release()
	check(t, k.Close())
	p.wantClean()
	if left := names(t, p.state); len(left) > 0 {
		t.Errorf("in the state directory: %q", left)
	}
	if _, err := k.Hold(nil); !errors.Is(err, ErrClosed) {
		t.Errorf("Hold after Close: %v", err)
	}
}

// TestTwoKeepers has two protectors watch one name, as two processes do, also with a state directory
// each: one of them moves what appears, and neither leaves it.
func TestTwoKeepers(t *testing.T) {
	testenv.RunAsOrdinary(t)
	p := newPlace(t)
	other := newPlace(t)
	for _, state := range []string{p.state, other.state} {
		one, two := p.protector(), &Protector{State: state}
		first, second := p.hold(one, p.watch(".codex")...), p.hold(two, p.watch(".codex")...)
		check(t, os.Mkdir(p.path(".codex"), 0o700))
		moved := 0
		for _, f := range append(p.finish(first), p.finish(second)...) {
			if f.MovedTo != "" {
				moved++
			}
		}
		if exists(p.path(".codex")) || moved == 0 {
			t.Errorf("it is there: %v; it was moved %d times", exists(p.path(".codex")), moved)
		}
		check(t, errors.Join(one.Close(), two.Close()))
	}
	p.wantClean()
}

// TestExists has something at the name: it is told, stays, and nothing else is held.
func TestExists(t *testing.T) {
	testenv.RunAsOrdinary(t)
	tests := append(appearing(), struct {
		name string
		make func(path string) error
		want Kind
	}{"closed empty directory", func(p string) error { return os.Mkdir(p, 0o555) }, KindDirectory})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			t.Chdir(p.work)
			k := p.protector()
			check(t, tt.make("x"))
			before := inode(t, p.path("x"))
			_, err := k.Hold(p.watch("first", "x", "last"))
			var exist *ExistsError
			if !errors.As(err, &exist) || exist.Kind != tt.want || exist.Path != p.path("x") {
				t.Fatalf("Hold: %v", err)
			}
			check(t, os.Mkdir(p.path("first"), 0o700))
			check(t, k.Close())
			if inode(t, p.path("x")) != before {
				t.Error("what stood there was replaced")
			}
			p.wantClean("first", "x")
			if tt.want == KindDirectory { // not what a link leads to
				check(t, os.Chmod(p.path("x"), 0o700))
			}
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
				return errors.Join(os.Symlink(p.state, p.path("l")),
					os.Mkdir(filepath.Join(p.state, "sub"), 0o700))
			}},
		{name: "name too long", path: "WORK/" + strings.Repeat("x", 300), want: unix.ENAMETOOLONG, fix: "shorter"},
	}
	for _, tt := range tests {
		for _, cover := range []bool{true, false} {
			name := tt.name + ", watch"
			if cover {
				name = tt.name + ", cover"
			}
			t.Run(name, func(t *testing.T) {
				p := newPlace(t)
				k := p.protector()
				if tt.make != nil {
					check(t, tt.make(p))
				}
				path := strings.Replace(tt.path, "WORK", p.work, 1)
				c := Claim{Path: path}
				if cover {
					c.Dev, c.Ino = 1, 1
				}
				_, err := k.Hold([]Claim{c})
				var hold *HoldError
				if !errors.As(err, &hold) || !errors.Is(err, tt.want) ||
					!strings.Contains(err.Error(), tt.fix) {
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

// TestSkipped has a directory that this user cannot search, nor any command of this user.
func TestSkipped(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedInotify(t)
	testenv.NeedOrdinaryUser(t)
	if info, err := os.Stat("/root"); err != nil || info.Mode().Perm()&0o001 != 0 {
		return // it is open here, or missing
	}
	p := newPlace(t)
	k := p.protector()
	h := p.hold(k, Claim{Path: "/root/sallyport-test-name"}, p.watch("x")[0])
	check(t, os.Mkdir(p.path("x"), 0o700))
	if found := p.finish(h); len(found) != 1 || len(h.Weaker()) > 0 {
		t.Errorf("found %v, weaker %v", found, h.Weaker())
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
	k := p.protector()
	check(t, os.Mkdir(p.path("d"), 0o555))
	h := p.hold(k, p.watch("d/x")...)
	check(t, os.Chmod(p.path("d"), 0o755))
	check(t, os.Mkdir(p.path("d/x"), 0o755))
	if found := p.finish(h); len(found) != 1 || exists(p.path("d/x")) {
		t.Errorf("found %v", found)
	}
	h.Release()

	check(t, os.Chmod(p.path("d"), 0))
	check(t, os.Chmod(p.work, 0))
	_, err := k.Hold(p.watch("d/y"))
	check(t, os.Chmod(p.work, 0o700))
	var hold *HoldError
	if !errors.As(err, &hold) || !strings.Contains(err.Error(), "chmod u+x") {
		t.Errorf("a directory above is closed: %v", err)
	}
	check(t, os.Remove(p.path("d")))
}

// TestBroken replaces what a mount covers, in every way. What is removed alone needs no mount.
func TestBroken(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedInotify(t)
	again := func(p place) error {
		return errors.Join(os.Mkdir(p.path("d"), 0o700), os.WriteFile(p.path("d/x"), nil, 0o600))
	}
	tests := []struct {
		name string
		do   func(p place) error
		what string // empty: the hold is whole
		late bool   // no event tells it
	}{
		{name: "by a rename", what: "was replaced", do: func(p place) error { p.replace("d/x"); return nil }},
		{name: "by a directory", what: "was replaced", do: func(p place) error {
			return errors.Join(os.Rename(p.path("d/x"), p.path("d/y")), os.Mkdir(p.path("d/x"), 0o700))
		}},
		{name: "with its directory", what: "with its directory", late: true, do: func(p place) error {
			return errors.Join(os.Rename(p.path("d"), p.path("e")), again(p))
		}},
		{name: "with one above", what: "with its directory", late: true, do: func(p place) error {
			return errors.Join(os.Rename(p.work, p.work+"2"), os.Mkdir(p.work, 0o700), again(p))
		}},
		{name: "removed", do: func(p place) error { return os.Remove(p.path("d/x")) }},
		{name: "moved away", do: func(p place) error { return os.Rename(p.path("d/x"), p.path("d/y")) }},
		{name: "written to", do: func(p place) error { return os.WriteFile(p.path("d/x"), []byte("y"), 0o600) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			k := p.protector()
			check(t, os.Mkdir(p.path("d"), 0o700))
			h, other := p.hold(k, p.cover("d/x")), p.hold(k, p.watch("y")...)
			h.OnBroken(func(error) { t.Error("the function of an earlier call was called") })
			told := whenBroken(h)
			check(t, tt.do(p))
			if !tt.late && tt.what != "" {
				await(t, "OnBroken", told)
			}
			_, err := h.Finish()
			var broken *BrokenError
			if tt.what == "" {
				if err != nil || cause(h) != nil {
					t.Errorf("Finish: %v, cause %v", err, cause(h))
				}
				return
			}
			if !errors.As(err, &broken) || broken.Path != p.path("d/x") ||
				!strings.Contains(broken.What, tt.what) {
				t.Errorf("Finish: %v", err)
			}
			await(t, "OnBroken", told)
			await(t, "OnBroken after it was broken", whenBroken(h))
			if !tt.late && cause(other) != nil {
				t.Errorf("the other hold: %v", cause(other))
			}
		})
	}
}

// TestChanged: what is not what the claim says is told.
func TestChanged(t *testing.T) {
	p := newPlace(t)
	k := p.protector()
	for kind, change := range map[Kind]func(){KindGone: func() { check(t, os.Remove(p.path("x"))) },
		KindFile: func() { p.replace("x") }} {
		c := p.cover("x")
		change()
		_, err := k.Hold([]Claim{c})
		var exist *ExistsError
		if !errors.As(err, &exist) || exist.Kind != kind {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
