// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package reach

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// layout makes a directory with what the tests look at.
func layout(t *testing.T) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"ws/cfg/sallyport", "ws/closed", "ws/.sallyport", "out/sallyport",
		"root", "bin"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, dest := range map[string]string{
		"in": base + "/ws/cfg", "ws/out": base + "/out", "alias": "ws", "chain": "ws/out", "ws/loop": "loop",
		"ws/home": filepath.Join(grants.DatabaseHome(), ".config"), "rootlink": base + "/root",
	} {
		if err := os.Symlink(dest, filepath.Join(base, name)); err != nil {
			t.Fatal(err)
		}
	}
	return base
}

// TestOf: a path is in reach if the file, its name, or a link or directory on the way can be changed.
func TestOf(t *testing.T) {
	base := layout(t)
	home := grants.DatabaseHome()
	run := func(dir string) Area { return Area{Policy: sandbox.WorkspaceWrite(), Workspace: dir} }
	ws := run(base + "/ws")
	closed := ws
	closed.Policy = ws.Policy.WithEntries(sandbox.PathEntry(base+"/ws/closed", sandbox.LevelRead),
		sandbox.PathEntry(base+"/root", sandbox.LevelWrite))
	denied := ws
	denied.Policy = ws.Policy.WithEntries(sandbox.PathEntry(base+"/ws/closed", sandbox.LevelDeny))
	more := ws
	more.Writable = []string{base + "/rootlink", base + "/new"}
	host := ws
	host.HostTmp = true
	readOnly := Area{Policy: sandbox.ReadOnly(), Workspace: base + "/ws"}
	full := Area{Policy: sandbox.FullAccess(), Workspace: base + "/ws"}
	external, err := sandbox.New(sandbox.External, sandbox.NetworkNone)
	if err != nil {
		t.Fatal(err)
	}
	type one struct {
		name, path string
		area       Area
		in         bool
	}
	cases := []one{
		{"outside", base + "/out/sallyport", ws, false},
		{"inside", base + "/ws/cfg/sallyport", ws, true},
		{"the workspace itself", base + "/ws", ws, true},
		{"a name that only begins alike", base + "/ws2/sallyport", ws, false},
		{"missing", base + "/ws/none/at/all", ws, true},
		{"missing, outside", base + "/none/sallyport", ws, false},
		{"dots", base + "/out/../ws/cfg", ws, true},
		{"a link outside leads in", base + "/in/sallyport", ws, true},
		{"a link inside leads out", base + "/ws/out/sallyport", ws, true},
		{"a link to a link inside", base + "/chain/sallyport", ws, true},
		{"a loop inside", base + "/ws/loop/sallyport", ws, true},
		{"the workspace by a link", base + "/ws/cfg", run(base + "/alias"), true},
		{"a missing workspace", base + "/ws/new/x", run(base + "/alias/new"), true},
		{"relative", "ws/cfg", ws, true},
		{"a read-only place in the workspace", base + "/ws/closed/x", closed, false},
		{"a denied place in the workspace", base + "/ws/closed/x", denied, false},
		{"beside it", base + "/ws/closed2/x", closed, true},
		{"a protected name", base + "/ws/.sallyport/x", ws, false},
		{"another writable root", base + "/root/x", closed, true},
		{"a root of another policy, by a link", base + "/root/x", more, true},
		{"the same by the other name", base + "/rootlink/x", more, true},
		{"a missing root of another policy", base + "/new/x", more, true},
		{"the workspace of a read-only run", base + "/ws/cfg", readOnly, true},
		{"beside it", base + "/root/x", readOnly, false},
		{"the workspace with full access", base + "/ws/cfg", full, true},
		{"outside of it", base + "/root/x", full, false},
		{"an external sandbox", base + "/root/x", Area{Policy: external, Workspace: base + "/ws"}, false},
		{"the private /tmp", "/tmp/sallyport-none", ws, false},
		{"the /tmp of the machine", "/tmp/sallyport-none", host, true},
		{"a policy that is not bound", base + "/ws/cfg", Area{Policy: sandbox.Policy{}, Workspace: base + "/ws"}, true},
	}
	if filepath.IsAbs(home) && home != "/" {
		cases = append(cases, []one{
			{"the usual settings in the home as the workspace", home + "/.config/sallyport", run(home), false},
			{"a file in them", home + "/.config/sallyport/config.toml", run(home), false},
			{"another directory in the home as the workspace", home + "/other/sallyport", run(home), true},
			{"the usual directory by a link inside", base + "/ws/home/sallyport", ws, true},
		}...)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var seen *Error
			if err := New(c.area).Of(c.path); errors.As(err, &seen) != c.in || err != nil &&
				!strings.Contains(err.Error(), "commands could change ") {
				t.Errorf("%s: %v", c.path, err)
			}
		})
	}
	if err := (*Reach)(nil).Of("/usr/bin/true"); err == nil {
		t.Error("what is not known is out of reach")
	}
}

// TestHardLinks: another name of a file may be in a writable place.
func TestHardLinks(t *testing.T) {
	base := layout(t)
	write := func(name string) string {
		name = filepath.Join(base, name)
		if err := os.WriteFile(name, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		return name
	}
	link := func(from, to string) {
		if err := os.Link(from, filepath.Join(base, to)); err != nil {
			t.Fatal(err)
		}
	}
	alone, shared, twins := write("bin/alone"), write("bin/shared"), write("bin/one")
	link(shared, "ws/shared")
	link(twins, "bin/two")
	r := New(Area{Workspace: base + "/ws"})
	for name, in := range map[string]bool{alone: false, shared: true, twins: false} {
		if err := r.Of(name); (err != nil) != in {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestProgram: interpreters, also those that env finds, and what a command runs are looked at.
func TestProgram(t *testing.T) {
	base := layout(t)
	write := func(name, text string) string {
		t.Helper()
		name = filepath.Join(base, name)
		if err := testenv.WriteProgram(name, text); err != nil {
			t.Fatal(err)
		}
		return name
	}
	planted := write("ws/interp", "#!/bin/sh\n")
	write("ws/cfg/python9", "#!/bin/sh\n")
	good := write("bin/good", "#!/bin/sh\n")
	byEnv := write("bin/byenv", "#!/usr/bin/env python9\n")
	withEnv := write("bin/withenv", "#!/usr/bin/env -S A=1 python9 -u\n")
	env := []string{"PATH=" + base + "/ws/cfg:" + base + "/bin:/usr/bin:/bin"}
	clean := []string{"PATH=" + base + "/bin:/usr/bin:/bin"}
	r := New(Area{Workspace: base + "/ws"})
	for _, c := range []struct {
		name string
		args []string
		env  []string
		in   bool
	}{
		{"a script", []string{good}, env, false},
		{"an interpreter in reach", []string{write("bin/bad", "#!"+planted+"\n")}, env, true},
		{"an interpreter's interpreter", []string{write("bin/worse", "#!"+write("bin/mid", "#!"+planted+"\n")+"\n")}, env, true},
		{"a relative interpreter", []string{write("bin/rel", "#!ws/interp\n")}, env, true},
		{"an interpreter by env", []string{byEnv}, env, true},
		{"an interpreter by env -S", []string{withEnv}, env, true},
		{"an interpreter that env does not find", []string{byEnv}, clean, true},
		{"a name that PATH finds in reach", []string{"interp"}, append(clean, "PATH="+base+"/ws:/bin"), true},
		{"a name that PATH finds", []string{"good"}, clean, false},
		{"a name that PATH does not find", []string{"nowhere"}, clean, true},
		{"a script of a shell", []string{"sh", base + "/ws/x"}, clean, true},
		{"a relative script", []string{"sh", "ws/x"}, clean, true},
		{"a script of python", []string{"/bin/sh", "-c", "python3 ws/x.py"}, clean, true},
		{"a program in a script", []string{"sh", "-c", "exec " + planted}, clean, true},
		{"a builtin in a script", []string{"sh", "-c", "cd x; good"}, clean, false},
		{"data", []string{"good", base + "/ws/x"}, clean, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := r.Command(c.args, base, c.env); (err != nil) != c.in {
				t.Errorf("%q: %v", c.args, err)
			}
		})
	}
	for word, in := range map[string]bool{
		base + "/ws/x": true, "--file=" + base + "/ws/x": true, "-f" + base + "/ws/x": true, base +
			"/out/x": false,
		"https://x/ws": false, "a sentence with " + base + "/ws/x": false,
	} {
		if err := r.Words([]string{word}); (err != nil) != in {
			t.Errorf("%s: %v", word, err)
		}
	}
	list := strings.Join([]string{base + "/ws/cfg", "", "bin", "/usr/bin", base + "/bin", base +
		"/chain"}, ":")
	if got, want := r.Path(list), "/usr/bin:"+base+"/bin"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
