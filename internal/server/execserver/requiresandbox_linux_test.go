// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"os"
	"strings"
	"testing"
)

// TestRequireSandbox: with Options.RequireSandbox a client gets no process and no change of a file outside
// of a sandbox, in whatever words it asks; without a managed configuration, and with one that says nothing
// of it. Reads without a sandbox are performed in one. Where that one ends at a mode itself, that counts.
// Without the option the same requests succeed.
func TestRequireSandbox(t *testing.T) {
	const word = "--require-sandbox"
	wide := map[string]any{"type": "managed", "network": "enabled",
		"file_system": map[string]any{"type": "unrestricted"}}
	for _, set := range []struct {
		name, managed string
		requires      bool
		says          string // what the refusals name; empty for none
	}{
		{"not required", "", false, ""},
		{"required", "", true, word},
		{"required, beside a managed configuration", "limits.pids = 500", true, word},
		{"required, below a mode", `sandbox = "read-only"`, true, "managed.toml:"},
	} {
		t.Run(set.name, func(t *testing.T) {
			s := newStage(t, set.managed)
			if set.managed == "" {
				check(t, os.Remove(s.etc+"/managed.toml"))
			}
			s.o.RequireSandbox = set.requires
			s.connect(t)
			in := func(permissions any) map[string]any {
				return map[string]any{"permissions": permissions, "cwd": "file://" + s.ws,
					"windowsSandboxLevel": "disabled"}
			}
			judge := func(name string, m message) {
				t.Helper()
				if (m.Error == nil) != (set.says == "") || m.Error != nil &&
					(!strings.Contains(m.Error.Message, set.says) || m.Error.Data.ExitCode != 122) {
					t.Errorf("%s: %+v", name, m.Error)
				}
			}
			for name, sandbox := range map[string]any{
				"none": nil, "disabled": in(map[string]any{"type": "disabled"}), "unrestricted": in(wide),
				"external": in(map[string]any{"type": "external", "network": "enabled"}),
				"all":      profileOf(s.ws, "restricted", "write root"),
			} {
				m, _ := s.start(name, "true", map[string]any{"sandbox": sandbox})
				if name == "all" || name == "unrestricted" { // which no sandbox can have
					if m.Error == nil {
						t.Errorf("process/start, %s succeeds", name)
					}
					continue
				}
				judge("process/start, "+name, m)
			}
			m, out := s.start("in", "echo ran", map[string]any{
				"sandbox": profileOf(s.ws, "restricted", "read root")})
			if m.Error != nil || out != "ran" {
				t.Errorf("process/start in a sandbox: %+v, %q", m.Error, out)
			}
			s.sandbox = nil
			judge("fs/writeFile", s.do("fs/writeFile", "new", "dataBase64", ""))
			s.sandbox = in(wide)
			judge("fs/writeFile, unrestricted", s.do("fs/writeFile", "../out/new", "dataBase64", ""))
			s.sandbox = nil
			judge("fs/remove", s.do("fs/remove", "../out/file"))
			if m := s.do("fs/readFile", "file"); m.Error != nil {
				t.Errorf("fs/readFile: %+v", m.Error)
			}
			if set.requires == exists(s.ws+"/new") || set.requires != exists(s.outside+"/file") {
				t.Error("the files are not as the answers say")
			}
		})
	}
}
