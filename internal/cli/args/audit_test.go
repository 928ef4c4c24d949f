// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/listen"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// auditEnv returns an environment with settings of the user and the machine.
func auditEnv(t *testing.T, user, managed string) *Env {
	t.Helper()
	home, etc := t.TempDir(), t.TempDir()
	dir := filepath.Join(home, ".config", "sallyport")
	if err := errors.Join(os.MkdirAll(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "config.toml"), []byte(user), 0o600),
		os.WriteFile(filepath.Join(etc, "managed.toml"), []byte(managed), 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	return &Env{Environ: []string{"HOME=" + home}, Dir: "/", Managed: etc}
}

// TestServerAudit: the log of a server is required unless its own settings say no, and the ceiling decides.
func TestServerAudit(t *testing.T) {
	for _, test := range []struct {
		name, user, managed string
		required, fails     bool
	}{
		{"no settings", "", "", true, false},
		{"not required", "audit.required = false", "", false, false},
		{"required by the machine", "audit.required = false", "audit.required = true", true, false},
		{"off", "audit.path = 'off'", "", false, false},
		{"off and required", "audit.path = 'off'\naudit.required = true", "", true, true},
		{"off, and the machine has it on", "audit.path = 'off'", "audit.path = 'state'", true, false},
		{"settings that do not load", "x", "", true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := ServerAudit(auditEnv(t, test.user, test.managed))
			defer a.Close()
			_, err := a.open()
			if a.Required() != test.required || (err != nil) != test.fails {
				t.Errorf("required %v, %v", a.Required(), err)
			}
		})
	}
}

// TestAuditStopsRuns: where a required log cannot be written, a command of a client does not start, and the
// answer is one sentence with the exit code of errors of ours; else it runs.
func TestAuditStopsRuns(t *testing.T) {
	ask := func(t *testing.T, a *Audit) (*runs.Prepared, error) {
		t.Helper()
		p, err := Prepare("", nil, a, nil)(t.Context(), &runs.Request{Args: []string{"-s", "full-access", "true"},
			Dir: t.TempDir(), Environ: []string{"HOME=" + t.TempDir(), "PATH=/usr/bin:/bin"}})
		if err == nil {
			t.Cleanup(func() { p.Close(); _ = p.Runner.Close() })
		}
		return p, err
	}
	yes := true
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("no directory", func(t *testing.T) {
		_, err := ask(t, NewAudit(config.Audit{Path: file, Required: &yes}, false))
		if said := explain.Classify(err); err == nil || said.Code != explain.CodeFailed ||
			!strings.Contains(said.Fix, "make room or fix its permissions") {
			t.Errorf("%v", err)
		}
		if _, err := ask(t, NewAudit(config.Audit{Path: file}, false)); err != nil {
			t.Errorf("not required: %v", err)
		}
	})
	t.Run("later", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "log")
		a := NewAudit(config.Audit{Path: dir}, true)
		defer a.Close()
		p, err := ask(t, a)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, "checkpoint"), 0o700); err != nil { // as good as full
			t.Fatal(err)
		}
		res, err := p.Runner.Run(t.Context(), p.Cmd)
		if need := new(sallyport.AuditError); res != nil || !errors.As(err, &need) {
			t.Fatalf("%v, %v", res, err)
		}
		if res := p.Refused(err); res.ExitCode != explain.CodeFailed ||
			!strings.Contains(res.Error, "the audit log is required and cannot be written") {
			t.Errorf("%d %s", res.ExitCode, res.Error)
		}
		ended := &sallyport.Result{Run: "r", Args: []string{"true"}}
		if p.Ended(ended); ended.ExitCode != explain.CodeFailed || ended.Error == "" {
			t.Errorf("a run whose end is not kept: %d %q", ended.ExitCode, ended.Error)
		}
		if err := os.Remove(filepath.Join(dir, "checkpoint")); err != nil {
			t.Fatal(err)
		}
		ended = &sallyport.Result{Run: "r", Args: []string{"true"}}
		if p.Ended(ended); ended.ExitCode != 0 {
			t.Errorf("once there is room: %q", ended.Error)
		}
	})
}

// TestAuditHidden: commands neither see a log outside of the state directory nor change it.
func TestAuditHidden(t *testing.T) {
	dir := t.TempDir()
	workspace := t.TempDir()
	a := NewAudit(config.Audit{Path: filepath.Join(dir, "log"), KeyFile: filepath.Join(dir, "k")}, false)
	defer a.Close()
	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite()}
	post := &listen.QuestionServer{}
	if err := a.Attach(r, post, reach.Area{Policy: r.Policy, Workspace: workspace}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"log/audit.jsonl", "log", "k"} {
		if level := r.Policy.Bind(sandbox.Places{Dir: workspace}).LevelAt(filepath.Join(dir,
			name)); level != sandbox.LevelDeny {
			t.Errorf("%s: %v", name, level)
		}
	}
	a = NewAudit(config.Audit{Path: filepath.Join(workspace, "log")}, false)
	defer a.Close()
	err := a.Attach(r, post, reach.Area{Policy: r.Policy, Workspace: workspace})
	if in := new(reach.Error); !errors.As(err, &in) {
		t.Errorf("a log where commands write: %v", err)
	}
}

// TestMaskEvent: what looks like a secret is not in the log, whatever event has it, and the event of others
// stays as it is.
func TestMaskEvent(t *testing.T) {
	const secret = "sesame"
	args := []string{"curl", "--token=" + secret}
	line := "curl --token=" + secret
	q := &approval.Request{Args: args, Script: line, Reason: line, Justification: line,
		Offers: []approval.Offer{{Rule: args}}}
	review := approval.Review{Request: q, Rationale: line, Failure: line}
	for _, b := range []event.Body{
		event.Judged{Args: args, Reason: line}, event.ApprovalRequested{Request: q},
		event.ReviewStarted{Review: review}, event.ReviewCompleted{Review: review, Action: line},
		event.ApprovalDecided{Rule: args, Message: line}, event.Retrying{Reason: line},
		event.Ended{Error: line},
	} {
		t.Run(b.Kind(), func(t *testing.T) {
			text, err := json.Marshal(maskEvent(event.Event{Body: b}))
			if err != nil || strings.Contains(string(text), secret) {
				t.Errorf("%s %v", text, err)
			}
			if before, _ := json.Marshal(event.Event{Body: b}); !strings.Contains(string(before), secret) {
				t.Errorf("the event was changed, or has no secret: %s", before)
			}
		})
	}
}

// TestAuditDirs: the log is where settings say, else in the state directories.
func TestAuditDirs(t *testing.T) {
	env := auditEnv(t, "", "")
	if got := AuditDirs(env); len(got) > 0 {
		t.Errorf("%q before there is one", got)
	}
	a := ServerAudit(env)
	if failed, err := a.Record(explain.Record{Result: sallyport.Result{Run: "r"}}); failed || err != nil {
		t.Fatal(failed, err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	got := AuditDirs(env)
	if len(got) != 1 || filepath.Base(got[0]) != "audit" {
		t.Fatalf("%q", got)
	}
	log, err := explain.ReadLog(got[0], true)
	if err != nil || len(log.Records) != 1 {
		t.Errorf("%+v, %v", log, err)
	}
	if _, err := audit.Verify(t.Context(), got[0], audit.VerifyOptions{}); err != nil {
		t.Error(err)
	}
	if got := AuditDirs(auditEnv(t, "audit.path = '/x/log'", "")); len(got) != 1 || got[0] != "/x/log" {
		t.Errorf("%q", got)
	}
}

// TestAuditFollowsNoLink: what has taken the place of the log's directory is not written to.
func TestAuditFollowsNoLink(t *testing.T) {
	a := ServerAudit(auditEnv(t, "", ""))
	defer a.Close()
	state, err := dirs.Dir()
	if err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(state, auditName)); err != nil {
		t.Fatal(err)
	}
	failed, err := a.Record(explain.Record{Result: sallyport.Result{Run: "r"}})
	names, _ := os.ReadDir(outside)
	if !failed || err == nil || len(names) > 0 {
		t.Errorf("%v, %v, %v", failed, err, names)
	}
}
