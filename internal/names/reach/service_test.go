// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"testing"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestService: a denied connect to the socket of a service suggests its grant, and one to any
// other socket none.
func TestService(t *testing.T) {
	for name, value := range map[string]string{"SSH_AUTH_SOCK": "/tmp/ssh-x/agent.1", "HOME": "/h",
		"GNUPGHOME": "", "DOCKER_HOST": ""} {
		t.Setenv(name, value)
	}
	for _, tt := range []struct {
		name, addr, net string
		change          func(*DeniedRun)
		want            string
	}{
		{"the agent", "/tmp/ssh-x/agent.1", "unix", nil, "--grant ssh-agent"},
		{"another agent", "/tmp/ssh-x/agent.2", "unix", nil, ""},
		{"docker", "/var/run/docker.sock", "unix", nil, "--grant docker"},
		{"GnuPG", "/h/.gnupg/S.gpg-agent", "unix", nil, "--grant gpg-agent"},
		{"no socket", "/tmp/ssh-x/agent.1", "tcp", nil, ""},
		{"no named grants", "/tmp/ssh-x/agent.1", "unix", func(r *DeniedRun) { r.Named = false }, ""},
		{"another machine", "/tmp/ssh-x/agent.1", "unix", func(r *DeniedRun) { r.Local = false }, ""},
		{"another system", "/tmp/ssh-x/agent.1", "unix", func(r *DeniedRun) { r.OS = "darwin" }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := runOf(sandbox.WorkspaceWrite("/w"))
			r.OS, r.Local = "linux", true
			if tt.change != nil {
				tt.change(r)
			}
			ds := []sandbox.Denial{{Access: sandbox.Access{Op: sandbox.Connect, Net: tt.net, Addr: tt.addr},
				Source: sandbox.Notified}}
			r.Complete(ds)
			if ds[0].Grant != tt.want {
				t.Errorf("%q, want %q", ds[0].Grant, tt.want)
			}
		})
	}
	if GrantWarning("--grant docker", "/h") == "" || GrantWarning("--grant ssh-agent", "/h") != "" {
		t.Error("the warning about docker, and only that, is expected")
	}
}
