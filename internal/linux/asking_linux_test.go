// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// An approver answers questions and remembers them.
type approver struct {
	answer func(context.Context, executor.AccessQuestion) bool

	mu    sync.Mutex
	asked []executor.AccessQuestion
}

func (p *approver) ask(ctx context.Context, q executor.AccessQuestion) bool {
	p.mu.Lock()
	p.asked = append(p.asked, q)
	p.mu.Unlock()
	return p.answer(ctx, q)
}

func says(yes bool) *approver {
	return &approver{answer: func(context.Context, executor.AccessQuestion) bool { return yes }}
}

// prepare makes the directory that an askedOp is about, and the workspace's own file.
func (a *arena) prepare(t testing.TB, name string) string {
	t.Helper()
	at := filepath.Join(a.out, name)
	must(t, os.MkdirAll(at+"/dir", 0o755))
	write(t, at+"/old", "old text")
	write(t, at+"/other", "other")
	write(t, a.ws+"/mine", "mine")
	if err := unix.Setxattr(at+"/other", "user.has", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	must(t, os.Symlink("old", at+"/link"))
	return at
}

// reset removes what a call has left in the workspace, and returns how often it has run.
func (a *arena) reset(t testing.TB) int {
	t.Helper()
	b, err := os.ReadFile(a.ws + "/count")
	must(t, err)
	for _, name := range []string{"count", "new", "mine"} {
		_ = os.Remove(filepath.Join(a.ws, name))
	}
	return strings.Count(string(b), "\n")
}

// outside makes the call of an askedOp without a sandbox, and returns the trees that it leaves.
func (a *arena) outside(t *testing.T, name string) string {
	t.Helper()
	at := a.prepare(t, name+"-direct")
	b, err := exec.Command(os.Getenv(programVar), partAsked, name, "ws="+a.ws, "at="+at).CombinedOutput()
	if err != nil || strings.TrimSpace(string(b)) != "done" {
		t.Fatalf("outside: %s, %v", b, err)
	}
	return a.trees(t, at)
}

func (a *arena) trees(t *testing.T, at string) string {
	t.Helper()
	out, err := treeOf(at)
	must(t, err)
	for _, name := range []string{"/new", "/mine"} {
		if b, err := os.ReadFile(a.ws + name); err == nil {
			out += fmt.Sprintf("ws%s %q\n", name, b)
		}
	}
	return out
}

// TestAsking: each call has, after a yes, the effect that it has outside of the sandbox, and after a no
// none. The command runs once.
func TestAsking(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	for name, op := range askedOps() {
		t.Run(name, func(t *testing.T) {
			want := a.outside(t, name)
			a.reset(t)
			for _, yes := range []bool{true, false} {
				at := a.prepare(t, fmt.Sprintf("%s-%v", name, yes))
				before := a.trees(t, at)
				p := says(yes)
				got, after := a.asks(t, p, name, at, nil)
				wantOut, wantTree := "done", want
				if !yes {
					wantOut, wantTree = op.errno, before
				}
				if got != wantOut || a.trees(t, at) != wantTree {
					t.Errorf("%v: %s, want %s\n%s\nwant\n%s", yes, got, wantOut, a.trees(t, at), wantTree)
				}
				if (len(after.Denials) == 0) != yes {
					t.Errorf("%v: denials %v", yes, after.Denials)
				}
				a.wasAsked(t, p.asked, at, &op)
				if n := a.reset(t); n != 1 {
					t.Errorf("%v: it ran %d times", yes, n)
				}
			}
		})
	}
}

// wasAsked checks the one question about an askedOp.
func (a *arena) wasAsked(t *testing.T, asked []executor.AccessQuestion, at string, op *askedOp) {
	t.Helper()
	if len(asked) != 1 {
		t.Errorf("asked %+v", asked)
		return
	}
	q := asked[0]
	var paths []string
	for _, p := range op.paths {
		paths = append(paths, at+"/"+p)
	}
	if q.Call != op.call || !slices.Equal(q.Paths, paths) ||
		q.Program != filepath.Base(os.Getenv(programVar)) || q.PID <= 0 ||
		q.Access != (sandbox.Access{Op: sandbox.Write, Path: paths[0]}) {
		t.Errorf("asked %+v, want %s of %q", q, op.call, paths)
	}
}
