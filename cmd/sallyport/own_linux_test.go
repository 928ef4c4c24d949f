// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestOwnProgram: sallyport's own file in the workspace stays what it is, whatever a command does to
// it and to the directories above, and the rest of the directory can be changed.
func TestOwnProgram(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	own := filepath.Join(dir, "tools/bin/sallyport")
	if err := os.MkdirAll(filepath.Dir(own), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := testenv.WriteProgram(own, string(text)); err != nil {
		t.Fatal(err)
	}
	for _, attack := range []string{
		"echo x >tools/bin/sallyport", "echo x >new; mv -f new tools/bin/sallyport",
		"rm -f tools/bin/sallyport",
		"mv tools/bin tools/old", "mv tools old", "chmod 777 tools/bin/sallyport",
		"ln -f new tools/bin/sallyport",
	} {
		cmd := exec.CommandContext(t.Context(), own, "run", "-q", "--", "sh", "-c",
			"echo y >tools/bin/y; "+attack)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+t.TempDir(), "XDG_STATE_HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err == nil {
			t.Errorf("%s: it succeeded: %s", attack, out)
		}
		if now, err := os.ReadFile(own); err != nil || !bytes.Equal(now, text) {
			t.Fatalf("%s: the program is another one: %v", attack, err)
		}
	}
	if y, err := os.ReadFile(filepath.Join(dir, "tools/bin/y")); err != nil || string(y) != "y\n" {
		t.Errorf("the directory: %q, %v", y, err)
	}
}
