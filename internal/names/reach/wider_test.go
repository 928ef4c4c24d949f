// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"cmp"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestWarnedPlaces: advice that opens what other programs run or obey later has a warning and is no narrow
// grant; advice for data has none.
func TestWarnedPlaces(t *testing.T) {
	t.Setenv("PATH", "/usr/bin:/opt/tools/programs:relative:")
	for _, test := range []struct {
		path   string
		warned bool
	}{
		{"/h/bin/x", true}, {"/h/go/bin", true}, {"/h/.cargo/bin/tool", true}, {"/opt/tools/programs/x", true}, {"/opt/tools", true}, {"/opt/other/sbin", true},
		{"/h/.gitconfig", true}, {"/h/.config/git/config", true}, {"/h/.config", true}, {"/h/.claude/settings.json", true}, {"/h/.codex/config.toml", true}, {"/h/.vimrc", true},
		{"/h/.gdbinit", true}, {"/h/.nvm/nvm.sh", true}, {"/h/.config/fish/conf.d/x.fish", true}, {"/h/.config/systemd/user/x.service", true}, {"/h/.config/autostart/x.desktop", true},
		{"/h/.ssh/config", true}, {"/h/.bashrc", true}, {"/h/.zshenv", true}, {"/var/spool/cron/u", true}, {"/h/.tmux.conf", true}, {"/h/.config/nvim/init.lua", true},
		{"/h/.npmrc", true}, {"/h/.ipython/profile_default/startup/x.py", true}, {"/h/.gnupg/gpg-agent.conf", true}, {"/h/.docker/cli-plugins/x", true}, {"/h/.local/lib/python3.12/site-packages/x.pth", true},
		{"/h/other/.vscode/tasks.json", true}, {"/h/other/.envrc", true}, {"/h/other/AGENTS.md", true}, {"/etc/ld.so.preload", true}, {"/h/Library/LaunchAgents/x.plist", true},
		{"/h/.config/qtile/config.py", true}, {"/h/.xmonad/xmonad.hs", true}, {"/h/.zinit/plugins/x", true}, {"/h/.config/nnn/plugins/x", true}, {"/h/.local/share/gh/extensions/gh-x/gh-x", true}, {"/h/.config/chezmoi/chezmoi.toml", true},
		{"/h/.pi/agent/extensions/x.ts", true}, {"/h/.config/cargo/config.toml", true}, {"/h/other/.openhands/setup.sh", true}, {"/h/.julia/config/startup.jl", true}, {"/h/.julia/compiled/x", false}, {"/h/.ansible/tmp/x", false},
		{"/h/data/file", false}, {"/h/project/src/x.go", false}, {"/srv/out/report.txt", false}, {"/h/.cache/tool/x", false}, {"/h/Documents/binary/x", false}, {"/opt/other/programs", false}, {"/h/.local/share/app/data.db", false},
	} {
		g := sandbox.Grant{Path: test.path, Level: sandbox.LevelWrite}
		if got := GrantWarning(g.String(), "/h"); (got != "") != test.warned {
			t.Errorf("%s: %q", test.path, got)
		}
		g.Level = sandbox.LevelRead
		if got := GrantWarning(g.String(), "/h"); got != "" {
			t.Errorf("reading %s: %q", test.path, got)
		}
		r := &DeniedRun{Policy: sandbox.ReadOnly(), Dir: "/w", Env: []string{"HOME=/h"}, OS: "linux", Named: true}
		ds := []sandbox.Denial{{Access: sandbox.Access{Op: sandbox.Write, Path: test.path},
			Source: sandbox.Notified}}
		r.Complete(ds)
		if test.warned && ds[0].Grant != "" || ds[0].Grant+ds[0].Wider == "" {
			t.Errorf("%s: grant %q, wider %q", test.path, ds[0].Grant, ds[0].Wider)
		}
	}
}

// TestHomeNames: for a file in a home directory that programs run later, its path is suggested where it
// exists and the grant where it is missing, with a warning; names of agents and editors have their grants.
// Each name of the table has a warning.
func TestHomeNames(t *testing.T) {
	home := sandbox.WorkspaceWrite("/h")
	for _, test := range []struct {
		name, path, want string
		policy           sandbox.Policy
	}{
		{"an existing file", "/h/.bashrc", "--rw /h/.bashrc", home},
		{"a file in an existing directory", "/h/.ssh/authorized_keys", "--rw /h/.ssh/authorized_keys", home},
		{"a new file in one", "/h/.ssh/config", "--rw /h/.ssh", home},
		{"a missing file", "/h/.profile", "--grant home-config", home},
		{"in a missing directory", "/h/.local/bin/x", "--grant home-config", home},
		{"an editor's", "/h/.config/nvim/init.lua", "--grant editor-config", home},
		{"a part of the home", "/h/.config/autostart/x", "--grant home-config",
			sandbox.WorkspaceWrite("/h/.config")},
		{"the directory itself is open", "/h/.ssh/config", "", sandbox.WorkspaceWrite("/h/.ssh")},
		{"missing in a home that is closed", "/h/.zshrc", "--rw /h --grant home-config",
			sandbox.WorkspaceWrite("/w")},
		{"existing in a home that is closed", "/h/.bashrc", "--rw /h/.bashrc", sandbox.WorkspaceWrite("/w")},
		{"another file", "/h/.config/app/x", "", home},
	} {
		t.Run(test.name, func(t *testing.T) {
			ds := writes(test.path)
			runOf(test.policy, "/h/.bashrc", "/h/.ssh/authorized_keys").Complete(ds)
			got := cmp.Or(ds[0].Grant, ds[0].Wider)
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
	for _, grant := range grants.ToolGrants() {
		for _, name := range grants.OpenedInHome(grant) {
			if GrantWarning("--rw /h/"+name, "/h") == "" {
				t.Errorf("--rw ~/%s has no warning", name)
			}
		}
	}
	if GrantWarning("--grant home-config", "/h") == "" {
		t.Error("the grant has no warning")
	}
}
