// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestClosedRepository: a repository below a closed directory of another user in the workspace of
// root needs no protection, because the command cannot get there; one that is open for others
// is protected.
func TestClosedRepository(t *testing.T) {
	testenv.NeedUserNS(t)
	testenv.NeedRoot(t) // others do not find what is in closed directories
	const other = 65534 // any user that is not root
	ws := t.TempDir()
	if err := os.Chmod(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"closed": 0o700, "open": 0o755} {
		dir := filepath.Join(ws, name)
		git := filepath.Join(dir, "repo", ".git")
		for _, d := range []string{"hooks", "objects", "refs"} {
			if err := os.MkdirAll(filepath.Join(git, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(git, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, other, other); err != nil {
			t.Fatal(err)
		}
	}
	r := newRunner(t, sandbox.WorkspaceWrite())
	c := Script("ls closed/repo 2>/dev/null && echo reached; touch open/repo/.git/hooks/x 2>/dev/null && echo written; true")
	c.Dir = ws
	res, err := r.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if out := res.Output.Bytes(); res.ExitCode != 0 || len(out) > 0 {
		t.Errorf("exit code %d, output %q", res.ExitCode, out)
	}
}
