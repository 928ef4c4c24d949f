// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// change is a patch that changes one file.
func change(name string) string {
	return "*** Begin Patch\n*** Update File: " + name + "\n@@\n-old\n+new\n*** End Patch\n"
}

func add(name string) string {
	return "*** Begin Patch\n*** Add File: " + name + "\n+new\n*** End Patch\n"
}

// A patchSite is a workspace with a repository, beside a directory that is not writable.
type patchSite struct {
	site
	asked []*approval.Request
}

func newPatchSite(t *testing.T) *patchSite {
	t.Helper()
	testenv.NeedUserNS(t)
	s := &patchSite{site: newSite(t)}
	for name, text := range map[string]string{"ws/f": "old\n", "ws/g": "old\n", "ws/secret": "old\n", "out/f": "old\n",
		"ws/.git/HEAD": "ref: refs/heads/main\n", "ws/.git/config": "[core]\n"} {
		at := filepath.Join(s.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *patchSite) read(name string) string {
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return ""
	}
	return string(text)
}

// answer gives an answer to every question.
func (s *patchSite) answer(a approval.Answer) approval.Approver {
	return approval.Func(func(_ context.Context, r *approval.Request) (approval.Decision, error) {
		s.asked = append(s.asked, r)
		return approval.Decision{Answer: a}, nil
	})
}

// TestPatchJudged: what a command in the sandbox could change a patch changes, and the rest with an approval.
func TestPatchJudged(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	ws := sandbox.WorkspaceWrite()
	const yes, no = approval.Approved, approval.Denied
	for _, c := range []struct {
		name     string
		policy   sandbox.Policy
		approval approval.Policy
		answer   approval.Answer
		patch    string
		file     string // that is new then, or stays
		changed  bool
		asked    string // what it requires; "-" for a question that requires nothing
		err      error
	}{
		{"the workspace", ws, approval.OnRequest, no, change("f"), "ws/f", true, "", nil},
		{"an absolute name", ws, approval.OnRequest, no, change("WS/f"), "ws/f", true, "", nil},
		{"outside, approved", ws, approval.OnRequest, yes, change("../out/f"), "out/f", true, "write:OUT/f", nil},
		{"outside, denied", ws, approval.OnRequest, no, change("../out/f"), "out/f", false, "write:OUT/f", sallyport.ErrRefused},
		{"outside, never asked", ws, approval.Never, yes, change("../out/f"), "out/f", false, "", sallyport.ErrForbidden},
		{"outside, through a link", ws, approval.Never, yes, add("way/n"), "out/n", false, "", sallyport.ErrForbidden},
		{"a link to a file outside", ws, approval.Never, yes, change("link"), "out/f", false, "", sallyport.ErrForbidden},
		{"its end is what is approved", ws, approval.OnRequest, yes, change("link"), "out/f", true, "write:OUT/f", nil},
		{"a hook", ws, approval.Never, yes, add(".git/hooks/pre-commit"), "ws/.git/hooks/pre-commit", false, "", sallyport.ErrForbidden},
		{"settings of git", ws, approval.OnRequest, no, "*** Begin Patch\n*** Update File: .git/config\n@@\n [core]\n+\tfsmonitor = x\n*** End Patch", "ws/.git/config", false, "write:WS/.git/config", sallyport.ErrRefused},
		{"settings of agents", ws, approval.Never, yes, add(".codex/config.toml"), "ws/.codex/config.toml", false, "", sallyport.ErrForbidden},
		{"a denied file", ws.WithEntries(sandbox.PathEntry("WS/secret", sandbox.LevelDeny)), approval.OnRequest, yes, change("secret"), "ws/secret", false, "", sallyport.ErrForbidden},
		{"a private /tmp", ws, approval.Never, yes, add("/tmp/sallyport-patch-test"), "tmp", false, "", sallyport.ErrForbidden},
		{"everything is asked about", ws, approval.Untrusted, yes, change("f"), "ws/f", true, "-", nil},
		{"and denied", ws, approval.Untrusted, no, change("f"), "ws/f", false, "-", sallyport.ErrRefused},
		{"read-only", sandbox.ReadOnly(), approval.Never, yes, change("f"), "ws/f", false, "", sallyport.ErrForbidden},
		{"read-only, approved", sandbox.ReadOnly(), approval.OnRequest, yes, change("f"), "ws/f", true, "write:WS/f", nil},
		{"full access", sandbox.FullAccess(), approval.Never, no, change("../out/f"), "out/f", true, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newPatchSite(t)
			if err := errors.Join(os.Symlink("../out", s.ws+"/way"), os.Symlink("../out/f", s.ws+"/link")); err != nil {
				t.Fatal(err)
			}
			full := strings.NewReplacer("WS", s.ws, "OUT", s.out).Replace
			policy := c.policy
			if c.name == "a denied file" {
				policy = ws.WithEntries(sandbox.PathEntry(s.ws+"/secret", sandbox.LevelDeny))
			}
			r := &sallyport.Runner{Policy: policy, Approval: c.approval, Approver: s.answer(c.answer)}
			defer r.Close()
			before := s.read(c.file)
			res, err := r.Run(t.Context(), &sallyport.Cmd{Patch: full(c.patch), Dir: s.ws})
			if !errors.Is(err, c.err) || err == nil && res.ExitCode != 0 {
				t.Fatalf("%+v, %v", res, err)
			}
			if after := s.read(c.file); (after != before) != c.changed {
				t.Errorf("%q is there, and was %q", after, before)
			}
			var asked []string
			for _, q := range s.asked {
				if q.Kind != approval.KindPatch || q.Script == "" {
					t.Errorf("%+v", q)
				}
				asked = append(asked, q.Requires...)
			}
			if want := full(c.asked); (len(s.asked) > 0) != (want != "") ||
				strings.Join(asked, " ") != strings.TrimPrefix(want, "-") {
				t.Errorf("%d questions require %v, want %s", len(s.asked), asked, want)
			}
		})
	}
}

// TestPatchRemembered: what is approved for the session is each file, and no other one.
func TestPatchRemembered(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	s := newPatchSite(t)
	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite(), Approval: approval.Untrusted,
		Approver: s.answer(approval.ApprovedForSession)}
	defer r.Close()
	apply := func(text string) {
		t.Helper()
		if res, err := r.Run(t.Context(), &sallyport.Cmd{Patch: text, Dir: s.ws}); err != nil || res.ExitCode != 0 {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	const both = "*** Begin Patch\n*** Update File: f\n@@\n-old\n+new\n*** Update File: g\n@@\n-old\n+new\n*** End Patch"
	for _, step := range []struct {
		text string
		want int
	}{
		{both, 1}, {"*** Begin Patch\n*** Update File: f\n@@\n-new\n+newer\n*** End Patch", 1},
		{"*** Begin Patch\n*** Delete File: g\n*** End Patch", 1}, {add("h"), 2},
		{"*** Begin Patch\n*** Delete File: h\n*** Delete File: f\n*** End Patch", 2},
	} {
		if apply(step.text); len(s.asked) != step.want {
			t.Errorf("%d questions, want %d: %s", len(s.asked), step.want, step.text)
		}
	}
	if got := len(r.Approvals()); got != 2 {
		t.Errorf("%d approvals are remembered", got)
	}
}

// TestPatchIntercepted: a command that only applies a patch is one; its errors are those that agents know.
func TestPatchIntercepted(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	const failed = "apply_patch verification failed: "
	for name, c := range map[string]struct {
		cmd    sallyport.Cmd
		stdout string
		stderr string
	}{
		"words":           {sallyport.Cmd{Args: []string{"apply_patch", change("f")}}, "Success. Updated the following files:\nM f\n", ""},
		"a script":        {sallyport.Cmd{Script: "apply_patch <<'EOF'\n" + change("f") + "EOF\n", Shell: "sh"}, "Success. Updated the following files:\nM f\n", ""},
		"in a directory":  {sallyport.Cmd{Script: "cd bin && apply_patch <<'EOF'\n" + add("n") + "EOF\n", Shell: "sh"}, "Success. Updated the following files:\nA n\n", ""},
		"no such file":    {sallyport.Cmd{Args: []string{"apply_patch", change("none")}}, "", failed + "Failed to read file to update "},
		"no patch":        {sallyport.Cmd{Args: []string{"apply_patch", "x"}}, "", failed + "Invalid patch: "},
		"bare":            {sallyport.Cmd{Script: change("f"), Shell: "sh"}, "", failed + "patch detected without explicit call"},
		"of the library":  {sallyport.Cmd{Patch: change("none")}, "", "Failed to read file to update "},
		"an empty script": {sallyport.Cmd{Patch: "*** Begin Patch\n*** End Patch"}, "", "No files were modified."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newPatchSite(t)
			r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite()}
			defer r.Close()
			c.cmd.Dir = s.ws
			res, err := r.Run(t.Context(), &c.cmd)
			if err != nil {
				t.Fatal(err)
			}
			out, said := res.Stdout.String(), res.Stderr.String()
			if out != c.stdout || !strings.HasPrefix(said, c.stderr) || (said == "") != (c.stderr == "") ||
				(res.ExitCode == 1) != (said != "") {
				t.Errorf("exit code %d, %q, %q", res.ExitCode, out, said)
			}
			if left, _ := filepath.Glob(s.ws + "/.sallyport*"); len(left) > 0 {
				t.Errorf("left: %v", slices.Concat(left))
			}
		})
	}
}
