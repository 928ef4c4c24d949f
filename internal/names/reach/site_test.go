// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package reach

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestSite: a name is the program that is meant only if nothing in reach can take its place.
func TestSite(t *testing.T) {
	base := layout(t)
	for _, name := range []string{"bin/tool", "bin/zsh", "bin/git", "ws/cfg/tool", "ws/deploy.sh"} {
		if err := testenv.WriteProgram(filepath.Join(base, name), "#!/bin/sh\n"); err != nil {
			t.Fatal(err)
		}
	}
	ws := base + "/ws"
	path := "PATH=" + base + "/bin:/usr/bin:/bin"
	home := "HOME=" + base + "/out"
	for _, c := range []struct {
		name          string
		args, env     []string
		named, leaves bool
	}{
		{"a program", []string{"tool"}, nil, true, true},
		{"planted before it", []string{"tool"}, []string{"PATH=" + ws + "/cfg:" + base + "/bin:/bin"}, false, false},
		{"planted behind it", []string{"tool"}, []string{"PATH=" + base + "/bin:" + ws + "/cfg:/bin"}, true, true},
		{"a relative path", []string{"./deploy.sh"}, nil, false, false},
		{"an absolute path in reach", []string{ws + "/deploy.sh"}, nil, false, false},
		{"not found", []string{"none"}, nil, true, false},
		{"not found in a script", []string{"sh", "-c", "none || tool"}, nil, true, true},
		{"not found, where one can be planted", []string{"none"}, []string{"PATH=" + ws + "/cfg:/bin"}, false, false},
		{"not found, and the directory counts", []string{"none"}, []string{"PATH=:/bin"}, false, false},
		{"not found by a path", []string{"/usr/bin/none"}, nil, false, false},
		{"a script of a shell", []string{"sh", "deploy.sh"}, nil, true, false},
		{"the same in a script", []string{"sh", "-c", "bash ./deploy.sh"}, nil, true, false},
		{"source", []string{"sh", "-c", ". ./deploy.sh"}, nil, true, false},
		{"data in reach", []string{"tool", "deploy.sh"}, nil, true, true},
		{"a library in reach", []string{"tool"}, []string{"LD_PRELOAD=" + ws + "/x.so"}, false, false},
		{"an empty element of the library path", []string{"tool"}, []string{"LD_LIBRARY_PATH=/usr/lib:"}, false, false},
		{"a library out of reach", []string{"tool"}, []string{"LD_LIBRARY_PATH=/usr/lib"}, true, true},
		{"a startup script of shells", []string{"tool"}, []string{"BASH_ENV=" + ws + "/x"}, false, false},
		{"a function", []string{"sh", "-c", "tool"}, []string{"BASH_FUNC_tool%%=() { :; }"}, false, false},
		{"settings of git, which the tool does not get", []string{"tool"}, []string{"GIT_CONFIG_GLOBAL=x"}, true, true},
		{"an editor in reach, which it does not get", []string{"tool"}, []string{"EDITOR=" + ws + "/cfg/tool"}, true, true},
		{"an editor", []string{"tool"}, []string{"EDITOR=sh"}, true, true},
		{"a login shell", []string{"sh", "-lc", "tool"}, nil, true, true},
		{"a login shell with a HOME in reach", []string{"sh", "-lc", "tool"}, []string{"HOME=" + ws}, true, false},
		{"a shell with a HOME in reach", []string{"sh", "-c", "tool"}, []string{"HOME=" + ws}, true, true},
		{"one that reads there at each start", []string{"zsh", "-c", "tool"}, []string{"HOME=" + ws}, true, false},
		{"the same in a script", []string{"sh", "-c", "zsh -c tool"}, []string{"HOME=" + ws}, true, false},
		{"the same with another HOME", []string{"zsh", "-c", "tool"}, nil, true, true},
		{"git with a HOME in reach", []string{"git", "status"}, []string{"HOME=" + ws}, true, false},
		{"git with settings in reach", []string{"git", "status"}, []string{"XDG_CONFIG_HOME=" + ws}, true, false},
		{"git", []string{"git", "status"}, nil, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &Site{Reach: New(Area{Workspace: ws}), Dir: ws,
				Env: slices.Concat([]string{path, home}, c.env)}
			if err := s.Named(c.args); (err == nil) != c.named {
				t.Errorf("named: %v", err)
			}
			if err := s.Outside(c.args); (err == nil) != c.leaves {
				t.Errorf("outside: %v", err)
			}
		})
	}
}

// TestEnviron: what runs outside finds nothing by its environment that commands can change.
func TestEnviron(t *testing.T) {
	base := layout(t)
	ws := base + "/ws"
	if err := testenv.WriteProgram(base+"/bin/tool", "#!/bin/sh\n"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name               string
		env, kept, dropped []string
	}{
		{"nothing", nil, nil, nil},
		{"what leads nowhere", []string{"A=1", "LD_LIBRARY_PATH=/usr/lib"}, []string{"A=1", "LD_LIBRARY_PATH=/usr/lib"}, nil},
		{"a startup script", []string{"BASH_ENV=" + ws + "/x", "A=1"}, []string{"A=1"}, []string{"BASH_ENV"}},
		{"a path in the directory of the command", []string{"PYTHONPATH=lib"}, nil, []string{"PYTHONPATH"}},
		{"code", []string{"PS4=$(x)"}, nil, []string{"PS4"}},
		{"directories of PATH", []string{"PATH=" + ws + "/bin:.::~/bin:rel:" + base + "/bin"}, []string{"PATH=" + base + "/bin"}, nil},
		{"no other directory of PATH", []string{"PATH=" + ws + ":."}, nil, nil},
		{"an editor that is not there", []string{"EDITOR=none -w", "PATH=" + ws + ":/bin"}, []string{"EDITOR=none -w", "PATH=/bin"}, nil},
		{"an editor in reach that is not there", []string{"EDITOR=" + ws + "/none"}, nil, []string{"EDITOR"}},
		{"an editor by a name that is planted", []string{"EDITOR=tool", "PATH=" + ws + "/cfg:" + base + "/bin"}, []string{"EDITOR=tool", "PATH=" + base + "/bin"}, nil},
		{"modules of a HOME in reach", []string{"HOME=" + ws}, []string{"HOME=" + ws, "PYTHONNOUSERSITE=1"}, nil},
		{"modules of a relative HOME", []string{"HOME=x"}, []string{"HOME=x", "PYTHONNOUSERSITE=1"}, nil},
		{"modules of another HOME", []string{"HOME=" + base + "/out"}, []string{"HOME=" + base + "/out"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			kept, dropped := New(Area{Workspace: ws}).Environ(ws, c.env)
			if !slices.Equal(kept, c.kept) || !slices.Equal(dropped, c.dropped) {
				t.Errorf("%q without %q, want %q without %q", kept, dropped, c.kept, c.dropped)
			}
		})
	}
}
