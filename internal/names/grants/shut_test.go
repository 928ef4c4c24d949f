// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"slices"
	"testing"
)

// TestShutNames: stores of secrets and what programs run later, in every home and also where they are missing, are
// shut for questions; names beside them are not.
func TestShutNames(t *testing.T) {
	t.Setenv("PATH", "/opt/tools:/usr/bin")
	for _, tt := range []struct {
		name, path string
		tree, want bool
	}{
		{"~/.ssh", "/h/.ssh", false, true},
		{"in ~/.ssh", "/h/.ssh/authorized_keys2", false, true},
		{"of root", "/root/.ssh/authorized_keys", false, true},
		{"a home that is not known", "/data/homes/x/.bashrc", false, true},
		{"a start file", "/h/.profile", false, true},
		{"settings of a shell", "/h/.config/fish/conf.d/x.fish", false, true},
		{"cloud", "/h/.aws/credentials", false, true},
		{"a token", "/h/.vault-token", false, true},
		{"a store with a form", "/h/.npmrc", false, true},
		{"keys", "/h/.gnupg/private-keys-v1.d/x.key", false, true},
		{"a wallet", "/h/.bitcoin/wallet.dat", false, true},
		{"an agent's login", "/h/.codex/auth.json", false, true},
		{"programs", "/h/.local/bin/x", false, true},
		{"programs of the system", "/usr/local/bin/x", false, true},
		{"libraries", "/usr/lib/python3/x.py", false, true},
		{"in PATH", "/opt/tools/x", false, true},
		{"cron", "/etc/cron.d/x", false, true},
		{"crontab", "/etc/crontab", false, true},
		{"a service", "/etc/systemd/system/x.service", false, true},
		{"users", "/etc/passwd", false, true},
		{"a tree with start files", "/h/.config", true, true},
		{"a tree with a store", "/h/.local/share", true, true},
		{"a tree of the system", "/etc", true, true},
		{"that tree by itself", "/h/.config", false, false},
		{"settings of no one", "/h/.config/unknown/x", false, false},
		{"a project", "/h/src/p/main.go", false, false},
		{"a tree of a project", "/h/src/p", true, false},
		{"data", "/srv/demo/report", false, false},
		{"a file of the system", "/etc/hosts", false, false},
		{"like a store", "/h/.sshx", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Shut(tt.path, tt.tree); got != tt.want {
				t.Errorf("%s: %v", tt.path, got)
			}
		})
	}
}

// TestShutTable: each store of the table is shut, in every home.
func TestShutTable(t *testing.T) {
	n := 0
	for _, k := range kinds {
		names := slices.Concat(k.paths, k.keys)
		for _, f := range k.files {
			names = append(names, f.path)
		}
		for _, name := range names {
			if n++; !Shut("/somewhere/else/"+name, false) || !Shut("/root/"+name+"/below", false) {
				t.Errorf("%s (%s) is open", name, k.name)
			}
		}
	}
	for _, of := range homeNames {
		for _, name := range of.names {
			if n++; !Shut("/somewhere/else/"+name, false) {
				t.Errorf("%s is open", name)
			}
		}
	}
	if n < 500 {
		t.Errorf("only %d names", n)
	}
}

// TestShutLinks: what names lead to by links is shut as well.
func TestShutLinks(t *testing.T) {
	real := func(name string) string {
		if name == "/h/.bashrc" {
			return "/data/dotfiles/bashrc"
		}
		return name
	}
	if got := ShutLinks([]string{"/h"}, real); !slices.Equal(got, []string{"/data/dotfiles/bashrc"}) {
		t.Errorf("%q", got)
	}
}
