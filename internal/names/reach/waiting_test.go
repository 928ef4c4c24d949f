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
		{"what programs go on without", "/usr/lib/python3/__pycache__/a.pyc", "/usr/bin/python3",
			sandbox.Write, ""},
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
