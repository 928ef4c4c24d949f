// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/confine"
	"github.com/sallyport-dev/sallyport/internal/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// inWorkspace returns a function that runs a program under the default policy.
func inWorkspace(tb testing.TB, host *confine.Host, ws string, env []string, noCaches bool, args ...string) func() error {
	return withRoots(tb, host, []string{ws}, env, noCaches, args...)
}

// withRoots does the same with more writable roots behind the workspace.
func withRoots(tb testing.TB, host *confine.Host, roots, env []string, noCaches bool, args ...string) func() error {
	f, ws := null(tb), roots[0]
	r := &confine.Request{
		Args: args, Dir: ws, Env: env, NoCaches: noCaches,
		Policy: sandbox.WorkspaceWrite(roots...).Bind(sandbox.Places{Dir: ws, Workspaces: roots, SlashTmp: "/tmp"}),
	}
	return func() error {
		c, err := host.Start(context.Background(), r, f, f, f)
		if err != nil {
			return err
		}
		defer c.Close()
		if code, _, err := c.Wait(); err != nil || code != 0 {
			return fmt.Errorf("exit %d, %w", code, err)
		}
		return c.WaitAll()
	}
}

// BenchmarkCachedBuild compares a build of which everything is in the cache: inside
// with an overlay over the host's cache, inside with the host's cache as a writable
// root, which tells the overlay from the sandbox around it, and outside. It guards
// 1.15 times the second. The aim is 1.15 times the third, too; of a build as short
// as this one the sandbox alone takes more. The program has a few dozen packages
// of the standard library.
func BenchmarkCachedBuild(b *testing.B) {
	testenv.NeedUserNS(b)
	goProgram := testenv.NeedProgram(b, "go")
	host := new(confine.Host)
	defer host.Close()
	ws, home := workspace(b), workspace(b)
	b.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	for name, text := range map[string]string{
		"go.mod":  "module example.org/m\n\ngo 1.26\n",
		"main.go": "package main\n\nimport (\n\t\"encoding/json\"\n\t\"os\"\n\t\"text/template\"\n)\n\nfunc main() {\n\t_ = json.NewEncoder(os.Stdout).Encode(template.New(\"\").Name())\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(ws, name), []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	env := []string{
		"PATH=" + filepath.Dir(goProgram) + ":/usr/bin:/bin", "HOME=" + home, "GOENV=off", "GOTOOLCHAIN=local", "GOFLAGS=-buildvcs=false", "GOPROXY=off",
		"CGO_ENABLED=0", "TMPDIR=/tmp",
	}
	outside := func() error {
		cmd := exec.Command(goProgram, "build", "-o", "m", ".")
		cmd.Dir, cmd.Env = ws, env
		return cmd.Run()
	}
	if err := outside(); err != nil { // fills the host's cache
		b.Fatal(err)
	}
	vs := []Variant{
		{"overlay", inWorkspace(b, host, ws, env, false, goProgram, "build", "-o", "m", ".")},
		{"no-overlay", withRoots(b, host, []string{ws, filepath.Join(home, ".cache")}, env, true, goProgram, "build", "-o", "m", ".")},
		{"outside", outside},
	}
	for b.Loop() {
		times, err := Rounds(30, vs)
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

// BenchmarkStartCaches compares a start with three overlays with one that has none,
// in the same workspace and in one without a toolchain.
func BenchmarkStartCaches(b *testing.B) {
	testenv.NeedUserNS(b)
	host := new(confine.Host)
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
