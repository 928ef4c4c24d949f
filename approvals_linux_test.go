// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A site is a workspace with a script that says that it ran and writes to a place outside, which
// the script must be given.
type site struct{ dir, ws, out, evil string }

const siteScript = "echo ran >>count; echo x >>../out/file || exit 1\n"

func newSite(t *testing.T) site {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sallyport-test-") //nolint:usetesting // commands have a /tmp of their own
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
				r.Approver = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
					asked++
					test.change(t, s)
					return approval.Decision{Answer: approval.Approved}, nil
				})
				c := &Cmd{Args: test.args, Dir: s.ws, EnvPolicy: EnvPolicy{Set: map[string]string{"PATH": "bin:" + s.ws + "/first:" + s.ws + "/bin:/usr/bin:/bin"}}}
				if !retry {
					c.AskFor = []sandbox.Grant{{Path: s.out, Level: sandbox.LevelWrite}}
				}
				res, err := r.Run(t.Context(), c)
				if asked != 1 {
					t.Fatalf("%d questions, %v, %+v", asked, err, res)
				}
				said := ""
				switch {
				case err != nil && errors.Is(err, ErrRefused):
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
				if !strings.Contains(said, test.says) || (test.says != "") != strings.Contains(said, "changed while the question was open") {
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
		if test.args[0] == "env" || strings.HasSuffix(test.name, "named pipe") || test.name == "where its directory leads" {
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
			c := &Cmd{Args: test.args, Dir: s.ws, EnvPolicy: EnvPolicy{Set: map[string]string{"PATH": "bin:" + s.ws + "/first:" + s.ws + "/bin:/usr/bin:/bin"}}}
			run := func(questions, runs int) {
				t.Helper()
				before := s.ran()
				asked = 0
				res, err := r.Run(t.Context(), c)
				if err != nil || res.ExitCode != 0 {
					t.Fatalf("%v, %+v", err, res)
				}
				if asked != questions || s.ran()-before != runs {
					t.Errorf("%d questions, it ran %d times; want %d, %d", asked, s.ran()-before, questions, runs)
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
	res, err := r.Run(t.Context(), &Cmd{Script: "echo x >place/file", Dir: s.ws, AskFor: []sandbox.Grant{{Path: filepath.Join(s.ws, "place"), Level: sandbox.LevelWrite}}})
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
	res, err := r.Run(t.Context(), &Cmd{EnvPolicy: EnvPolicy{Inherit: InheritAll}, Script: "echo $TEST_VALUE; echo x >../evil/file; touch in", Dir: s.ws, AskFor: []sandbox.Grant{{Path: s.out, Level: sandbox.LevelWrite}}})
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
		if res, err := r.Run(t.Context(), &Cmd{Args: test.args, Dir: s.ws}); err != nil || res.ExitCode != 0 || asked != test.asks {
			t.Errorf("%s: %v, %d questions, want %d", test.name, err, asked, test.asks)
		}
	}
}
