// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/approval"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script writes a program and returns its path.
func script(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := testenv.WriteProgram(path, "#!/bin/sh\n"+text+"\n"); err != nil {
		t.Fatal(err)
	}
	return path
}

func request() *approval.Request {
	return &approval.Request{
		ID: "1", Kind: approval.KindCommand, Args: []string{"go", "vet"}, Dir: "/nowhere",
		Available: []approval.Answer{approval.Approved, approval.Denied},
		Offers:    []approval.Offer{{Answer: approval.ApprovedRule, Rule: []string{"go", "vet"}}},
	}
}

// TestProgram: only one JSON object with a decision that was offered, and exit code 0, is an
// answer; all else denies, or passes where that was chosen.
func TestProgram(t *testing.T) {
	t.Parallel()
	const yes = `echo '{"decision":"approved"}'`
	for _, test := range []struct {
		name, text string
		timeout    time.Duration
		want       approval.Answer
		says       string // of a failure; empty for an answer
	}{
		{"approved", yes, 0, approval.Approved, ""},
		{"denied", `echo '{"decision":"denied","message":"no"}'`, 0, approval.Denied, ""},
		{"abort", `echo '{"decision":"abort"}'`, 0, approval.Abort, ""},
		{"the offered rule", `echo '{"decision":"approved_execpolicy_amendment"}'`, 0, approval.ApprovedRule, ""},
		{"not offered", `echo '{"decision":"approved_for_session"}'`, 0, 0, "was not offered"},
		{"no host offered", `echo '{"decision":"network_policy_amendment"}'`, 0, 0, "was not offered"},
		{"timed out is no decision", `echo '{"decision":"timed_out"}'`, 0, 0, "is no decision"},
		{"unknown", `echo '{"decision":"yes"}'`, 0, 0, "is no decision"},
		{"no decision", `echo '{}'`, 0, 0, "is no decision"},
		{"null", `echo null`, 0, 0, "no JSON object"},
		{"an array", `echo '["approved"]'`, 0, 0, "no JSON object"},
		{"text", `echo approved`, 0, 0, "no JSON object"},
		{"nothing", ``, 0, 0, "no JSON object"},
		{"twice", yes + "; " + yes, 0, 0, "text after the object"},
		{"text after it", yes + "; echo ok", 0, 0, "text after the object"},
		{"two decisions", `echo '{"decision":"denied","decision":"approved"}'`, 0, 0, `repeated member "decision"`},
		{"two decisions, one escaped", `printf %s '{"decision":"denied","\u0064ecision":"approved"}'`, 0, 0, `repeated member "decision"`},
		{"two messages", `echo '{"decision":"approved","message":"a","message":"b"}'`, 0, 0, `repeated member "message"`},
		{"a decision in two cases", `echo '{"decision":"denied","DECISION":"approved"}'`, 0, approval.Denied, ""},
		{"a decision in another case", `echo '{"Decision":"approved"}'`, 0, 0, "is no decision"},
		{"a decision in capitals", `echo '{"decision":"APPROVED"}'`, 0, 0, "is no decision"},
		{"bytes that are no text", `printf '{"decision":"approved","message":"\377"}'`, 0, 0, "not UTF-8"},
		{"exit code 1", yes + "; echo 'out of order' >&2; exit 1", 0, 0, "exit status 1 (out of order)"},
		{"killed", yes + "; kill -9 $$", 0, 0, "signal: killed"},
		{"1 GiB", "cat /dev/zero | head -c 1073741824", 0, 0, "more than 64 KiB"},
		{"1 GiB of messages", "head -c 100000000 /dev/zero | tr '\\0' x >&2; " + yes, 0, approval.Approved, ""},
		{"never", "exec sleep 600", 100 * time.Millisecond, 0, "longer than 100ms"},
		{"a decision and never an end", yes + "; exec sleep 600", 200 * time.Millisecond, 0, "longer than 200ms"},
		{"deaf", "trap '' TERM INT HUP; sleep 600; sleep 600", 100 * time.Millisecond, 0, "longer than 100ms"},
		{"it does not read", "exec <&-; " + yes, 0, approval.Approved, ""},
		{"a child that holds its output", yes + "; sleep 600 & exit 0", 0, approval.Approved, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path := script(t, t.TempDir(), "approver", test.text)
			for _, pass := range []bool{false, true} {
				a := &Approver{Args: []string{path}, Timeout: test.timeout, PassOnFailure: pass}
				d, err := a.Approve(t.Context(), request())
				var failed *FailedError
				switch {
				case test.says == "" && (err != nil || d.Answer != test.want ||
					d.Source != approval.FromHook):
					t.Errorf("%+v, %v", d, err)
				case test.says == "":
				case pass && !errors.Is(err, approval.ErrPass), !pass &&
					(!errors.As(err, &failed) || !strings.Contains(err.Error(), test.says) ||
						d.Source != approval.FromHook):
					t.Errorf("%+v, %v", d, err)
				}
				if asked, err := approval.Ask(t.Context(), a, request()); test.says != "" &&
					(asked.Answer.Approves() || pass != errors.Is(err, approval.ErrPass)) {
					t.Errorf("asked: %+v, %v", asked, err)
				}
			}
		})
	}
}

// TestProgramNone passes the question on.
func TestProgramNone(t *testing.T) {
	a := &Approver{Args: []string{script(t, t.TempDir(), "approver", `echo '{"decision":"none"}'`)}}
	if _, err := a.Approve(t.Context(), request()); !errors.Is(err, approval.ErrPass) {
		t.Error(err)
	}
}

// TestProgramGets: the request with its type on standard input, the directory "/", one variable
// more, and its arguments.
func TestProgramGets(t *testing.T) {
	dir := t.TempDir()
	path := script(t, dir, "approver", `cat >`+dir+`/in; echo "$PWD $SALLYPORT_APPROVER $*" >`+dir+
		`/around; echo '{"decision":"approved"}'`)
	a := &Approver{Args: []string{path, "one", "two"}}
	r := request()
	r.Args = append(r.Args, strings.Repeat("x", 1<<20)) // more than a pipe holds
	if d, err := a.Approve(t.Context(), r); err != nil || d.Answer != approval.Approved {
		t.Fatal(d, err)
	}
	around, err := os.ReadFile(filepath.Join(dir, "around"))
	if err != nil || string(around) != "/ 1 one two\n" {
		t.Errorf("%q, %v", around, err)
	}
	in, err := os.ReadFile(filepath.Join(dir, "in"))
	var got struct {
		Type     string   `json:"type"`
		ID       string   `json:"id"`
		Argv     []string `json:"argv"`
		Requires []string `json:"requires"`
		// What the caller says of the command (B8); empty without it.
		Justification *string `json:"justification"`
	}
	if err = errors.Join(err, json.Unmarshal(in, &got)); err != nil || got.Type != "approval_request" ||
		got.ID != "1" || len(got.Argv) != 3 || got.Requires == nil || got.Justification == nil ||
		*got.Justification != "" {
		t.Errorf("%.200s, %v", in, err)
	}
	r.Justification = "to see it"
	_, err = a.Approve(t.Context(), r)
	in, readErr := os.ReadFile(filepath.Join(dir, "in"))
	if err = errors.Join(err, readErr, json.Unmarshal(in, &got)); err != nil ||
		*got.Justification != r.Justification {
		t.Errorf("%.200s, %v", in, err)
	}
}

// TestNothingIsLeft: neither the program nor what it started outlives the question.
func TestNothingIsLeft(t *testing.T) {
	for _, end := range []string{`echo '{"decision":"approved"}'`, "echo x", "cat"} {
		dir := t.TempDir()
		ready := filepath.Join(dir, "child")
		if err := syscall.Mkfifo(ready, 0o600); err != nil {
			t.Fatal(err)
		}
		// The child holds the pipe open for writing as long as it lives.
		path := script(t, dir, "approver", "sleep 600 >"+ready+" & cat >/dev/null; "+end+
			"; [ \"$1\" ] && exec sleep 600")
		a := &Approver{Args: []string{path}}
		ctx, cancel := context.WithCancel(t.Context())
		if end == "cat" {
			a.Args = append(a.Args, "stay")
		}
		done := make(chan error)
		go func() {
			_, err := a.Approve(ctx, request())
			done <- err
		}()
		f, err := os.Open(ready) // until the child has it
		if err != nil {
			t.Fatal(err)
		}
		if end == "cat" {
			cancel()
		}
		if err := <-done; (end == "cat") != errors.Is(err, context.Canceled) {
			t.Errorf("%q: %v", end, err)
		}
		if _, err := f.Read(make([]byte, 1)); err == nil { // the end of file comes when it has ended
			t.Errorf("%q: the child wrote", end)
		}
		f.Close()
		cancel()
	}
}

// TestFind: a bare name is looked for in PATH, in absolute directories that are not in the
// workspace, also behind links; another one must be absolute.
func TestFind(t *testing.T) {
	root := t.TempDir()
	ws, good, toWS := filepath.Join(root, "ws"), filepath.Join(root, "good"), filepath.Join(root, "to-ws")
	linked := filepath.Join(root, "linked")
	for _, dir := range []string{filepath.Join(ws, "bin"), good, linked} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(ws, toWS), os.Symlink(filepath.Join(ws, "bin/approver"),
		filepath.Join(linked, "approver"))); err != nil {
		t.Fatal(err)
	}
	script(t, filepath.Join(ws, "bin"), "approver", "true")
	right := script(t, good, "approver", "true")
	if err := errors.Join(os.Mkdir(filepath.Join(ws, "out"), 0o755), os.Symlink(right, filepath.Join(ws, "out/approver"))); err != nil { //nolint:gosec // a workspace
		t.Fatal(err)
	}
	t.Chdir(ws)
	for _, test := range []struct{ name, program, path, workspace, want string }{
		{"in PATH", "approver", good, ws, right},
		{"in the workspace first", "approver", filepath.Join(ws, "bin") + ":" + good, ws, right},
		{"only in the workspace", "approver", filepath.Join(ws, "bin"), ws, ""},
		{"in the workspace by a link", "approver", filepath.Join(toWS, "bin"), ws, ""},
		{"the workspace is named by a link", "approver", filepath.Join(ws, "bin"), toWS, ""},
		{"a link out of the workspace", "approver", filepath.Join(ws, "out"), ws, ""},
		{"a link into the workspace", "approver", linked + ":" + good, ws, right},
		{"a relative directory", "approver", "bin:.:", ws, ""},
		{"a path", right, "", ws, right},
		{"a relative path", "bin/approver", good, ws, ""},
		{"the directory above", "../good/approver", good, ws, ""},
		{"no name", "", good, ws, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("PATH", test.path)
			got, _, err := (&Approver{Args: []string{test.program}}).find(t.Context(),
				&approval.Request{Dir: test.workspace})
			if got != test.want || (err == nil) != (test.want != "") {
				t.Errorf("%q, %v; want %q", got, err, test.want)
			}
		})
	}
	if _, err := new(Approver).Approve(t.Context(), request()); err == nil ||
		!strings.Contains(err.Error(), "no program is named") {
		t.Errorf("without a program: %v", err)
	}
	var failed *FailedError
	if _, err := (&Approver{Args: []string{filepath.Join(root, "missing")}}).Approve(t.Context(),
		request()); !errors.As(err, &failed) {
		t.Errorf("a missing one: %v", err)
	}
}

const answering = "cat >/dev/null\necho '{\"decision\":\"approved\"}'"

// BenchmarkProgram. Claim: at most 1.5 times BenchmarkBare, the same script without an approver.
func BenchmarkProgram(b *testing.B) {
	a := &Approver{Args: []string{script(b, b.TempDir(), "approver", answering)}}
	for b.Loop() {
		if _, err := a.Approve(b.Context(), request()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBare(b *testing.B) {
	path := script(b, b.TempDir(), "approver", answering)
	for b.Loop() {
		cmd := exec.CommandContext(b.Context(), path)
		cmd.Stdin = strings.NewReader("{}\n")
		if out, err := cmd.Output(); err != nil || len(out) == 0 {
			b.Fatal(err)
		}
	}
}
