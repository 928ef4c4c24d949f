// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package reach

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/testenv"
)

// TestSite: a name is the program that is meant only if nothing in reach can take its place.
func TestSite(t *testing.T) {
	base := layout(t)
	for _, name := range []string{"bin/tool", "ws/cfg/tool", "ws/deploy.sh"} {
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
		{"not found", []string{"none"}, nil, false, false},
		{"a script of a shell", []string{"sh", "deploy.sh"}, nil, true, false},
		{"the same in a script", []string{"sh", "-c", "bash ./deploy.sh"}, nil, true, false},
		{"source", []string{"sh", "-c", ". ./deploy.sh"}, nil, true, false},
		{"data in reach", []string{"tool", "deploy.sh"}, nil, true, true},
		{"a library in reach", []string{"tool"}, []string{"LD_PRELOAD=" + ws + "/x.so"}, false, false},
		{"an empty element of the library path", []string{"tool"}, []string{"LD_LIBRARY_PATH=/usr/lib:"}, false, false},
		{"a library out of reach", []string{"tool"}, []string{"LD_LIBRARY_PATH=/usr/lib"}, true, true},
		{"a startup script of shells", []string{"tool"}, []string{"BASH_ENV=" + ws + "/x"}, false, false},
		{"a function", []string{"sh", "-c", "tool"}, []string{"BASH_FUNC_tool%%=() { :; }"}, false, false},
		{"settings of git", []string{"tool"}, []string{"GIT_CONFIG_GLOBAL=x"}, true, false},
		{"an editor in reach", []string{"tool"}, []string{"EDITOR=" + ws + "/cfg/tool"}, true, false},
		{"an editor", []string{"tool"}, []string{"EDITOR=sh"}, true, true},
		{"a login shell", []string{"sh", "-lc", "tool"}, nil, true, true},
		{"a login shell with a HOME in reach", []string{"sh", "-lc", "tool"}, []string{"HOME=" + ws}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &Site{Reach: New(Area{Workspace: ws}), Dir: ws, Env: slices.Concat([]string{path, home}, c.env)}
			if err := s.Named(c.args); (err == nil) != c.named {
				t.Errorf("named: %v", err)
			}
			if err := s.Outside(c.args); (err == nil) != c.leaves {
				t.Errorf("outside: %v", err)
			}
		})
	}
	env := []string{"A=1", "BASH_ENV=" + ws + "/x", "LD_LIBRARY_PATH=/usr/lib", "PATH=" + ws + ":/bin", "PS4=$(x)"}
	if got, want := New(Area{Workspace: ws}).Environ(env), []string{"A=1", "LD_LIBRARY_PATH=/usr/lib", "PATH=/bin"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
