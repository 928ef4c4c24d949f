// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A walls refuses to start commands that may write to some paths, and keeps files closed.
type walls struct {
	executor.Executor
	refused, closed []string
	plans           int
}

func (w *walls) Opens(_ context.Context, spec *executor.Spec) (func(sandbox.Access) error, executor.Writing,
	error) {
	w.plans++
	for _, name := range w.refused {
		if spec.Policy.LevelAt(name) == sandbox.LevelWrite {
			return nil, nil, errors.New("too open")
		}
	}
	return func(a sandbox.Access) error {
		for _, name := range w.closed {
			if inside(a.Path, name) && spec.Policy.LevelAt(name) != sandbox.LevelRead {
				return fmt.Errorf("%s stays read-only", name)
			}
		}
		if spec.Policy.Rule(a) != sandbox.Allow {
			return errors.New("it stays closed")
		}
		return nil
	}, nil, nil
}

// TestProve: only what is enough is suggested, and a narrower grant where the one that lasts is not.
func TestProve(t *testing.T) {
	for _, tt := range []struct {
		name            string
		refused, closed []string
		there           []string
		denied          []string
		want            []string // grants
		wider           string   // of the first
		rule            string   // of the first; its beginning
		plans           int
	}{
		{"all are enough", nil, nil, []string{"/srv/a/b", "/srv/c/d"}, []string{"/srv/a/b/x", "/srv/c/d/y"}, []string{"--rw /srv/a/b", "--rw /srv/c/d"}, "", "/=read", 1},
		{"one is refused", []string{"/srv/a/b"}, nil, []string{"/srv/a/b", "/srv/c/d"}, []string{"/srv/a/b/x", "/srv/c/d/y"}, []string{"", "--rw /srv/c/d"}, "", NothingOpens + "with --rw /srv/a/b, the command would not start: too open", 3},
		{"what lasts is refused", []string{"/srv/a/other"}, nil, []string{"/srv/a/run123456"}, []string{"/srv/a/run123456/x"}, []string{"--rw /srv/a/run123456"}, "", "/=read", 2},
		{"what lasts is refused, for a file", []string{"/srv/a/other"}, nil, []string{"/srv/a/run123456/x"}, []string{"/srv/a/run123456/x"}, []string{"--rw /srv/a/run123456/x"}, "", "/=read", 2},
		{"with a warning it is wider", []string{"/srv/a/other"}, nil, []string{"/srv/a/run123456/.git"}, []string{"/srv/a/run123456/.git/x"}, []string{""}, "--rw /srv/a/run123456/.git", "/=read", 2},
		{"it stays closed", nil, []string{"/srv/a/b"}, []string{"/srv/a/b"}, []string{"/srv/a/b/x"}, []string{""}, "", NothingOpens + "with --rw /srv/a/b, /srv/a/b stays read-only", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &walls{refused: tt.refused, closed: tt.closed}
			r := &DeniedRun{Policy: sandbox.ReadOnly(), Dir: "/w", OS: "linux", Executor: w, Spec: &executor.Spec{},
				files: fake(tt.there)}
			ds := writes(tt.denied...)
			r.Complete(ds)
			for i, d := range ds {
				if d.Grant != tt.want[i] {
					t.Errorf("%s: %q, want %q", d.Path, d.Grant, tt.want[i])
				}
			}
			if ds[0].Wider != tt.wider || !strings.HasPrefix(ds[0].Rule, tt.rule) {
				t.Errorf("wider %q, rule %q", ds[0].Wider, ds[0].Rule)
			}
			if w.plans != tt.plans {
				t.Errorf("%d plans, want %d", w.plans, tt.plans)
			}
		})
	}
}

// TestProveBound: what is too much to be tried is not suggested.
func TestProveBound(t *testing.T) {
	w := &walls{refused: []string{"/srv/p0/d/x"}}
	r := &DeniedRun{Policy: sandbox.ReadOnly(), Dir: "/w", OS: "linux", Executor: w, Spec: &executor.Spec{},
		files: everything{}}
	var ds []sandbox.Denial
	for i := range 2 * maxPlans {
		ds = append(ds, writes(fmt.Sprintf("/srv/p%d/d/x", i))...)
	}
	r.Complete(ds)
	if w.plans != maxPlans || ds[1].Grant == "" || ds[len(ds)-1].Grant != "" || ds[len(ds)-1].Wider != "" ||
		strings.HasPrefix(ds[len(ds)-1].Rule, NothingOpens) {
		t.Errorf("%d plans, %+v, %+v", w.plans, ds[1], ds[len(ds)-1])
	}
}

// TestProveCacheAbove: with the grant of a cache nothing needs the missing directory above it, which
// stays closed.
func TestProveCacheAbove(t *testing.T) {
	r, ds := runOf(sandbox.WorkspaceWrite("/w")), writes("/h/.cache")
	r.Args, r.Executor, r.Spec = []string{"make"}, &walls{closed: []string{"/h/.cache"}}, &executor.Spec{}
	if r.Complete(ds); ds[0].Grant != "--grant cache:ccache" {
		t.Errorf("%q, %q", ds[0].Grant, ds[0].Rule)
	}
}
