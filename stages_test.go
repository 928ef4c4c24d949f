// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/e2e"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// stagedRunner returns a Runner whose commands are played, and whose executor has stages.
func stagedRunner(play func(*executor.Spec, *e2e.FakeProcess)) (*Runner, *e2e.FakeStages) {
	e := new(e2e.FakeStages)
	e.Play = play
	return &Runner{Policy: sandbox.WorkspaceWrite(), Executor: e}, e
}

// TestStageRefused: no command that has a stage begins where it could change the host's files.
func TestStageRefused(t *testing.T) {
	noStages := new(e2e.Fake)
	external, err := sandbox.New(sandbox.External, sandbox.NetworkNone)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		change func(r *Runner, c *Cmd)
		is     error
		want   string // in the error
	}{
		{"full access", func(r *Runner, _ *Cmd) { r.Policy = sandbox.FullAccess() }, nil,
			"a stage needs a sandbox, and the policy full-access builds none"},
		{"a sandbox of others", func(r *Runner, _ *Cmd) { r.Policy = external }, nil,
			"a stage needs a sandbox"},
		{"a policy of the command", func(r *Runner, c *Cmd) {
			p := sandbox.FullAccess()
			r.Policy, c.Policy = p, &p
		}, nil, "a stage needs a sandbox"},
		{"outside of the sandbox", func(_ *Runner, c *Cmd) { c.Unsandboxed = true }, nil,
			"Cmd.Stage: a staged run cannot leave the sandbox"},
		{"an executor without stages", func(r *Runner, _ *Cmd) { r.Executor = noStages }, ErrNoSandbox,
			"needs a stage, but this executor has none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			runs := 0
			play := func(*executor.Spec, *e2e.FakeProcess) { runs++ }
			noStages.Play = play
			r, _ := stagedRunner(play)
			c := &Cmd{Args: []string{"x"}, Dir: "/w", Stage: new(executor.Staging)}
			test.change(r, c)
			_, err := r.Run(t.Context(), c)
			if err == nil || !strings.Contains(err.Error(), test.want) || test.is != nil &&
				!errors.Is(err, test.is) || runs > 0 {
				t.Errorf("%d runs, %v, want %q", runs, err, test.want)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestStageOfPatch: a patch changes the host's files, so none has a stage; nor has a command that is one.
func TestStageOfPatch(t *testing.T) {
	const text = "*** Begin Patch\n*** Add File: new.txt\n+x\n*** End Patch"
	for name, c := range map[string]*Cmd{"a patch": {Patch: text},
		"a command": {Args: []string{"apply_patch", text}}} {
		t.Run(name, func(t *testing.T) {
			r := &Runner{Policy: sandbox.WorkspaceWrite()}
			defer r.Close()
			c.Dir, c.Stage = t.TempDir(), new(executor.Staging)
			var bad *CmdError
			if _, err := r.Run(t.Context(), c); !errors.As(err, &bad) || bad.Field != "Stage" {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestStagedRuleOutside: a rule that leads outside does not lead a staged command there, and it is said.
func TestStagedRuleOutside(t *testing.T) {
	set, err := rules.Parse("/r", []byte(`prefix_rule(["npm"], sandbox = "outside")`))
	if err != nil {
		t.Fatal(err)
	}
	for _, staged := range []bool{false, true} {
		var got *executor.Spec
		r, _ := stagedRunner(func(s *executor.Spec, _ *e2e.FakeProcess) { got = s })
		r.Rules = set
		c := &Cmd{Args: []string{"npm", "ci"}, Dir: "/w"}
		if staged {
			c.Stage = new(executor.Staging)
		}
		res, err := r.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		confined := got.Policy.Mode() == sandbox.Managed
		said := strings.Contains(strings.Join(res.Notices, " "), "it has a stage")
		if confined != staged || said != staged || (got.Stage != nil) != staged {
			t.Errorf("staged %v: confined %v, stage %v, %q", staged, confined, got.Stage, res.Notices)
		}
		_ = r.Close()
	}
}

// TestStagedRetry: a second attempt has the stage of the first one, with a grant inside of the sandbox; what
// no grant allows is not asked about, because the answer would lead outside.
func TestStagedRetry(t *testing.T) {
	onFailure, err := approval.Parse("on-failure")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		path   string // that is denied; empty for what no grant allows
		stages []executor.Staging
		asked  []string
	}{
		{"a grant", "/srv/file", []executor.Staging{{Name: "n"}, {Name: "n", ID: "4f2a"}},
			[]string{"write:/srv/file"}},
		{"no grant", "", []executor.Staging{{Name: "n"}}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stages []executor.Staging
			r, _ := stagedRunner(func(s *executor.Spec, p *e2e.FakeProcess) {
				stages = append(stages, *s.Stage)
				d := sandbox.Denial{Access: sandbox.Access{Op: sandbox.Write, Path: test.path},
					Errno: "EROFS", Source: sandbox.Notified}
				if test.path == "" {
					d = unreachable
				}
				if s.Attempt > 1 {
					return
				}
				p.Exit = executor.Exit{Code: 1, Denials: []sandbox.Denial{d},
					Stage: &executor.Staged{ID: "4f2a", Name: "n"}}
			})
			defer r.Close()
			var asked []string
			r.Approval, r.Approver = onFailure, yes(&asked)
			if _, err := r.Run(t.Context(),
				&Cmd{Args: []string{"x"}, Dir: "/w", Stage: &executor.Staging{Name: "n"}}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.stages, stages); diff != "" || !slices.Equal(asked, test.asked) {
				t.Errorf("asked %v, stages (-want +got):\n%s", asked, diff)
			}
		})
	}
}

// yes approves everything for the session, and notes what was required.
func yes(asked *[]string) approval.Approver {
	return approval.Func(func(_ context.Context, q *approval.Request) (approval.Decision, error) {
		*asked = append(*asked, q.Requires...)
		return approval.Decision{Answer: approval.ApprovedForSession}, nil
	})
}

// TestStagedForSession: what was approved for the session without a stage is not opened for a staged command.
func TestStagedForSession(t *testing.T) {
	onFailure, err := approval.Parse("on-failure")
	if err != nil {
		t.Fatal(err)
	}
	var modes []sandbox.Mode
	r, _ := stagedRunner(func(s *executor.Spec, p *e2e.FakeProcess) {
		if modes = append(modes, s.Policy.Mode()); s.Policy.Mode() == sandbox.Managed {
			p.Exit = executor.Exit{Code: 1, Denials: []sandbox.Denial{unreachable}}
		}
	})
	defer r.Close()
	var asked []string
	r.Approval, r.Approver = onFailure, yes(&asked)
	c := &Cmd{Args: []string{"x"}, Dir: "/w"}
	for _, stage := range []*executor.Staging{nil, nil, {}} {
		c.Stage = stage
		if _, err := r.Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	want := []sandbox.Mode{sandbox.Managed, sandbox.Full, sandbox.Full, sandbox.Managed}
	if !slices.Equal(modes, want) || len(asked) != 1 {
		t.Errorf("modes %v, asked %v", modes, asked)
	}
}

// unreachable is a denial that no grant allows.
var unreachable = sandbox.Denial{Access: sandbox.Access{Op: sandbox.Connect, Addr: "192.0.2.1:443"},
	Source: sandbox.Notified}

// TestStagedResult: the members of the JSON form, also without changes, and back.
func TestStagedResult(t *testing.T) {
	change := executor.Change{Path: "a", Root: "/w", Kind: executor.ChangeAdded, File: "file", Size: 2,
		Mode: "0644"}
	for _, test := range []struct {
		name  string
		stage *executor.Staged
		want  string
	}{
		{"no stage", nil, ""},
		{"no changes", &executor.Staged{ID: "4f2a", Name: ""},
			`"stage":{"id":"4f2a","name":""},"changes_total":0,"changes":[]`},
		{"changes", &executor.Staged{ID: "4f2a", Name: "n", Total: 3, Changes: []executor.Change{change}},
			`"stage":{"id":"4f2a","name":"n"},"changes_total":3,"changes":[{"path":"a","root":"/w",` +
				`"kind":"added","file":"file","size":2,"old_size":0,"mode":"0644",` +
				`"binary":false,"runs_later":false}]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			text, err := json.Marshal(&Result{Stage: test.stage})
			if err != nil || !strings.Contains(string(text), test.want) ||
				strings.Contains(string(text), `"changes`) != (test.stage != nil) {
				t.Fatalf("%v: %s", err, text)
			}
			var back Result
			if err := json.Unmarshal(text, &back); err != nil {
				t.Fatal(err)
			}
			if test.stage != nil && len(test.stage.Changes) == 0 {
				test.stage.Changes = []executor.Change{}
			}
			if diff := cmp.Diff(test.stage, back.Stage); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if n := len(back.Changes()); test.stage != nil && n != len(test.stage.Changes) {
				t.Errorf("%d changes", n)
			}
		})
	}
}

// TestStagesOfRunner: stages by their names, and what is done with them.
func TestStagesOfRunner(t *testing.T) {
	r, e := stagedRunner(nil)
	defer r.Close()
	s := &e2e.FakeStage{Described: executor.StageInfo{ID: "4f2a8390", Name: "n", Workspace: "/w"},
		Has: []executor.Change{{Root: "/w", Path: "a"}, {Root: "/w", Path: "b"}}}
	e.All = []*e2e.FakeStage{s}
	if all, err := r.Stages(t.Context()); err != nil || len(all) != 1 || all[0].ID != "4f2a8390" {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := r.Stage(t.Context(), "/v", ""); !errors.Is(err, executor.ErrNoStage) {
		t.Errorf("another workspace: %v", err)
	}
	got, err := r.Stage(t.Context(), "/w", "n")
	if err != nil {
		t.Fatal(err)
	}
	if done, err := got.Apply(t.Context(), "/w/a"); err != nil ||
		!slices.Equal(done.Applied, []string{"a"}) || done.Left != 1 {
		t.Errorf("%v, %v", done, err)
	}
	if err := got.Discard(t.Context(), "/w/b"); err != nil ||
		!slices.Equal(s.Discarded, []string{"all", "/w/b"}) {
		t.Errorf("%v, %v", s.Discarded, err)
	}
	other := &Runner{Executor: new(e2e.Fake)}
	defer other.Close()
	if _, err := other.Stages(t.Context()); !errors.Is(err, ErrNoSandbox) {
		t.Errorf("an executor without stages: %v", err)
	}
}
