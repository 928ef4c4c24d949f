// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// inWorkspace returns a function that runs a program under the default policy.
func inWorkspace(tb testing.TB, host *linux.Host, ws string, env []string, noCaches bool,
	args ...string) func() error {
	return withRoots(tb, host, []string{ws}, env, noCaches, args...)
}

// withRoots does the same with more writable roots behind the workspace.
func withRoots(tb testing.TB, host *linux.Host, roots, env []string, noCaches bool,
	args ...string) func() error {
	ws := roots[0]
	r := &executor.Spec{
		Args: args, Dir: ws, Env: env, NoCaches: noCaches,
		Policy: sandbox.WorkspaceWrite(roots...).Bind(sandbox.Places{Dir: ws, Workspaces: roots,
			SlashTmp: "/tmp"}),
	}
	return started(tb, host, r)
}

// goEnv asks the go command for a variable.
func goEnv(tb testing.TB, name string) string {
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// BenchmarkCachedBuild guards: a build of this module of which everything is in the
// cache, inside with an overlay over the host's cache, takes at most 1.15 times as
// long as outside. The variant inside with the host's caches as writable roots tells
// the overlay from the sandbox around it.
func BenchmarkCachedBuild(b *testing.B) {
	testenv.NeedUserNS(b)
	goProgram := testenv.NeedProgram(b, "go")
	host := new(linux.Host)
	defer host.Close()
	ws, home := workspace(b), workspace(b)
	b.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	cache, modules := goEnv(b, "GOCACHE"), goEnv(b, "GOMODCACHE")
	copySources(b, ws, filepath.Join("..", "..", ".."))
	env := []string{
		"PATH=" + filepath.Dir(goProgram) + ":/usr/bin:/bin", "HOME=" + home, "GOENV=off",
		"GOTOOLCHAIN=local", "GOFLAGS=-buildvcs=false", "GOPROXY=off",
		"CGO_ENABLED=0", "TMPDIR=/tmp", "GOCACHE=" + cache, "GOMODCACHE=" + modules,
	}
	build := []string{goProgram, "build", "./..."}
	if OnlyOnce() {
		build[2] = "./sandbox"
	}
	outside := func() error {
		cmd := exec.Command(build[0], build[1:]...)
		cmd.Dir, cmd.Env = ws, env
		return cmd.Run()
	}
	if err := outside(); err != nil { // fills the host's cache
		b.Fatal(err)
	}
	vs := []Variant{
		{"overlay", inWorkspace(b, host, ws, env, false, build...)},
		{"no-overlay", withRoots(b, host, []string{ws, cache, modules}, env, true, build...)},
		{"outside", outside},
	}
	for b.Loop() {
		times, err := Rounds(15, vs) // a build takes about a second
		if err != nil {
			b.Fatal(err)
		}
		for i := range vs {
			b.ReportMetric(float64(Middle(times[i]).Microseconds()), vs[i].Name+"-us")
			if i > 0 {
				b.ReportMetric(Ratio(times[0], times[i]), "x-"+vs[i].Name)
			}
		}
	}
}

// copySources copies what a build of the module in from reads.
func copySources(tb testing.TB, ws, from string) {
	tb.Helper()
	err := filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		switch {
		case err != nil || rel == ".":
			return err
		case d.Name() == ".git" || d.Name() == "testdata":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return os.Mkdir(filepath.Join(ws, rel), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(ws, rel), text, 0o644)
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkStartCaches compares a start with three overlays with one that has none,
// in the same workspace and in one without a toolchain.
func BenchmarkStartCaches(b *testing.B) {
	testenv.NeedUserNS(b)
	host := new(linux.Host)
	defer host.Close()
	ws, bareWS, home := workspace(b), workspace(b), workspace(b)
	b.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	for _, d := range []string{".cache/go-build", "go/pkg/mod", ".npm"} {
		if err := os.MkdirAll(filepath.Join(home, d), 0o755); err != nil {
			b.Fatal(err)
		}
	}
	for _, n := range []string{"go.mod", "package.json"} {
		if err := os.WriteFile(filepath.Join(ws, n), nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	env := []string{"PATH=/usr/bin:/bin", "HOME=" + home}
	vs := []Variant{
		{"overlays", inWorkspace(b, host, ws, env, false, "/bin/true")},
		{"no-caches", inWorkspace(b, host, ws, env, true, "/bin/true")},
		{"no-toolchain", inWorkspace(b, host, bareWS, env, false, "/bin/true")},
	}
	compare(b, vs)
}
