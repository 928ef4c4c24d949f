// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/names/git"
	"github.com/sallyport-dev/sallyport/internal/names/guard"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestObserved: the observer denies every claimed name but those that are only reported,
// and is told of the git directories that the grant opens.
func TestObserved(t *testing.T) {
	g := &inspection{
		ruleset: &ruleset{roots: []string{"/ws"}, rules: map[string]plan.Rule{"/ws/known/.git/config": {}}},
		tmpAt:   "/ws/tmp", mounts: true,
		table: new(hostfacts.MountTable),
	}
	g.claim(claim{Claim: guard.Claim{Path: "/ws/.git"}})
	g.claim(claim{Claim: guard.Claim{Path: "/ws/reported", ReportOnly: true}})
	g.granted = []workTree{{dir: "/ws/none"},
		{dir: "/ws", repo: &git.Repository{Dir: "/ws/.git/worktrees/w", Common: "/ws/.git"}}}
	g.rules["/ws/.git/lfs"] = plan.Rule{Level: sandbox.LevelWrite}
	got := (&Protection{found: g}).Observed()
	want := Names{
		Roots: []string{"/ws"}, Free: []string{"/ws/tmp"}, Protected: []string{"/ws/.git"},
		Git: []string{"/ws/.git/worktrees/w", "/ws/.git"}, Opened: []string{"/ws/.git/lfs"},
		Ruled: []string{"/ws/.git/lfs", "/ws/known/.git/config"},
	}
	slices.Sort(got.Ruled)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestManyPlaces: the places that a command pretends to make repositories at are looked at
// within a bound, and the rest is searched.
func TestManyPlaces(t *testing.T) {
	dir := t.TempDir()
	s := seen{roots: []searched{{root: dir, Found: git.Found{Complete: true}}}}
	made := &Made{}
	for i := range maxPlaces {
		made.Places = append(made.Places, fmt.Sprintf("%s/a%d/.git", dir, i))
	}
	last := dir + "/z/.git"
	if err := os.MkdirAll(last, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := s.repositories(made); got != nil {
		t.Errorf("%q, and nothing was seen there", got)
	}
	made.Places = append(made.Places, last)
	if got := s.repositories(made); !slices.Equal(got, []string{last}) {
		t.Errorf("%q, want %s", got, last)
	}
}

// TestMadeShut: a repository in a directory that the command has closed is there.
func TestMadeShut(t *testing.T) {
	testenv.RunAsOrdinary(t)
	if os.Geteuid() == 0 {
		return // nothing is closed to root
	}
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/shut/.git", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir+"/shut", 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir+"/shut", 0o700) })
	got := new(seen).repositories(&Made{Places: []string{dir + "/shut/.git", dir + "/none/.git"}})
	if diff := cmp.Diff([]string{dir + "/shut/.git"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
