// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/names/git"
)

// repository makes the files of a git directory below the place.
func (p place) repository(name string) string {
	p.t.Helper()
	work := p.path(name)
	for _, dir := range []string{"objects", "refs"} {
		check(p.t, os.MkdirAll(filepath.Join(work, ".git", dir), 0o700))
	}
	check(p.t, os.WriteFile(filepath.Join(work, ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o600))
	return work
}

// snapshot takes one of a work tree.
func snapshot(t testing.TB, work string) *git.Snapshot {
	t.Helper()
	r, err := git.Open(work)
	check(t, err)
	s, err := git.Take(work, r, git.Outside{}, nil)
	check(t, err)
	return s
}

// plant makes a file that git does not make, and returns its path.
func plant(t *testing.T, work, name string) string {
	t.Helper()
	at := filepath.Join(work, ".git", name)
	check(t, os.MkdirAll(filepath.Dir(at), 0o700))
	check(t, os.WriteFile(at, []byte("/x/evil\n"), 0o600))
	return at
}

// TestRememberTogether: of runs that overlap each one compares with what the first one has seen,
// in every work tree of the repository; the last one forgets it.
func TestRememberTogether(t *testing.T) {
	p := newPlace(t)
	work := p.repository("w")
	one, two, three := p.protector(), p.protector(), p.protector()
	first := p.hold(one)
	check(t, first.Remember(snapshot(t, work), nil))
	at := plant(t, work, "rebase-merge/strategy")
	linked := filepath.Join(work, ".git", "worktrees", "l")
	check(t, os.MkdirAll(linked, 0o700))
	for _, k := range []*Protector{two, three} {
		s := snapshot(t, work)
		if found, _ := s.Check(nil); len(found) != 0 {
			t.Fatalf("a snapshot alone knows the plant: %v", found)
		}
		h := p.hold(k)
		check(t, h.Remember(s, nil))
		if found, err := s.Check(nil); err != nil || len(found) != 1 || found[0].Path != at {
			t.Errorf("%v, %v", found, err)
		}
		first.Release()
		first = h
	}
	first.Release()
	for _, name := range names(t, filepath.Join(p.state, journalDir)) {
		if strings.HasPrefix(name, memoryPrefix) {
			t.Errorf("%s is left", name)
		}
	}
}

// TestRememberKilled: what a killed run has planted is found by the next start, whatever that is
// for, and by Clean; what was there before stays.
func TestRememberKilled(t *testing.T) {
	for _, by := range []string{"the next start", "a later start of a living process", "Clean"} {
		t.Run(by, func(t *testing.T) {
			p := newPlace(t)
			work := p.repository("w")
			before := plant(t, work, "rebase-merge/strategy_opts")
			other := p.protector()
			if by == "a later start of a living process" {
				p.hold(other).Release()
			}
			k := &Protector{State: p.state} // it is never closed
			check(t, p.hold(k).Remember(snapshot(t, work), nil))
			at := plant(t, work, "rebase-merge/strategy")
			k.journal.holder.Close() // its lock ends with its process
			if by == "Clean" {
				r, err := Clean(p.state)
				if err != nil || len(r.Planted) != 1 || r.Planted[0].Path != at {
					t.Errorf("%+v, %v", r, err)
				}
			} else {
				found := p.finish(p.hold(other))
				if len(found) != 1 || found[0].Path != at || found[0].MovedTo == "" {
					t.Errorf("%+v", found)
				}
			}
			if exists(at) || !exists(before) {
				t.Errorf("the plant exists: %v; what was there before: %v", exists(at), exists(before))
			}
		})
	}
}

// TestRememberAgain: a snapshot that may hold what another run has planted, because that run was there
// when it was taken and is not any more, is not taken for what was there before.
func TestRememberAgain(t *testing.T) {
	for _, killed := range []bool{false, true} {
		p := newPlace(t)
		work := p.repository("w")
		k, first := p.protector(), &Protector{State: p.state}
		h := p.hold(first)
		check(t, h.Remember(snapshot(t, work), nil))
		at := plant(t, work, "rebase-merge/strategy")
		remains, s := k.Remains(), snapshot(t, work)
		if killed {
			check(t, first.journal.holder.Close())
			p.hold(k).Release() // settles it
		} else {
			_, err := first.Quarantine(at, "")
			check(t, err)
			h.Release()
			check(t, first.Close())
		}
		h = p.hold(k)
		var exist *ExistsError
		if err := h.Remember(s, remains); !errors.As(err, &exist) || exists(at) {
			t.Errorf("killed %v: %v", killed, err)
		}
		check(t, h.Remember(snapshot(t, work), k.Remains()))
		h.Release()
	}
}

// TestRememberBeside: what a run plants that is killed while another one of the repository goes on is
// found by the next start, also when that other one has ended in order, and has looked before.
func TestRememberBeside(t *testing.T) {
	p := newPlace(t)
	work := p.repository("w")
	one, two, next := p.protector(), &Protector{State: p.state}, p.protector()
	first := p.hold(one)
	check(t, first.Remember(snapshot(t, work), nil))
	check(t, p.hold(two).Remember(snapshot(t, work), nil))
	at := plant(t, work, "rebase-merge/strategy")
	check(t, two.journal.holder.Close())
	first.Release()
	if found := p.finish(p.hold(next)); len(found) != 1 || exists(at) {
		t.Errorf("%+v; it exists: %v", found, exists(at))
	}
}

// TestRememberBroken: a record that cannot be read is not taken for none.
func TestRememberBroken(t *testing.T) {
	p := newPlace(t)
	work := p.repository("w")
	k := p.protector()
	h := p.hold(k)
	s := snapshot(t, work)
	name := filepath.Join(p.state, journalDir, memoryName(s.Key()))
	check(t, os.Mkdir(filepath.Dir(name), 0o700))
	for _, text := range []string{"", memoryMagic, memoryMagic + "\nx", memoryMagic + "+ 1\n\n" +
		string(s.Text())} {
		check(t, os.WriteFile(name, []byte(text), 0o600))
		if err := h.Remember(s, nil); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	if r, err := Clean(p.state); err != nil || len(r.Unknown) == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	check(t, h.Remember(s, nil))
}

// TestWatchEnds: a command that plants again and again is ended, and one that cannot be watched
// does not begin.
func TestWatchEnds(t *testing.T) {
	p := newPlace(t)
	k := p.protector()
	h := p.hold(k)
	broken := make(chan error, 1)
	h.OnBroken(func(cause error) { broken <- cause })
	at := p.path("plant")
	look := func() ([]git.Path, []string) {
		check(t, os.WriteFile(at, nil, 0o600)) // it appears again with each look
		return []git.Path{{Path: at}}, []string{filepath.Dir(at)}
	}
	check(t, h.Watch(look, true))
	for i := 0; ; i++ {
		k.mu.Lock()
		k.readEvents()
		over := h.broken != nil
		k.mu.Unlock()
		if over {
			break
		}
		if i > 100*maxPlanted {
			t.Fatal("it goes on")
		}
		check(t, os.WriteFile(p.path("event"), nil, 0o600))
		check(t, os.Remove(p.path("event")))
	}
	if cause := <-broken; cause == nil {
		t.Error("no cause")
	}
	k = p.protector()
	h = p.hold(k)
	k.fail = func(string) error { return os.ErrPermission }
	if err := h.Watch(look, true); err == nil {
		t.Error("it is not watched, and goes on")
	}
}
