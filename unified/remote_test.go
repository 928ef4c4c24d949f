// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestOtherMachine holds the rows about an executor on another machine, of which the tools
// know only the contract of package executor.
func TestOtherMachine(t *testing.T) {
	rows := []struct {
		name  string
		plays map[string]func(*fakeProcess)
		check func(t *testing.T, tools *Tools, h *heard, m *fakeMachine)
	}{
		{"row 22 start, write, output arrives", map[string]func(*fakeProcess){"x": echo}, rowFarOutput},
		{"row 23 inherited files", nil, rowFarFiles},
		{"row 32 it takes no input", nil, rowFarInput},
		{"row 32 it has lost the process", nil, rowFarLost},
		{"row 35 the kind of its sandbox", map[string]func(*fakeProcess){"x": later(seconds(1), "", ending{sandboxed: true, observed: true})}, rowFarSandbox},
		{"row 36 the environment", nil, rowFarEnvironment},
		{"row 37 identities", nil, rowFarIdentity},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, row.plays, func(t *testing.T, tools *Tools, h *heard,
				m *fakeMachine) {
				row.check(t, tools, h, m)
			})
		})
	}
}

func rowFarOutput(t *testing.T, tools *Tools, h *heard, _ *fakeMachine) {
	r := exec(t, tools, Request{Command: "x", Stdin: StdinPipe, Yield: MinYield})
	r = write(t, tools, WriteRequest{SessionID: r.SessionID, Chars: "hello\n"})
	if string(r.Output) != "hello\n" {
		t.Errorf("got %q", r.Output)
	}
	synctest.Wait()
	if s, missing := h.deltaText(); s != "hello\n" || missing != 0 {
		t.Errorf("the deltas are %q", s)
	}
}

// rowFarFiles: the tools hand no files over, whatever the owner's Cmd has, and the words of
// an executor that refuses them reach the caller.
func rowFarFiles(t *testing.T, tools *Tools, _ *heard, m *fakeMachine) {
	tools.Cmd.Stdin, tools.Cmd.Stdout, tools.Cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	exec(t, tools, Request{Command: "x", Yield: MinYield})
	if spec := m.started[0].spec; spec.Stdin != nil || spec.Stdout != nil || spec.Stderr != nil {
		t.Errorf("the files are %v, %v and %v", spec.Stdin, spec.Stdout, spec.Stderr)
	}
	m.fail = errors.New("remote exec-server does not support inherited file descriptors")
	_, err := tools.ExecCommand(t.Context(), Request{Command: "x"})
	if want := "Failed to create unified exec process: " + m.fail.Error(); !errors.Is(err, m.fail) ||
		err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// rowFarInput: a write that is refused is an error, and the process that goes on is known.
func rowFarInput(t *testing.T, tools *Tools, _ *heard, m *fakeMachine) {
	r := exec(t, tools, Request{Command: "x", Stdin: StdinPipe, Yield: MinYield})
	m.started[0].reacts(func(*fakeProcess, string) error { return io.ErrClosedPipe })
	var failed *Error
	if _, err := tools.WriteStdin(t.Context(), WriteRequest{SessionID: r.SessionID, Chars: "x"}); !isKind(err,
		ErrWrite, &failed) || err.Error() != "failed to write to stdin" {
		t.Errorf("got %v", err)
	}
	if list := tools.List(); len(list) != 1 || !list[0].Running {
		t.Errorf("the list is %+v", list)
	}
}

// rowFarLost: the executor does not know the process any more, so the write fails, the
// process counts as ended and its end as a failure.
func rowFarLost(t *testing.T, tools *Tools, h *heard, m *fakeMachine) {
	r := exec(t, tools, Request{Command: "x", Stdin: StdinPipe, Yield: MinYield})
	m.started[0].reacts(func(p *fakeProcess, _ string) error {
		p.exit(ending{code: -1, lost: errors.New("unknown process")}, false)
		return os.ErrProcessDone
	})
	var failed *Error
	if _, err := tools.WriteStdin(t.Context(), WriteRequest{SessionID: r.SessionID, Chars: "x"}); !isKind(err,
		ErrFailed, &failed) || !strings.Contains(err.Error(), "unknown process") {
		t.Errorf("got %v", err)
	}
	synctest.Wait()
	if end := of[End](h); len(tools.List()) != 0 || len(end) != 1 || end[0].Status != Failed ||
		end[0].ExitCode != -1 {
		t.Errorf("the list is %+v, the end %+v", tools.List(), end)
	}
}

func rowFarSandbox(t *testing.T, tools *Tools, h *heard, _ *fakeMachine) {
	var session *sallyport.Session
	hear := tools.Events
	tools.Events = func(e Event) {
		hear(e)
		if b, ok := e.(Begin); ok {
			session, _ = tools.Runner.Session(fmt.Sprint(b.SessionID))
		}
	}
	exec(t, tools, Request{Command: "x"})
	res, err := session.Wait(t.Context())
	if err != nil || res.Sandbox.Level != "native" || !res.Sandbox.Observed {
		t.Errorf("%+v, %v", res.Sandbox, err)
	}
}

// rowFarEnvironment: the executor gets the whole environment: what the policy passes, and
// the variables of the tools and the Runner. Forbidden names are dropped in any letter case,
// and so are those that only the Runner may set.
func rowFarEnvironment(t *testing.T, tools *Tools, _ *heard, m *fakeMachine) {
	tools.Cmd.Env = nil
	tools.Cmd.EnvPolicy.Base = []string{"PATH=/bin", "HOME=/h", "API_KEY=1", "OTHER=2", "TERM=xterm",
		"CODEX_SANDBOX_NETWORK_DISABLED=stale", "SALLYPORT=stale", "OPENAI_FEDERATION_RULE_ID=1"}
	tools.Cmd.EnvPolicy.Named = []string{"OPENAI_FEDERATION_RULE_ID"}
	tools.Cmd.EnvPolicy.Set = map[string]string{"NEW": "3", "CODEX_SANDBOX_NETWORK_DISABLED": "0",
		"SALLYPORT_SANDBOX": "mine", "OpenAI_Identity_Token_File": "4"}
	tools.Runner.Policy = sandbox.FullAccess()
	exec(t, tools, Request{Command: "x", Dir: "/w", Yield: MinYield})
	want := []string{"PATH=/bin", "HOME=/h", "NEW=3", "SALLYPORT=1", "SALLYPORT_SANDBOX=" +
		tools.Runner.Policy.Name(), "SALLYPORT_NETWORK=host", "PWD=/w"}
	for name, value := range Variables("", false) {
		want = append(want, name+"="+value)
	}
	got := slices.Sorted(slices.Values(m.started[0].spec.Env))
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("the environment is %q, want %q", got, want)
	}
}

// rowFarIdentity: each launch has an identity of its own for the executor.
func rowFarIdentity(t *testing.T, tools *Tools, _ *heard, m *fakeMachine) {
	for range 2 {
		exec(t, tools, Request{Command: "x", Yield: MinYield})
	}
	first, second := m.started[0].spec, m.started[1].spec
	if first.Run == "" || cmp.Compare(first.Run, second.Run) == 0 || first.Attempt != 1 ||
		second.Attempt != 1 {
		t.Errorf("run %q, attempt %d and run %q, attempt %d", first.Run, first.Attempt, second.Run,
			second.Attempt)
	}
}
