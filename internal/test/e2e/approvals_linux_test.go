// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A site is a workspace with a script that says that it ran and writes to a place outside, which
// the script must be given.
type site struct{ dir, ws, out, evil string }

const siteScript = "echo ran >>count; echo x >>../out/file || exit 1\n"

func newSite(t *testing.T) site {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sallyport-test-") // commands have a /tmp of their own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := site{dir, filepath.Join(dir, "ws"), filepath.Join(dir, "out"), filepath.Join(dir, "evil")}
	for _, d := range []string{"ws/bin", "ws/first", "ws/place", "out", "evil"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.write(t, "ws/run.sh", siteScript)
	s.write(t, "ws/other.sh", siteScript)
	s.write(t, "ws/bin/tool", "#!/bin/sh\n"+siteScript)
	s.link(t, "run.sh", "ws/link.sh")
	s.link(t, "ws", "to-ws")
	return s
}

func (s site) write(t *testing.T, name, text string) {
	t.Helper()
	if err := testenv.WriteProgram(filepath.Join(s.dir, name), text); err != nil {
		t.Fatal(err)
	}
}

// link makes a symbolic link in the place of what was there.
func (s site) link(t *testing.T, to, name string) {
	t.Helper()
	at := filepath.Join(s.dir, name)
	if err := errors.Join(os.RemoveAll(at), os.Symlink(to, at)); err != nil {
		t.Fatal(err)
	}
}

// ran returns how often the script ran.
func (s site) ran() int {
	text, _ := os.ReadFile(filepath.Join(s.ws, "count"))
	return strings.Count(string(text), "ran\n")
}

// widenings change a command or what is around it. The words are what is said of it.
var widenings = []struct {
	name   string
	args   []string
	change func(*testing.T, site)
	says   string
}{
	{"nothing", []string{"sh", "run.sh"}, func(*testing.T, site) {}, ""},
	{"a file that it does not run", []string{"sh", "run.sh"}, func(t *testing.T, s site) { s.write(t, "ws/other.sh", "x") }, ""},
	{"its script", []string{"sh", "run.sh"}, func(t *testing.T, s site) { s.write(t, "ws/run.sh", siteScript+"# evil") }, "the file that it runs"},
	{"its script, which is -c's only word", []string{"sh", "-c", "./run.sh"}, func(t *testing.T, s site) { s.write(t, "ws/run.sh", siteScript+"# evil") }, "the file that it runs"},
	{"where a link leads", []string{"sh", "link.sh"}, func(t *testing.T, s site) { s.link(t, "other.sh", "ws/link.sh") }, "the file that it runs"},
	{"its script, for a named pipe", []string{"sh", "run.sh"}, func(t *testing.T, s site) {
		at := filepath.Join(s.ws, "run.sh")
		if err := errors.Join(os.Remove(at), unix.Mkfifo(at, 0o600)); err != nil {
			t.Fatal(err)
		}
	}, "the file that it runs"},
	{"its program", []string{"./bin/tool"}, func(t *testing.T, s site) { s.write(t, "ws/bin/tool", "#!/bin/sh\n"+siteScript+"# evil") }, "the file that it runs"},
	{"a program before it in PATH", []string{"tool"}, func(t *testing.T, s site) { s.write(t, "ws/first/tool", "#!/bin/sh\n"+siteScript) }, "the program that the command names"},
	{"where its directory leads", []string{"sh", "run.sh"}, func(t *testing.T, s site) {
		if err := os.Rename(s.ws, s.ws+"2"); err != nil {
			t.Fatal(err)
		}
		s.link(t, "ws2", "ws")
	}, "the file that it runs"},
	{"its directory", []string{"env", "sh"}, func(t *testing.T, s site) {
		if err := errors.Join(os.Rename(s.ws, s.ws+"2"), os.Mkdir(s.ws, 0o755)); err != nil { //nolint:gosec // a workspace
			t.Fatal(err)
		}
	}, "its directory"},
	{"what is to be opened", []string{"sh", "run.sh"}, func(t *testing.T, s site) { s.link(t, "evil", "out") }, "what a path leads to"},
}

// TestWidenedWhileOpen: what changes between a question and its answer is not what was approved.
// Nothing runs, or not again.
func TestWidenedWhileOpen(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, test := range widenings {
		for _, retry := range []bool{false, true} {
			name := test.name + map[bool]string{true: ", after a denial"}[retry]
			if retry && test.args[0] == "env" {
				continue // it is denied nothing
			}
			t.Run(name, func(t *testing.T) {
				s := newSite(t)
				r := newRunner(t, sandbox.WorkspaceWrite("."))
				asked := 0
				r.Approver = approval.Func(func(context.Context,
					*approval.Request) (approval.Decision, error) {
					asked++
					test.change(t, s)
					return approval.Decision{Answer: approval.Approved}, nil
				})
				c := &sallyport.Cmd{Args: test.args, Dir: s.ws,
					EnvPolicy: sallyport.EnvPolicy{Set: map[string]string{"PATH": "bin:" + s.ws + "/first:" +
						s.ws + "/bin:/usr/bin:/bin"}}}
				if !retry {
					c.AskFor = []sandbox.Grant{{Path: s.out, Level: sandbox.LevelWrite}}
				}
				res, err := r.Run(t.Context(), c)
				if asked != 1 {
					t.Fatalf("%d questions, %v, %+v", asked, err, res)
				}
				said := ""
				switch {
				case err != nil && errors.Is(err, sallyport.ErrRefused):
					said = err.Error()
				case err != nil:
					t.Fatal(err)
				default:
					said = strings.Join(res.Notices, "\n")
				}
				want := map[string]int{"": 1}[test.says] // how often it was approved
				if retry {
					want++
				}
				if !strings.Contains(said, test.says) ||
					(test.says != "") != strings.Contains(said, "changed while the question was open") {
					t.Errorf("it says %q, want %q", said, test.says)
				}
				if _, err := os.Lstat(filepath.Join(s.evil, "file")); err == nil {
					t.Error("it wrote to another place")
				}
				if test.name != "where its directory leads" && test.args[0] != "env" && s.ran() != want {
					t.Errorf("it ran %d times, want %d", s.ran(), want)
				}
			})
		}
	}
}

// TestWidenedBetweenRuns: an approval for the session is for the command as it was.
func TestWidenedBetweenRuns(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, test := range widenings {
		if test.args[0] == "env" || strings.HasSuffix(test.name, "named pipe") ||
			test.name == "where its directory leads" {
			continue // it would wait, or is the same by its path and its files
		}
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t)
			r := newRunner(t, sandbox.WorkspaceWrite("."))
			asked := 0
			r.Approver = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
				asked++
				return approval.Decision{Answer: approval.ApprovedForSession}, nil
			})
			c := &sallyport.Cmd{Args: test.args, Dir: s.ws,
				EnvPolicy: sallyport.EnvPolicy{Set: map[string]string{"PATH": "bin:" + s.ws + "/first:" +
					s.ws + "/bin:/usr/bin:/bin"}}}
			run := func(questions, runs int) {
				t.Helper()
				before := s.ran()
				asked = 0
				res, err := r.Run(t.Context(), c)
				if err != nil || res.ExitCode != 0 {
					t.Fatalf("%v, %+v", err, res)
				}
				if asked != questions || s.ran()-before != runs {
					t.Errorf("%d questions, it ran %d times; want %d, %d", asked, s.ran()-before,
						questions, runs)
				}
			}
			run(1, 2)
			run(0, 1) // M5: it starts with what was approved, once
			test.change(t, s)
			if test.says == "" {
				run(0, 1)
				return
			}
			run(1, 2)
		})
	}
}

// TestAskForThroughLink: a question shows where a link leads, and that is what is opened.
func TestAskForThroughLink(t *testing.T) {
	testenv.RunAsOrdinary(t)
	s := newSite(t)
	s.link(t, "../evil", "ws/place")
	r := newRunner(t, sandbox.WorkspaceWrite("."))
	var shown []string
	r.Approver = approval.Func(func(_ context.Context, q *approval.Request) (approval.Decision, error) {
		shown = q.Requires
		return approval.Decision{Answer: approval.Approved}, nil
	})
	res, err := r.Run(t.Context(), &sallyport.Cmd{Script: "echo x >place/file", Dir: s.ws,
		AskFor: []sandbox.Grant{{Path: filepath.Join(s.ws, "place"), Level: sandbox.LevelWrite}}})
	if err != nil || res.ExitCode != 0 || !slices.Equal(shown, []string{"write:" + s.evil}) {
		t.Errorf("%v, %+v, shown %q", err, res, shown)
	}
}

// TestPolicyChangesWhileOpen: a run has the policy and the environment with which it began.
func TestPolicyChangesWhileOpen(t *testing.T) {
	testenv.RunAsOrdinary(t)
	s := newSite(t)
	r := newRunner(t, sandbox.WorkspaceWrite("."))
	r.Approval = approval.Untrusted
	t.Setenv("TEST_VALUE", "before")
	r.Approver = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
		r.Policy = sandbox.FullAccess()
		return approval.Decision{Answer: approval.Approved}, os.Setenv("TEST_VALUE", "after") //nolint:usetesting // set back by Setenv
	})
	res, err := r.Run(t.Context(),
		&sallyport.Cmd{EnvPolicy: sallyport.EnvPolicy{Inherit: sallyport.InheritAll},
			Script: "echo $TEST_VALUE; echo x >../evil/file; touch in", Dir: s.ws,
			AskFor: []sandbox.Grant{{Path: s.out, Level: sandbox.LevelWrite}}})
	if err != nil || res.Sandbox.Mode == "full-access" || string(res.Stdout.Bytes()) != "before\n" {
		t.Errorf("%v, %+v, %q", err, res.Sandbox, res.Stdout.Bytes())
	}
	if _, err := os.Lstat(filepath.Join(s.evil, "file")); err == nil {
		t.Error("it wrote outside")
	}
}

// TestCanonicalWords is B14: spaces between the words of a plain script, and the path of the shell,
// make no other command; everything else does.
func TestCanonicalWords(t *testing.T) {
	s := newSite(t)
	r := newRunner(t, sandbox.WorkspaceWrite("."))
	r.Approval = approval.Untrusted
	asked := 0
	r.Approver = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
		asked++
		return approval.Decision{Answer: approval.ApprovedForSession}, nil
	})
	bash := testenv.NeedProgram(t, "bash")
	heredoc := "cat >in <<E\nx  y\nE\n"
	for _, test := range []struct {
		name string
		args []string
		asks int
	}{
		{"a plain script", []string{bash, "-c", "touch in here"}, 1},
		{"more spaces", []string{"bash", "-c", "touch   in  here"}, 0},
		{"quotes without effect", []string{"bash", "-c", "touch 'in' here"}, 0},
		{"one word of two", []string{"bash", "-c", "touch 'in here'"}, 1},
		{"as a login shell", []string{"bash", "-lc", "touch in here"}, 1},
		{"another shell", []string{"sh", "-c", "touch in here"}, 1},
		{"without a shell", []string{"touch", "in", "here"}, 1},
		{"a here-document", []string{bash, "-c", heredoc}, 1},
		{"the same by another path", []string{"bash", "-c", heredoc}, 0},
		{"other spaces in it", []string{"bash", "-c", strings.Replace(heredoc, "x  y", "x y", 1)}, 1},
		{"words after the script", []string{"bash", "-c", "touch in here", "x"}, 1},
	} {
		asked = 0
		if res, err := r.Run(t.Context(), &sallyport.Cmd{Args: test.args, Dir: s.ws}); err != nil ||
			res.ExitCode != 0 || asked != test.asks {
			t.Errorf("%s: %v, %d questions, want %d", test.name, err, asked, test.asks)
		}
	}
}

// The scripts of the rows: in and out of the workspace, each time with a line in count.
const (
	writeIn  = "echo ran >>count; echo x >in || exit 1"
	writeOut = "echo ran >>count; echo x >>../out/file || exit 1"
)

// approvalRows are rows of the acceptance list of orchestration, in a real sandbox.
var approvalRows = []struct {
	name      string
	policy    sandbox.Policy
	approval  approval.Policy
	script    string
	escalate  bool
	answers   []approval.Answer // of the questions, in order
	wantAsked int
	runs      int  // lines in count
	writes    bool // the file is there
	refused   bool // it did not run
	says      string
}{
	{"C1 full access, on-request", sandbox.FullAccess(), approval.OnRequest, writeOut, false, nil, 0, 1, true, false, ""},
	{"C3 full access, never", sandbox.FullAccess(), approval.Never, writeOut, false, nil, 0, 1, true, false, ""},
	{"C4 read-only, on-request, escalated and approved", sandbox.ReadOnly(), approval.OnRequest, writeOut, true, []approval.Answer{approval.Approved}, 1, 1, true, false, ""},
	{"C4 escalated and denied", sandbox.ReadOnly(), approval.OnRequest, writeOut, true, []approval.Answer{approval.Denied}, 1, 0, false, true, "rejected by user"},
	{"C4 read-only, on-request, echo", sandbox.ReadOnly(), approval.OnRequest, "echo x", false, nil, 0, 0, false, false, "x"},
	{"C5 read-only, untrusted: two questions", sandbox.ReadOnly(), approval.Untrusted, "echo x >in || exit 1", false, []approval.Answer{approval.Approved, approval.Approved}, 2, 0, true, false, ""},
	{"C6 read-only, never", sandbox.ReadOnly(), approval.Never, "echo x >in || exit 1", false, nil, 0, 0, false, false, "Read-only file system"},
	{"C7 workspace-write, inside", sandbox.WorkspaceWrite("."), approval.OnRequest, writeIn, false, nil, 0, 1, true, false, ""},
	{"C7 outside, escalated", sandbox.WorkspaceWrite("."), approval.OnRequest, writeOut, true, []approval.Answer{approval.Approved}, 1, 1, true, false, ""},
	{"C7 outside, never", sandbox.WorkspaceWrite("."), approval.Never, writeOut, false, nil, 0, 1, false, false, "Read-only file system"},
	{"C8 an escalated safe command is asked about", sandbox.WorkspaceWrite("."), approval.OnRequest, "echo x", true, []approval.Answer{approval.Denied}, 1, 0, false, true, "rejected by user"},
	{"C8 granular without sandbox_approval", sandbox.WorkspaceWrite("."), approval.Granular{Rules: true}.Policy(), "echo x", true, nil, 0, 0, false, true, "sandbox_approval is false"},
	{"C10 the first part is safe", sandbox.WorkspaceWrite("."), approval.OnRequest, "cat /dev/null && touch in", true, []approval.Answer{approval.Denied}, 1, 0, false, true, "rejected by user"},
	{"M1 granular, a denial", sandbox.WorkspaceWrite("."), approval.Granular{SandboxApproval: true}.Policy(), writeOut, false, []approval.Answer{approval.Approved}, 1, 2, true, false, ""},
	{"M2 untrusted, a denial: two questions", sandbox.WorkspaceWrite("."), approval.Untrusted, writeOut, false, []approval.Answer{approval.Approved, approval.Denied}, 2, 1, false, false, "Read-only file system"},
	{"M3 words are no denial", sandbox.WorkspaceWrite("."), approval.Granular{SandboxApproval: true}.Policy(), "echo ran >>count; echo log line: permission denied; exit 1", false, nil, 0, 1, false, false, "log line: permission denied"},
	{"M4 a late denial", sandbox.WorkspaceWrite("."), approval.Granular{SandboxApproval: true}.Policy(), "sleep 0.5; " + writeOut, false, []approval.Answer{approval.Approved}, 1, 2, true, false, ""},
	{"exit code 0 is not asked about", sandbox.WorkspaceWrite("."), approval.OnRequest, "echo ran >>count; echo x >>../out/file; true", false, nil, 0, 1, false, false, ""},
}

// TestApprovalRows: what is asked, what runs and how often, and what it leaves.
func TestApprovalRows(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, row := range approvalRows {
		t.Run(row.name, func(t *testing.T) {
			s := newSite(t)
			r := newRunner(t, row.policy)
			r.Approval = row.approval
			asked := 0
			r.Approver = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
				asked++
				if asked > len(row.answers) {
					return approval.Decision{}, nil
				}
				return approval.Decision{Answer: row.answers[asked-1]}, nil
			})
			res, err := r.Run(t.Context(), &sallyport.Cmd{Args: []string{"/bin/bash", "-c", row.script},
				Dir: s.ws, Unsandboxed: row.escalate})
			var said string
			if err != nil {
				said = err.Error()
			} else {
				said = string(res.Output.Bytes())
			}
			if refused := errors.Is(err, sallyport.ErrRefused) ||
				errors.Is(err, sallyport.ErrForbidden); refused != row.refused || err != nil && !refused {
				t.Fatal(err)
			}
			if asked != row.wantAsked || s.ran() != row.runs || !strings.Contains(said, row.says) {
				t.Errorf("%d questions, want %d; it ran %d times, want %d; it says %q", asked, row.wantAsked,
					s.ran(), row.runs, said)
			}
			_, in := os.Lstat(filepath.Join(s.ws, "in"))
			_, out := os.Lstat(filepath.Join(s.out, "file"))
			if (in == nil || out == nil) != row.writes {
				t.Errorf("in the workspace %v, outside %v", in, out)
			}
		})
	}
}

// TestApprovalRowsNetwork holds the parts of rows C4 and C7 that are about the network: a command that
// asks a server of this machine for a word.
func TestApprovalRowsNetwork(t *testing.T) {
	testenv.RunAsOrdinary(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("word of the server\n"))
			c.Close()
		}
	})
	defer serving.Wait()
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, row := range []struct {
		name     string
		policy   sandbox.Policy
		escalate bool
		asked    int
		reaches  bool
	}{
		{"C4 read-only, on-request: fails", sandbox.ReadOnly(), false, 0, false},
		{"C4 escalated and approved: works", sandbox.ReadOnly(), true, 1, true},
		{"C7 workspace-write: blocked", sandbox.WorkspaceWrite("."), false, 0, false},
		{"C7 with the network of the host: works", sandbox.WorkspaceWrite(".").WithNetwork(sandbox.NetworkHost), false, 0, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newSite(t)
			r := newRunner(t, row.policy)
			asked := 0
			r.Approver = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
				asked++
				return approval.Decision{Answer: approval.Approved}, nil
			})
			res, err := r.Run(t.Context(),
				&sallyport.Cmd{Args: []string{"/bin/bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/" + port +
					" && cat <&3"}, Dir: s.ws, Unsandboxed: row.escalate})
			if err != nil {
				t.Fatal(err)
			}
			if out := string(res.Output.Bytes()); strings.Contains(out,
				"word of the server") != row.reaches || (res.ExitCode == 0) != row.reaches ||
				asked != row.asked {
				t.Errorf("exit code %d after %d questions, %q", res.ExitCode, asked, out)
			}
		})
	}
}

// TestShellInReach: nobody is asked about a script of a shell that commands can change, and it does
// not leave the sandbox.
func TestShellInReach(t *testing.T) {
	ws := t.TempDir()
	text, err := os.ReadFile("/bin/sh")
	if err == nil {
		err = errors.Join(os.Mkdir(ws+"/bin", 0o700), testenv.WriteProgram(ws+"/bin/sh", text))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, shell, rule string
		leave, asked      bool
	}{
		{"a wish to leave", ws + "/bin/sh", "", true, false},
		{"a rule that asks", ws + "/bin/sh", `prefix_rule(["tool"], "prompt")`, false, false},
		{"a wish to leave, out of reach", "/bin/sh", "", true, true},
		{"a rule that asks, out of reach", "/bin/sh", `prefix_rule(["tool"], "prompt")`, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := false
			r := &sallyport.Runner{
				Policy: sandbox.WorkspaceWrite(), Approval: approval.OnRequest,
				Rules: rules.Load(rules.Host{Dir: ws}, rules.Source{Name: "r", Text: []byte(c.rule)}),
				Approver: approval.Func(func(_ context.Context,
					q *approval.Request) (approval.Decision, error) {
					asked = true
					return q.Decide(approval.Denied), nil
				}),
			}
			defer r.Close()
			_, err := r.Run(t.Context(), &sallyport.Cmd{Script: "tool", Shell: c.shell, Dir: ws,
				Unsandboxed: c.leave})
			if in := new(reach.Error); !errors.Is(err, sallyport.ErrRefused) || asked != c.asked ||
				errors.As(err, &in) == c.asked {
				t.Errorf("asked %v: %v", asked, err)
			}
		})
	}
}
