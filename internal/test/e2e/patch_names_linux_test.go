// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// news is what a command reports as new, with names as from the workspace.
func (s *patchSite) news(t *testing.T, p sandbox.Policy, c sallyport.Cmd) []executor.New {
	t.Helper()
	r := &sallyport.Runner{Policy: p}
	defer r.Close()
	c.Dir = s.ws
	res, err := r.Run(t.Context(), &c)
	if err != nil || res.ExitCode != 0 {
		t.Fatalf("%v, %v", res, err)
	}
	for i := range res.New {
		res.New[i].Path = strings.TrimPrefix(res.New[i].Path, s.ws+"/")
	}
	return res.New
}

// TestPatchNames: a patch reports the names that other programs run or obey later as a command that makes the
// same files does.
func TestPatchNames(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	for _, c := range []struct {
		name   string
		policy sandbox.Policy
		files  string
		want   int
	}{
		{"nothing", sandbox.WorkspaceWrite(), "plain sub/plain", 0},
		{"names at the top", sandbox.WorkspaceWrite(), ".envrc .mcp.json .idea/a", 3},
		{"many in a directory", sandbox.WorkspaceWrite(),
			".vscode/a .vscode/b .vscode/c .vscode/d .vscode/e .vscode/f", 5},
		{"a pattern", sandbox.WorkspaceWrite(), "x.code-workspace", 1},
		{"below the top", sandbox.WorkspaceWrite(), "sub/.envrc", 0},
		{"a repository", sandbox.WorkspaceWrite(), "sub/.git/hooks/x sub/.git/HEAD", 1},
		{"a file to one", sandbox.WorkspaceWrite(), "sub/.git", 1},
		{"a bare one", sandbox.WorkspaceWrite(), "b/HEAD b/objects/x b/refs/x", 1},
		{"the rest of a bare one", sandbox.WorkspaceWrite(), "half/HEAD", 1},
		{"a grant", sandbox.WorkspaceWrite().With(sandbox.Grant{Name: "editor-config"}),
			".envrc .mcp.json", 2},
		{"the grant of git", sandbox.WorkspaceWrite().With(sandbox.Grant{Name: "git"}), "sub/.git/HEAD", 1},
		{"full access", sandbox.FullAccess(), ".envrc", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var added, moved, script strings.Builder
			for i, name := range strings.Fields(c.files) {
				added.WriteString("*** Add File: " + name + "\n+new\n")
				from := string(rune('a'+i)) + ".txt"
				moved.WriteString("*** Update File: " + from + "\n*** Move to: " + name +
					"\n@@\n-old\n+new\n")
				script.WriteString("mkdir -p " + filepath.Dir(name) + " && echo new >" + name + "\n")
			}
			patch := func(hunks string) string { return "*** Begin Patch\n" + hunks + "*** End Patch\n" }
			want := []executor.New(nil)
			for i, cmd := range []sallyport.Cmd{
				{Script: script.String(), Shell: "sh"},
				{Patch: patch(added.String())},
				{Patch: patch(moved.String())},
				{Args: []string{"apply_patch", patch(added.String())}},
				{Script: "apply_patch <<'EOF'\n" + patch(added.String()) + "EOF\n", Shell: "sh"},
			} {
				s := newPatchSite(t)
				check(t, os.MkdirAll(s.ws+"/half/objects", 0o755))
				check(t, os.MkdirAll(s.ws+"/half/refs", 0o755))
				for _, from := range "abcdef" {
					check(t, os.WriteFile(s.ws+"/"+string(from)+".txt", []byte("old\n"), 0o600))
				}
				got := s.news(t, c.policy, cmd)
				if i == 0 {
					want = got
				}
				if len(got) != c.want || !reflect.DeepEqual(got, want) {
					t.Errorf("%d: %+v, a command reports %+v", i, got, want)
				}
			}
		})
	}
}

// TestPatchNamesOfOthers: what others make while the patch waits for its approval is not the patch's.
func TestPatchNamesOfOthers(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	s := newPatchSite(t)
	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite(), Approval: approval.Untrusted,
		Approver: approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
			return approval.Decision{Answer: approval.Approved}, os.WriteFile(s.ws+"/.mcp.json", nil, 0o600)
		})}
	defer r.Close()
	res, err := r.Run(t.Context(), &sallyport.Cmd{Patch: add(".envrc"), Dir: s.ws})
	if err != nil || len(res.New) != 1 || res.New[0].Path != s.ws+"/.envrc" {
		t.Errorf("%+v, %v", res, err)
	}
}
