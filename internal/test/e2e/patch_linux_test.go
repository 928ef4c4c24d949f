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
	"github.com/sallyport-dev/sallyport/event"
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
	for name, text := range map[string]string{"ws/f": "old\n", "ws/g": "old\n", "ws/secret": "old\n",
		"out/f": "old\n", "ws/.git/HEAD": "ref: refs/heads/main\n", "ws/.git/config": "[core]\n"} {
		at := filepath.Join(s.dir, name)
		check(t, os.MkdirAll(filepath.Dir(at), 0o755))
		check(t, os.WriteFile(at, []byte(text), 0o600))
	}
	return s
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
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
	const ask, never = approval.OnRequest, approval.Never
	const setting = "*** Begin Patch\n*** Update File: .git/config\n" +
		"@@\n [core]\n+\tfsmonitor = x\n*** End Patch"
	forbidden, refused := sallyport.ErrForbidden, sallyport.ErrRefused
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
		{"the workspace", ws, ask, no, change("f"), "ws/f", true, "", nil},
		{"an absolute name", ws, ask, no, change("WS/f"), "ws/f", true, "", nil},
		{"outside, approved", ws, ask, yes, change("../out/f"), "out/f", true, "write:OUT/f", nil},
		{"outside, denied", ws, ask, no, change("../out/f"), "out/f", false, "write:OUT/f", refused},
		{"outside, never asked", ws, never, yes, change("../out/f"), "out/f", false, "", forbidden},
		{"outside, through a link", ws, never, yes, add("way/n"), "out/n", false, "", forbidden},
		{"a link to a file outside", ws, never, yes, change("link"), "out/f", false, "", forbidden},
		{"its end is what is approved", ws, ask, yes, change("link"), "out/f", true, "write:OUT/f", nil},
		{"a hook", ws, never, yes, add(".git/hooks/x"), "ws/.git/hooks/x", false, "", forbidden},
		{"settings of git", ws, ask, no, setting, "ws/.git/config", false, "write:WS/.git/config", refused},
		{"settings of agents", ws, never, yes, add(".codex/a"), "ws/.codex/a", false, "", forbidden},
		{"a denied file", ws, ask, yes, change("secret"), "ws/secret", false, "", forbidden},
		{"a private /tmp", ws, never, yes, add("/tmp/sallyport-patch-test"), "tmp", false, "", forbidden},
		{"everything is asked about", ws, approval.Untrusted, yes, change("f"), "ws/f", true, "-", nil},
		{"and denied", ws, approval.Untrusted, no, change("f"), "ws/f", false, "-", refused},
		{"read-only", sandbox.ReadOnly(), never, yes, change("f"), "ws/f", false, "", forbidden},
		{"read-only, approved", sandbox.ReadOnly(), ask, yes, change("f"), "ws/f", true, "write:WS/f", nil},
		{"full access", sandbox.FullAccess(), never, no, change("../out/f"), "out/f", true, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newPatchSite(t)
			check(t, os.Symlink("../out", s.ws+"/way"))
			check(t, os.Symlink("../out/f", s.ws+"/link"))
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
		res, err := r.Run(t.Context(), &sallyport.Cmd{Patch: text, Dir: s.ws})
		if err != nil || res.ExitCode != 0 {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	const both = "*** Begin Patch\n" +
		"*** Update File: f\n@@\n-old\n+new\n*** Update File: g\n@@\n-old\n+new\n*** End Patch"
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
	script := func(text string) sallyport.Cmd { return sallyport.Cmd{Script: text, Shell: "sh"} }
	words := func(args ...string) sallyport.Cmd { return sallyport.Cmd{Args: args} }
	const done = "Success. Updated the following files:\n"
	const failed = "apply_patch verification failed: "
	for name, c := range map[string]struct {
		cmd    sallyport.Cmd
		stdout string
		stderr string
	}{
		"words":          {words("apply_patch", change("f")), done + "M f\n", ""},
		"a script":       {script("apply_patch <<'EOF'\n" + change("f") + "EOF\n"), done + "M f\n", ""},
		"in a directory": {script("cd bin && apply_patch <<'EOF'\n" + add("n") + "EOF\n"), done + "A n\n", ""},
		"no such file":   {words("apply_patch", change("none")), "", failed + "Failed to read file to update "},
		"no patch":       {words("apply_patch", "x"), "", failed + "Invalid patch: "},
		"bare":           {script(change("f")), "", failed + "patch detected without "},
		"of the library": {sallyport.Cmd{Patch: change("none")}, "", "Failed to read file to update "},
		"no change":      {words("apply_patch", "*** Begin Patch\n*** End Patch"), "", "patch rejected: empty"},
		"an empty patch": {sallyport.Cmd{Patch: "*** Begin Patch\n*** End Patch"}, "", "No files were modified."},
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

// TestPatchCanceled: a patch whose search takes seconds ends with its run.
func TestPatchCanceled(t *testing.T) {
	t.Parallel()
	dir := testenv.RealTemp(t)
	f := filepath.Join(dir, "f")
	old := strings.Repeat("a\n", 200_000)
	check(t, os.WriteFile(f, []byte(old), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := &sallyport.Runner{Policy: sandbox.FullAccess(), Events: event.SinkFunc(func(e event.Event) {
		if _, ok := e.Body.(event.Started); ok {
			cancel()
		}
	})}
	defer r.Close()
	res, err := r.Run(ctx, &sallyport.Cmd{Dir: dir, Patch: "*** Begin Patch\n*** Update File: f\n@@\n" +
		strings.Repeat("-a\n", 100_000) + "-b\n*** End Patch\n"})
	if !errors.Is(err, context.Canceled) || res == nil || res.End != sallyport.EndCanceled {
		t.Errorf("got %v, %v", res, err)
	}
}
