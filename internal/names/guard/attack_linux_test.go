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

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestForeignFiles has files in the journal that are none of it: they stay, and are named. What
// dead protectors left goes, with the next one that remembers something too.
func TestForeignFiles(t *testing.T) {
	const dead = holderPrefix + "0123456789abcdef"
	for _, by := range []string{"Clean", "a start"} {
		t.Run(by, func(t *testing.T) {
			p := newPlace(t)
			dir := filepath.Join(p.state, journalDir)
			check(t, os.Mkdir(dir, 0o700))
			for _, name := range []string{dead, tempPrefix + "x", "README", holderPrefix + "x"} {
				check(t, os.WriteFile(filepath.Join(dir, name), []byte("hello"), 0o600))
			}
			check(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
			if by == "Clean" {
				r, err := Clean(p.state)
				if err != nil || len(r.Unknown) != 2 || len(r.Failed)+len(r.Planted) > 0 {
					t.Errorf("%+v, %v", r, err)
				}
			} else {
				k := p.protector()
				h := p.hold(k)
				check(t, h.Remember(snapshot(t, p.repository("w")), nil))
				h.Release()
				check(t, k.Close())
			}
			if diff := cmp.Diff([]string{"README", holderPrefix + "x", "link", lockFile},
				names(t, dir)); diff != "" {
				t.Errorf("in the journal (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDevice has a device appear.
func TestDevice(t *testing.T) {
	testenv.NeedRoot(t)
	p := newPlace(t)
	k := p.protector()
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
			k := p.protector()
			failCall(k, "rename", unix.EXDEV)
			h := p.hold(k, p.watch(".git")...)
			check(t, tt.make(".git"))
			found := p.finish(h)
			if len(found) != 1 || found[0].Kind != tt.want || exists(p.path(".git")) ||
				len(names(t, p.work)) > 0 {
				t.Fatalf("found %+v, left %q", found, names(t, p.work))
			}
			special := tt.want == KindPipe || tt.want == KindSocket
			if about := noteOf(t, found[0]); special != (about.NotCopied == 1) ||
				special == exists(found[0].MovedTo) {
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
				os.WriteFile(filepath.Join(dir, "big"), nil, 0o600),
				os.Truncate(filepath.Join(dir, "big"), maxCopyBytes+1))
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
			k := p.protector()
			failCall(k, "rename", unix.EXDEV)
			h := p.hold(k, p.watch(".git")...)
			check(t, os.Mkdir(p.path(".git"), 0o700))
			check(t, tt.make(p.path(".git")))
			before := names(t, p.path(".git"))
			found := p.finish(h)
			if len(found) != 1 || exists(p.path(".git")) ||
				!strings.HasPrefix(found[0].MovedTo, p.path(asidePrefix)) {
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
	k := p.protector()
	failCall(k, "rename", unix.ENOSPC)
	h := p.hold(k, p.watch(".git")...)
	check(t, os.Mkdir(p.path(".git"), 0))
	found := p.finish(h)
	if len(found) != 1 || !exists(found[0].MovedTo) || exists(p.path(".git")) {
		t.Errorf("found %v", found)
	}
}

// TestOverflow loses events: everything is looked at.
func TestOverflow(t *testing.T) {
	p := newPlace(t)
	k := p.protector()
	failCall(k, "inotify", unix.EMFILE) // no event comes but ours
	h := p.hold(k, append(p.watch(".git"), p.cover("x"))...)
	told := whenBroken(h)
	check(t, os.Mkdir(p.path(".git"), 0o700))
	p.replace("x")
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
