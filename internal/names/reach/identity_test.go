// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestCanonical: only what makes no difference is left out.
func TestCanonical(t *testing.T) {
	for _, test := range []struct {
		name      string
		one, two  []string
		different bool
	}{
		{"spaces", []string{"/bin/bash", "-lc", "cargo test -p x"}, []string{"bash", "-lc", "cargo   test   -p x"}, false},
		{"a here-document", []string{"/bin/bash", "-c", "cat <<E\nx\nE"}, []string{"bash", "-c", "cat <<E\nx\nE"}, false},
		{"quoted spaces", []string{"sh", "-c", "echo 'a  b'"}, []string{"sh", "-c", "echo 'a b'"}, true},
		{"login", []string{"sh", "-lc", "x"}, []string{"sh", "-c", "x"}, true},
		{"two commands", []string{"sh", "-c", "a;  b"}, []string{"sh", "-c", "a; b"}, true},
		{"a script that looks like a plain one", []string{"sh", "-c", "x y"}, []string{"sh", "-c", "", "x", "y"}, true},
		{"spaces without a shell", []string{"echo", "a  b"}, []string{"echo", "a b"}, true},
		{"another program", []string{"/bin/echo", "a"}, []string{"echo", "a"}, true},
	} {
		if one, two := canonical(test.one), canonical(test.two); slices.Equal(one, two) == test.different {
			t.Errorf("%s: %q, %q", test.name, one, two)
		}
	}
}

// TestKey: each part of a command makes another key, and another machine's paths are not looked at.
func TestKey(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x.sh")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	base := ApprovedCommand{Local: true, Args: []string{"sh", "x.sh"}, Dir: dir, Env: []string{"PATH=/bin:/usr/bin"},
		Policy: sandbox.WorkspaceWrite(dir)}
	seen := map[string]string{IdentityOf(&base).Key(): "the command"}
	for name, change := range map[string]func(*ApprovedCommand){
		"machine":   func(c *ApprovedCommand) { c.Environment = "other" },
		"remote":    func(c *ApprovedCommand) { c.Local = false },
		"arguments": func(c *ApprovedCommand) { c.Args = []string{"sh", "x.sh", "y"} },
		"arg0":      func(c *ApprovedCommand) { c.Arg0 = "bash" },
		"directory": func(c *ApprovedCommand) { c.Dir = "/" },
		"variable":  func(c *ApprovedCommand) { c.Env = append([]string{"A=1"}, c.Env...) },
		"policy":    func(c *ApprovedCommand) { c.Policy = sandbox.WorkspaceWrite(dir, "/srv") },
		"opening":   func(c *ApprovedCommand) { c.Allow = []string{"unix"} },
		"shape":     func(c *ApprovedCommand) { c.Shape = []any{true} },
		"contents":  func(*ApprovedCommand) { write("two") },
	} {
		c := base
		change(&c)
		key := IdentityOf(&c).Key()
		if old, ok := seen[key]; ok || key == "" {
			t.Errorf("%s: the key is that of %s", name, old)
		}
		seen[key] = name
		write("one")
	}
	if base.Env[0], base.Dir = "PATH=/usr/bin:/bin", dir+"/."; seen[IdentityOf(&base).Key()] != "" {
		t.Error("another PATH is another command")
	}
}

// TestVersion: a policy has a short name of its own.
func TestVersion(t *testing.T) {
	name := Version(sandbox.ReadOnly())
	if len(name) != 12 || name == Version(sandbox.WorkspaceWrite()) ||
		name == Version(sandbox.ReadOnly(), 1) || name != Version(sandbox.ReadOnly()) {
		t.Error(name)
	}
}
