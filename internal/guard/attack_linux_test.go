// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/testenv"
)

// TestForgedEntries puts files into the journal that name directories of the user's,
// or nothing sensible: nothing is touched, and Hold and Clean go on.
func TestForgedEntries(t *testing.T) {
	testenv.RunAsOrdinary(t)
	entryFor := func(t *testing.T, path string, made bool) (string, string) {
		e := entry{path: path, holders: []string{idA}, making: !made, made: made}
		if made {
			e.id = inode(t, path)
		}
		return entryName(path), string(e.encode())
	}
	tests := []struct {
		name  string
		entry func(t *testing.T, p place) (name, text string)
		odd   bool // stays and is told
	}{
		{name: "/etc with its identity", entry: func(t *testing.T, _ place) (string, string) { return entryFor(t, "/etc", true) }},
		{name: "/etc as intent", entry: func(t *testing.T, _ place) (string, string) { return entryFor(t, "/etc", false) }},
		{name: "a filled directory with its identity", entry: func(t *testing.T, p place) (string, string) {
			return entryFor(t, p.work, true)
		}},
		{name: "an empty directory as intent", entry: func(t *testing.T, p place) (string, string) {
			return entryFor(t, p.path("empty"), false)
		}},
		{name: "an empty directory with another identity", entry: func(t *testing.T, p place) (string, string) {
			e := entry{path: p.path("empty"), made: true, id: inode(t, p.path("empty"))}
			e.id.ino++
			return entryName(e.path), string(e.encode())
		}},
		{name: "through a link", entry: func(t *testing.T, p place) (string, string) {
			e := entry{path: p.path("link/empty"), made: true, id: inode(t, p.path("empty"))}
			return entryName(e.path), string(e.encode())
		}},
		{name: "a file as intent", entry: func(t *testing.T, p place) (string, string) { return entryFor(t, p.path("file"), false) }},
		{name: "a file with its identity", entry: func(t *testing.T, p place) (string, string) { return entryFor(t, p.path("file"), true) }},
		{name: "a link to a directory as intent", entry: func(t *testing.T, p place) (string, string) { return entryFor(t, p.path("link"), false) }},
		{name: "another path's name", odd: true, entry: func(t *testing.T, p place) (string, string) {
			_, text := entryFor(t, p.path("empty"), true)
			return entryName("/elsewhere"), text
		}},
		{name: "garbage", odd: true, entry: func(*testing.T, place) (string, string) { return entryName("/x"), "\x00\xff" }},
		{name: "garbage at a wanted name", odd: true, entry: func(_ *testing.T, p place) (string, string) {
			return entryName(p.path("other")), "\x00\xff"
		}},
		{name: "foreign file", odd: true, entry: func(*testing.T, place) (string, string) { return "README", "hello" }},
		{name: "endless", odd: true, entry: func(_ *testing.T, p place) (string, string) {
			return entryName(p.path("q")), entryMagic + strconv.Quote(p.path("q")) + "\n" + strings.Repeat(lineMake, maxEntry/5)
		}},
		{name: "torn", entry: func(*testing.T, place) (string, string) { return entryName("/x"), entryMagic + `"/et` }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			forged(t, tt.entry, tt.odd)
		})
	}
}

// forged has one forged entry between the files of a user.
func forged(t *testing.T, entry func(t *testing.T, p place) (name, text string), odd bool) {
	t.Helper()
	p := newPlace(t)
	check(t, os.Mkdir(p.path("empty"), 0o755))
	check(t, os.WriteFile(p.path("file"), nil, 0o400))
	check(t, os.Symlink(p.work, p.path("link")))
	check(t, os.Mkdir(filepath.Join(p.state, journalDir), 0o700))
	name, text := entry(t, p)
	check(t, os.WriteFile(filepath.Join(p.state, journalDir, name), []byte(text), 0o600))
	// A dead holder, so that a start looks.
	check(t, os.WriteFile(filepath.Join(p.state, journalDir, holderPrefix+idA), nil, 0o600))
	k := p.keeper()
	p.hold(k, p.covers("fresh")...)
	r, err := Clean(p.state)
	check(t, err)
	if odd != (len(r.Unknown) == 1) || len(r.Failed)+len(r.Placeholders) > 0 {
		t.Errorf("report: %+v", r)
	}
	if got := names(t, p.work); cmp.Diff(got, []string{"empty", "file", "fresh", "link"}) != "" {
		t.Errorf("in the workspace: %q", got)
	}
	if h, err := k.Hold(p.covers("other")); err != nil || len(h.Placeholders()) != 1 {
		t.Errorf("Hold: %v", err)
	}
	check(t, k.Close())
	if got := names(t, p.work); cmp.Diff(got, []string{"empty", "file", "link"}) != "" {
		t.Errorf("in the workspace after Close: %q", got)
	}
	if exists(filepath.Join(p.state, journalDir, holderPrefix+idA)) {
		t.Error("the dead holder is still there")
	}
}

// TestSpecialEntries has a pipe, a directory and a link where an entry belongs.
func TestSpecialEntries(t *testing.T) {
	for _, one := range appearing() {
		t.Run(one.name, func(t *testing.T) {
			p := newPlace(t)
			dir := filepath.Join(p.state, journalDir)
			check(t, os.Mkdir(dir, 0o700))
			t.Chdir(dir)
			check(t, one.make(entryName(p.path("x"))))
			r, err := Clean(p.state)
			if err != nil || one.want != KindFile && len(r.Unknown) != 1 {
				t.Errorf("Clean: %+v, %v", r, err)
			}
			k := p.keeper()
			h, err := k.Hold(p.covers("x"))
			switch one.want {
			case KindDirectory: // cannot be replaced, and is told
				var hold *HoldError
				if !errors.As(err, &hold) {
					t.Errorf("Hold: %v", err)
				}
			default:
				if err != nil || len(h.Placeholders()) != 1 {
					t.Errorf("Hold: %v", err)
				}
			}
			check(t, k.Close())
			if got := names(t, p.work); len(got) > 0 {
				t.Errorf("in the workspace: %q", got)
			}
			_ = os.Chmod(filepath.Join(dir, entryName(p.path("x"))), 0o700)
		})
	}
}

// TestDevice has a device appear.
func TestDevice(t *testing.T) {
	testenv.NeedRoot(t)
	p := newPlace(t)
	k := p.keeper()
	h := p.hold(k, p.watch("dev")...)
	if err := unix.Mknod(p.path("dev"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err != nil {
		testenv.Lack(t, testenv.UserNS, "root may not make devices here: "+err.Error())
	}
	if found := p.finish(h); len(found) != 1 || found[0].Kind != KindDevice || exists(p.path("dev")) {
		t.Errorf("found %v", found)
	}
}

// TestOtherFileSystem has a quarantine that nothing can be renamed into.
func TestOtherFileSystem(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, tt := range appearing() {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			t.Chdir(p.work)
			k := p.keeper()
			failCall(k, "rename", unix.EXDEV)
			h := p.hold(k, p.watch(".git")...)
			check(t, tt.make(".git"))
			found := p.finish(h)
			if len(found) != 1 || found[0].Kind != tt.want || exists(p.path(".git")) || len(names(t, p.work)) > 0 {
				t.Fatalf("found %+v, left %q", found, names(t, p.work))
			}
			special := tt.want == KindPipe || tt.want == KindSocket
			if about := noteOf(t, found[0]); special != (about.NotCopied == 1) || special == exists(found[0].MovedTo) {
				t.Errorf("found %+v, note %+v", found[0], about)
			}
			if tt.want == KindDirectory && !exists(filepath.Join(found[0].MovedTo, "hooks")) {
				t.Error("the directory was not copied as a whole")
			}
			if tt.want == KindLink {
				if _, err := os.Readlink(found[0].MovedTo); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestTooMuch has trees that are not copied: they stay whole under another name.
func TestTooMuch(t *testing.T) {
	testenv.RunAsOrdinary(t)
	tests := []struct {
		name string
		make func(dir string) error
	}{
		{name: "bytes", make: func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "a"), []byte("x"), 0o600),
				os.WriteFile(filepath.Join(dir, "big"), nil, 0o600), os.Truncate(filepath.Join(dir, "big"), maxCopyBytes+1))
		}},
		{name: "entries", make: func(dir string) error {
			check(t, os.WriteFile(filepath.Join(dir, "a"), []byte("x"), 0o600))
			for i := range maxCopyEntries {
				if err := os.Link(filepath.Join(dir, "a"), filepath.Join(dir, strconv.Itoa(i))); err != nil {
					return err
				}
			}
			return nil
		}},
		{name: "depth", make: func(dir string) error {
			return os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", maxCopyDepth+1)), 0o700)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			k := p.keeper()
			failCall(k, "rename", unix.EXDEV)
			h := p.hold(k, p.watch(".git")...)
			check(t, os.Mkdir(p.path(".git"), 0o700))
			check(t, tt.make(p.path(".git")))
			before := names(t, p.path(".git"))
			found := p.finish(h)
			if len(found) != 1 || exists(p.path(".git")) || !strings.HasPrefix(found[0].MovedTo, p.path(asidePrefix)) {
				t.Fatalf("found %+v", found)
			}
			if cmp.Diff(before, names(t, found[0].MovedTo)) != "" {
				t.Error("something is missing")
			}
			if items := names(t, filepath.Join(p.state, quarantineDir)); len(items) > 0 {
				t.Errorf("in quarantine: %q", items)
			}
		})
	}
}

// TestNoRoom has a state directory that takes nothing any more: things are set aside.
func TestNoRoom(t *testing.T) {
	testenv.RunAsOrdinary(t)
	p := newPlace(t)
	k := p.keeper()
	failCall(k, "rename", unix.ENOSPC)
	h := p.hold(k, p.watch(".git")...)
	check(t, os.Mkdir(p.path(".git"), 0))
	found := p.finish(h)
	if len(found) != 1 || !exists(found[0].MovedTo) || exists(p.path(".git")) {
		t.Errorf("found %v", found)
	}
}

// TestMkdirFails gives mkdir every kind of error.
func TestMkdirFails(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedInotify(t)
	tests := []struct {
		name string
		err  error
		skip bool
		fix  string
	}{
		{name: "no room", err: unix.ENOSPC, fix: "free some space"},
		{name: "quota", err: unix.EDQUOT, fix: "free some space"},
		{name: "read-only", err: unix.EROFS, skip: true},
		{name: "immutable", err: unix.EPERM, skip: true},
		{name: "broken disk", err: unix.EIO, fix: "create the placeholder"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			k := p.keeper()
			p.hold(k, p.covers("held")...)
			failCall(k, "mkdir", tt.err)
			h, err := k.Hold(p.covers("held", "x"))
			if tt.skip {
				check(t, err)
				if len(h.Placeholders()) != 1 || len(h.Weaker()) > 0 {
					t.Errorf("placeholders %v, weaker %v", h.Placeholders(), h.Weaker())
				}
			} else if !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.fix) {
				t.Errorf("Hold: %v", err)
			}
			if entries := names(t, filepath.Join(p.state, journalDir)); len(entries) != 3 {
				t.Errorf("in the journal: %q", entries)
			}
			check(t, k.Close())
			p.wantClean()
		})
	}
}

// TestOverflow loses events: everything is looked at.
func TestOverflow(t *testing.T) {
	p := newPlace(t)
	k := p.keeper()
	failCall(k, "inotify", unix.EMFILE) // no event comes but ours
	h := p.hold(k, append(p.covers("x"), p.watch(".git")...)...)
	told := whenBroken(h)
	check(t, os.Mkdir(p.path(".git"), 0o700))
	check(t, os.Remove(p.path("x")))
	k.mu.Lock()
	k.event(-1, unix.IN_Q_OVERFLOW, "")
	k.mu.Unlock()
	await(t, "OnBroken", told)
	if exists(p.path(".git")) {
		t.Error("the name is still there")
	}
}

// FuzzEvents: whatever inotify gives is cut without a panic, and names lie inside.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00.git"))
	f.Add([]byte("\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff.git"))
	f.Fuzz(func(t *testing.T, data []byte) {
		sum := 0
		walkEvents(data, func(_ int32, _ uint32, name string) {
			sum += unix.SizeofInotifyEvent + len(name)
			if strings.Contains(name, "\x00") {
				t.Errorf("name %q", name)
			}
		})
		if sum > len(data) {
			t.Errorf("%d bytes of %d", sum, len(data))
		}
	})
}

// TestCopyReplaced: what replaces a closed file or directory while it is copied keeps its
// permissions, and the copy fails.
func TestCopyReplaced(t *testing.T) {
	const other = 0o051
	for _, test := range []struct {
		name string
		make func(path string) error
	}{
		{"directory", func(path string) error { return os.Mkdir(path, 0o100) }},
		{"file", func(path string) error { return os.WriteFile(path, nil, 0o200) }},
	} {
		for _, link := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, link %t", test.name, link), func(t *testing.T) {
				dir := t.TempDir()
				at, target := filepath.Join(dir, "at"), filepath.Join(dir, "target")
				check(t, test.make(at))
				info, err := os.Lstat(at)
				check(t, err)
				check(t, os.Mkdir(target, 0o700))
				check(t, os.Chmod(target, other))
				check(t, os.Rename(at, filepath.Join(dir, "away")))
				if link {
					check(t, os.Symlink("target", at))
				} else {
					check(t, os.Rename(target, at))
					target = at
				}
				root, err := os.OpenRoot(dir)
				check(t, err)
				defer root.Close()
				c := copier{from: root}
				if f, err := c.open("at", info); err == nil {
					f.Close()
					t.Error("opened what replaced it")
				}
				now, err := os.Lstat(target)
				check(t, err)
				if now.Mode().Perm() != other {
					t.Errorf("its mode is %v", now.Mode())
				}
			})
		}
	}
}
