// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestAskingChangedMeanwhile: what another program changes while the question is open is noticed, and the
// call is made with the rights of the command and no others.
func TestAskingChangedMeanwhile(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, tt := range []struct {
		name, want string
		root       bool
		change     func(at string) error
	}{
		{"parent moved", "ENOENT", false, func(at string) error { return os.Rename(at, at+"2") }},
		{"parent replaced", "ESTALE", false, func(at string) error {
			return errors.Join(os.Rename(at, at+"2"), os.Mkdir(at, 0o755))
		}},
		{"parent is a link", "ELOOP", false, func(at string) error {
			return errors.Join(os.Rename(at, at+"2"), os.Symlink(at+"2", at))
		}},
		{"made by another", "EEXIST", false, func(at string) error { return os.Mkdir(at+"/new", 0o711) }},
		{"closed", "EACCES", true, func(at string) error {
			return errors.Join(os.Chown(at, 12345, 12345), os.Chmod(at, 0o755))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.root {
				testenv.NeedRoot(t)
			}
			a := newArena(t)
			at, before := a.out+"/dir", ""
			p := &approver{answer: func(context.Context, executor.AccessQuestion) bool {
				if err := tt.change(at); err != nil {
					t.Error(err)
				}
				before = snapshot(t, a.out)
				return true
			}}
			if got, after := a.asks(t, p, "make", at+"/new", nil); got != tt.want || len(after.Denials) > 0 {
				t.Errorf("%s, want %s; %v", got, tt.want, after.Denials)
			}
			if after := snapshot(t, a.out); after != before {
				t.Errorf("changed: %s\nbefore: %s", after, before)
			}
		})
	}
}

// TestAskingLandlock: calls wait at the level without mounts, too.
func TestAskingLandlock(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := atLevel(t, plan.LevelLandlock)
	must(t, os.RemoveAll(a.ws+"/.git"))
	for _, name := range []string{"create", "append", "mkdir", "unlink", "rename", "move-out", "move-in",
		"link"} {
		op := askedOps()[name]
		want := a.outside(t, name)
		a.reset(t)
		for _, yes := range []bool{true, false} {
			at := a.prepare(t, name+map[bool]string{true: "-yes", false: "-no"}[yes])
			before := a.trees(t, at)
			p := says(yes)
			got, after := a.asks(t, p, name, at, nil)
			if (got == "done") != yes || yes && a.trees(t, at) != want || !yes && a.trees(t, at) != before {
				t.Errorf("%s, %v: %s, %v\n%s", name, yes, got, after.Denials, a.trees(t, at))
			}
			a.wasAsked(t, p.asked, at, &op)
			a.reset(t)
		}
	}
}

// TestAskingUnavailable: where calls cannot wait, nothing runs.
func TestAskingUnavailable(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	for name, j := range map[string]*job{"no observer": {blind: true}} {
		j.ask, j.args = says(true).ask, sh(`: >started`)
		_, err := a.run(t, j)
		var no *sandbox.UnsupportedError
		if !errors.As(err, &no) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a.host.unobserved = "another supervisor"
	_, err := a.run(t, &job{ask: says(true).ask, args: sh(`: >started`)})
	if no := (*sandbox.UnsupportedError)(nil); !errors.As(err, &no) || no.Have != "another supervisor" {
		t.Error(err)
	}
	if _, err := os.Lstat(a.ws + "/started"); err == nil {
		t.Error("it ran")
	}
	p := says(true)
	full := sandbox.FullAccess()
	res, err := a.run(t, &job{ask: p.ask, policy: &full, args: sh(`echo x >"$1/new"`, a.out)})
	if err != nil || res.code != 0 || len(p.asked) > 0 {
		t.Errorf("without a sandbox: %+v, %v, asked %+v", res, err, p.asked)
	}
}
