// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/testenv"
)

// spares lists the kept folders.
func (p place) spares() []string {
	return slices.DeleteFunc(names(p.t, filepath.Join(p.state, journalDir)), func(name string) bool {
		return !strings.HasPrefix(name, sparePrefix)
	})
}

// spare is the path of a kept folder.
func (p place) spare(i int) string { return filepath.Join(p.state, journalDir, spareName(i)) }

// TestSpares: a placeholder that has gone is the next one, at whatever name, and
// cleaning takes all of them away.
func TestSpares(t *testing.T) {
	testenv.NeedRoot(t)
	p := newPlace(t)
	seen := map[ident]bool{}
	for round, list := range [][]string{{"a", "b"}, {"c"}, {"b", "d"}} {
		k := p.keeper()
		h, err := k.Hold(p.covers(list...))
		check(t, err)
		for _, name := range list {
			l, err := lookAt(unix.AT_FDCWD, p.path(name))
			if err != nil || !l.closed() {
				t.Errorf("%s: %+v, %v", name, l, err)
			}
			if round > 0 && !seen[l.ident] {
				t.Errorf("round %d: %s was made", round, name)
			}
			seen[l.ident] = true
		}
		h.Release()
		check(t, k.Close())
		p.wantClean()
		if got := p.spares(); len(got) != 2 {
			t.Errorf("%q are kept", got)
		}
	}
	_, err := Clean(p.state)
	check(t, err)
	if got := p.spares(); len(got) != 0 {
		t.Errorf("%q are left", got)
	}
}

// TestSparesBound: no more than a few are kept.
func TestSparesBound(t *testing.T) {
	testenv.NeedRoot(t)
	p := newPlace(t)
	k := p.keeper()
	list := strings.Split("a b c d e f g h i j k l", " ")
	h, err := k.Hold(p.covers(list...))
	check(t, err)
	h.Release()
	check(t, k.Close())
	if got := p.spares(); len(got) != mostSpares {
		t.Errorf("%q are kept", got)
	}
	p.wantClean()
}

// TestSpareUnfit: what was changed beside the journal does not get into a workspace.
func TestSpareUnfit(t *testing.T) {
	testenv.NeedRoot(t)
	for name, change := range map[string]func(t *testing.T, spare string){
		"filled": func(t *testing.T, spare string) {
			check(t, os.WriteFile(filepath.Join(spare, "x"), nil, 0o600))
		},
		"opened": func(t *testing.T, spare string) { check(t, os.Chmod(spare, 0o777)) },
		"owned":  func(t *testing.T, spare string) { check(t, os.Chown(spare, 7, 7)) },
		"link": func(t *testing.T, spare string) {
			check(t, os.Remove(spare))
			check(t, os.Symlink("/etc", spare))
		},
		"file": func(t *testing.T, spare string) {
			check(t, os.Remove(spare))
			check(t, os.WriteFile(spare, nil, 0o444))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			k := p.keeper()
			h, err := k.Hold(p.covers("a"))
			check(t, err)
			h.Release()
			check(t, k.Close())
			change(t, p.spare(0))
			before := inode(t, p.spare(0))
			k = p.keeper()
			h, err = k.Hold(p.covers("a"))
			check(t, err)
			if l, err := lookAt(unix.AT_FDCWD, p.path("a")); err != nil || !l.closed() || l.uid != 0 || !emptyFolder(unix.AT_FDCWD, p.path("a")) {
				t.Errorf("%+v, %v", l, err)
			}
			h.Release()
			check(t, k.Close())
			if inode(t, p.spare(0)) != before {
				t.Error("it was taken away")
			}
		})
	}
}

// TestFilledWhileMoved: what somebody puts into a placeholder while it is taken away
// stays where it was put, and what comes to stand there stays, too.
func TestFilledWhileMoved(t *testing.T) {
	testenv.NeedRoot(t)
	for _, blocked := range []bool{false, true} {
		p := newPlace(t)
		k := p.keeper()
		h, err := k.Hold(p.covers("a"))
		check(t, err)
		k.in.journal.step = func(point string) {
			if point != "folder moved" {
				return
			}
			check(t, os.WriteFile(filepath.Join(p.spare(0), "precious"), nil, 0o600))
			if blocked {
				check(t, os.WriteFile(p.path("a"), []byte("new"), 0o600))
			}
		}
		h.Release()
		err = k.Close()
		switch {
		case !blocked && (err != nil || !exists(filepath.Join(p.path("a"), "precious"))):
			t.Errorf("%v, %q", err, names(t, p.path("a")))
		case blocked && (err == nil || !strings.Contains(err.Error(), p.spare(0)) || !exists(filepath.Join(p.spare(0), "precious"))):
			t.Errorf("%v, %q", err, names(t, p.spare(0)))
		}
	}
}
