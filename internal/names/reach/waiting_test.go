// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"testing"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestAsks: what an access that waits requires, and what is not asked about.
func TestAsks(t *testing.T) {
	for name, value := range map[string]string{"SSH_AUTH_SOCK": "/tmp/ssh-x/agent.1", "HOME": "/h",
		"DOCKER_HOST": "", "XDG_CONFIG_HOME": "/h/.config"} {
		t.Setenv(name, value)
	}
	for _, tt := range []struct {
		name, path, program string
		op                  sandbox.Op
		want                string
	}{
		{"a file outside", "/o/f", "/bin/sh", sandbox.Write, "write:/o/f"},
		{"a file of the system", "/etc/hosts", "/bin/sh", sandbox.Write, "write:/etc/hosts"},
		{"below a deny entry", "/d/f", "/bin/sh", sandbox.Write, ""},
		{"a deny pattern", "/w/x/.env", "/bin/sh", sandbox.Write, ""},
		{"a protected name", "/w/.git/config", "/usr/bin/git", sandbox.Write, ""},
		{"a repository deeper in the workspace", "/w/x/.git/hooks/pre-commit", "/bin/sh", sandbox.Write, ""},
		{"settings of sallyport", "/h/.config/sallyport/config.toml", "/bin/sh", sandbox.Write, ""},
		{"what programs go on without", "/usr/lib/python3/__pycache__/a.pyc", "/usr/bin/python3", sandbox.Write, ""},
		{"a start file", "/h/.bashrc", "/bin/sh", sandbox.Write, ""},
		{"a missing store", "/h/.ssh", "/bin/mkdir", sandbox.Write, ""},
		{"in a missing store", "/root/.ssh/authorized_keys2", "/bin/sh", sandbox.Write, ""},
		{"the system's schedule", "/etc/cron.d/x", "/bin/sh", sandbox.Write, ""},
		{"a place that is not clean", "/o/../d/f", "/bin/sh", sandbox.Write, ""},
		{"a socket", "/o/s", "/bin/nc", sandbox.Connect, "write:/o/s"},
		{"the socket of a service", "/tmp/ssh-x/agent.1", "/usr/bin/ssh", sandbox.Connect, "grant:ssh-agent"},
		{"a socket below a deny entry", "/d/s", "/bin/nc", sandbox.Connect, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := runOf(sandbox.WorkspaceWrite("/w").WithEntries(sandbox.PathEntry("/d", sandbox.LevelDeny),
				sandbox.GlobEntry("**/.env")))
			r.OS, r.Local = "linux", true
			if got := r.Asks(tt.op, tt.path, tt.program); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestAsksGit: whether git can do without its index is known at its end. While it runs, that is asked about
// where the command line has git write it.
func TestAsksGit(t *testing.T) {
	for _, tt := range []struct {
		line  string
		asked bool
	}{
		{"git add g", true},
		{"git -C /o/tree -c a.b=c --no-pager commit -m x", true},
		{"cd tree && git stash; true", true},
		{"git status", false},
		{"git log --grep commit", false},
		{"git status; rm f", false},
		{"legit add g", false},
		{"go build", false},
	} {
		t.Run(tt.line, func(t *testing.T) {
			r := runOf(sandbox.WorkspaceWrite("/w"))
			r.Args = []string{"/bin/sh", "-c", tt.line}
			for _, name := range []string{"/o/main/.git/index.lock", "/o/main/.git/worktrees/t/index.lock"} {
				if got := r.Asks(sandbox.Write, name, "/usr/bin/git"); (got != "") != tt.asked {
					t.Errorf("%s: %q", name, got)
				}
			}
		})
	}
}
