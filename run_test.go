// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/e2e"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

func TestMain(m *testing.M) {
	testenv.DefaultSignals()
	testenv.SkipExamples()
	testenv.MostlyWait()
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(testenv.HungMounts))
}

// fakeRunner returns a Runner whose commands are played.
func fakeRunner(sink event.Sink, play func(spec *executor.Spec,
	p *e2e.FakeProcess)) (*Runner, *e2e.Fake) {
	e := &e2e.Fake{Play: play}
	return &Runner{Policy: sandbox.ReadOnly(), Executor: e, Events: sink}, e
}

const runRules = `prefix_rule(["rm"], "forbidden", justification = "use trash")
prefix_rule(["git", "push"], "prompt", justification = "shared history")
prefix_rule(["git"])
prefix_rule(["make"], sandbox = "read-only")
prefix_rule(["npm"], sandbox = "outside")
prefix_rule(["go"], sandbox = "workspace-write")
`

func ruleSet(t *testing.T, text string) *rules.Set {
	t.Helper()
	set, err := rules.Parse("/r", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// perform runs a command to its end, with Run or as a session.
func perform(t *testing.T, r *Runner, c Cmd, session bool) (*Result, error) {
	t.Helper()
	if !session {
		return r.Run(t.Context(), &c)
	}
	s, err := r.Start(t.Context(), &c)
	if err != nil {
		return nil, err
	}
	return s.Wait(t.Context())
}

// TestNilCmd: a nil command is an error.
func TestNilCmd(t *testing.T) {
	var r Runner
	defer r.Close()
	var bad *CmdError
	if _, err := r.Run(t.Context(), nil); !errors.As(err, &bad) {
		t.Errorf("Run: %v", err)
	}
	if _, err := r.Start(t.Context(), nil); !errors.As(err, &bad) {
		t.Errorf("Start: %v", err)
	}
}

// TestRules: rules decide about commands of Run and of Start, and errors, events and results name
// the rule.
func TestRules(t *testing.T) {
	for _, test := range []struct {
		name   string
		args   []string
		arg0   string
		policy approval.Policy
		err    error
		text   string // of the error
		line   int    // of the rule
		event  string // the decision in it
	}{
		{"no rule", []string{"x"}, "", approval.OnRequest, nil, "", 0, event.DecisionAllow},
		{"allowed", []string{"git", "log"}, "", approval.OnRequest, nil, "", 3, event.DecisionAllow},
		{"forbidden", []string{"rm", "x"}, "", approval.OnRequest, ErrForbidden, "sallyport: forbidden: `rm x` rejected: use trash (rule /r:1:1)", 1, event.DecisionForbid},
		{"forbidden, by another spelling", []string{"sh", "-c", `r\m x`}, "", approval.OnRequest, ErrForbidden, "use trash", 1, event.DecisionForbid},
		{"forbidden, by argv[0]", []string{"box", "x"}, "rm", approval.OnRequest, ErrForbidden, "use trash", 1, event.DecisionForbid},
		{"prompt", []string{"git", "push"}, "", approval.OnRequest, ErrRefused, "sallyport: refused: `git push` requires approval: shared history, and no approver is configured", 2, event.DecisionPrompt},
		{"prompt under never", []string{"git", "push"}, "", approval.Never, ErrForbidden, "approval required by policy, but AskForApproval is set to Never", 2, event.DecisionForbid},
		{"untrusted", []string{"x"}, "", approval.Untrusted, ErrRefused, "no rule allows `x`", 0, event.DecisionPrompt},
		{"untrusted, on the safe list", []string{"ls"}, "", approval.Untrusted, nil, "", 0, event.DecisionAllow},
	} {
		for name, session := range map[string]bool{"run": false, "start": true} {
			t.Run(test.name+", "+name, func(t *testing.T) {
				var c collector
				started := 0
				r, _ := fakeRunner(&c, func(*executor.Spec, *e2e.FakeProcess) { started++ })
				r.Rules, r.Approval, r.SafeList = ruleSet(t, runRules), test.policy, true
				res, err := perform(t, r, Cmd{Args: test.args, Arg0: test.arg0, Dir: "/w"}, session)
				if cerr := r.Close(); cerr != nil {
					t.Error(cerr)
				}
				if !errors.Is(err, test.err) || err != nil && !strings.Contains(err.Error(), test.text) ||
					(started > 0) != (test.err == nil) {
					t.Errorf("%v after %d starts, want %v, %s", err, started, test.err, test.text)
				}
				judged, ok := c.events[0].Body.(event.Judged)
				if !ok || judged.Decision != test.event || (judged.Rule != nil) != (test.line > 0) ||
					judged.Rule != nil && judged.Rule.Line != test.line {
					t.Errorf("the event is %+v", c.events[0].Body)
				}
				var rule *Rule
				var by *RuleError
				if res != nil {
					rule = res.Rule
				} else if errors.As(err, &by) {
					rule = &by.Rule
				}
				if test.line == 0 && rule != nil || test.line > 0 &&
					(rule == nil || rule.Line != test.line || rule.File != "/r") {
					t.Errorf("the rule is %+v, want line %d", rule, test.line)
				}
			})
		}
	}
}

// TestAskForPrompted: an approval of what a rule prompts for does not carry permissions along that
// the policy does not ask about.
func TestAskForPrompted(t *testing.T) {
	started := 0
	r, _ := fakeRunner(nil, func(*executor.Spec, *e2e.FakeProcess) { started++ })
	defer r.Close()
	r.Rules, r.Approver, r.Approval = ruleSet(t, runRules), answering(approval.Approved),
		approval.Granular{Rules: true}.Policy()
	c := Cmd{Args: []string{"git", "push"}, Dir: "/w"}
	if _, err := r.Run(t.Context(), &c); err != nil || started != 1 {
		t.Fatalf("%v, %d starts", err, started)
	}
	c.AskFor = []sandbox.Grant{{Path: "/srv", Level: sandbox.LevelWrite}}
	if _, err := r.Run(t.Context(), &c); !errors.Is(err, ErrForbidden) || started != 1 {
		t.Errorf("%v, %d starts", err, started)
	}
}

// TestWishes: what a command asks for is asked about as far as it has an effect.
func TestWishes(t *testing.T) {
	external, err := sandbox.New(sandbox.External, sandbox.NetworkHost)
	if err != nil {
		t.Fatal(err)
	}
	denying := sandbox.WorkspaceWrite().WithEntries(sandbox.PathEntry("/w/secret", sandbox.LevelDeny))
	srv := []sandbox.Grant{{Path: "/srv", Level: sandbox.LevelWrite}}
	for _, test := range []struct {
		name   string
		policy sandbox.Policy
		cmd    Cmd
		asked  []string // what it requires; nil for no question
	}{
		{"outside", sandbox.WorkspaceWrite(), Cmd{Unsandboxed: true}, []string{approval.Outside}},
		{"outside and more", sandbox.WorkspaceWrite(), Cmd{Unsandboxed: true, AskFor: srv}, []string{approval.Outside}},
		{"outside, with something denied for good", denying, Cmd{Unsandboxed: true}, nil},
		{"outside and more, with something denied for good", denying, Cmd{Unsandboxed: true, AskFor: srv}, []string{"write:/srv"}},
		{"outside, from full access", sandbox.FullAccess(), Cmd{Unsandboxed: true, AskFor: srv}, nil},
		{"outside, from an external sandbox", external, Cmd{Unsandboxed: true}, nil},
		{"more than an external sandbox", external, Cmd{AskFor: srv}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var asked []string
			var ran sandbox.Policy
			r, _ := fakeRunner(nil, func(spec *executor.Spec,
				_ *e2e.FakeProcess) {
				ran = spec.Policy
			})
			defer r.Close()
			r.Policy = test.policy
			r.Approver = approval.Func(func(_ context.Context,
				q *approval.Request) (approval.Decision, error) {
				asked = q.Requires
				return approval.Decision{Answer: approval.Approved}, nil
			})
			c := test.cmd
			c.Args, c.Dir = []string{"x"}, "/w"
			if _, err := r.Run(t.Context(), &c); err != nil {
				t.Fatal(err)
			}
			outside := slices.Contains(test.asked, approval.Outside)
			if !slices.Equal(asked, test.asked) || outside != (ran.Mode() == sandbox.Full &&
				test.policy.Mode() != sandbox.Full) || ran.Denies() != test.policy.Denies() {
				t.Errorf("asked %q, ran under %v", asked, ran)
			}
		})
	}
}

// TestBrokenRules: nothing runs, whatever the policies, and the error is that of the rules.
func TestBrokenRules(t *testing.T) {
	for _, p := range []approval.Policy{approval.OnRequest, approval.Untrusted, approval.Never} {
		r, _ := fakeRunner(nil, func(*executor.Spec, *e2e.FakeProcess) { t.Error("it ran") })
		r.Policy, r.Approval, r.SafeList = sandbox.FullAccess(), p, true
		r.Approver = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
			t.Error("it was asked about")
			return approval.Decision{Answer: approval.Approved}, nil
		})
		r.Rules = rules.Load(rules.Host{}, rules.Source{Name: "/good", Text: []byte(`prefix_rule(["ls"])`)},
			rules.Source{Name: "/bad", Text: []byte("\nx(")})
		_, err := r.Run(t.Context(), &Cmd{Args: []string{"ls"}, Dir: "/w"})
		var load *rules.LoadError
		if !errors.As(err, &load) || load.File != "/bad" || errors.Is(err, ErrForbidden) ||
			!strings.Contains(err.Error(), "/bad:2:") {
			t.Errorf("%v", err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestRulesWhere: what rules make of the policy of a run, and what the command is told about it.
// An allow, or an approval of a prompt, never removes the sandbox.
func TestRulesWhere(t *testing.T) {
	workspace := sandbox.WorkspaceWrite()
	denies := workspace.WithEntries(sandbox.PathEntry("/w/secret", sandbox.LevelDeny))
	yes := answering(approval.Approved)
	for _, test := range []struct {
		name        string
		args        []string
		policy      sandbox.Policy
		unsandboxed bool
		want        string // Sandbox.Mode of the result
	}{
		{"an allow", []string{"git", "log"}, workspace, false, "workspace-write"},
		{"an approved prompt", []string{"git", "push"}, workspace, false, "workspace-write"},
		{"read-only", []string{"make"}, workspace, false, "read-only"},
		{"read-only, in full access", []string{"make"}, sandbox.FullAccess(), false, "read-only"},
		{"workspace-write, in read-only", []string{"go"}, sandbox.ReadOnly(), false, "read-only"},
		{"workspace-write, in full access", []string{"go"}, sandbox.FullAccess(), false, "workspace-write"},
		{"outside", []string{"npm"}, workspace, false, "full-access"},
		{"outside, and asks to leave", []string{"npm"}, workspace, true, "full-access"},
		{"outside, with denies", []string{"npm"}, denies, false, "custom"},
		{"asks to leave", []string{"git", "log"}, workspace, true, "full-access"},
		{"asks to leave, with denies", []string{"git", "log"}, denies, true, "custom"},
		{"a planted program", []string{"./npm"}, workspace, false, "workspace-write"},
	} {
		for name, session := range map[string]bool{"run": false, "start": true} {
			t.Run(test.name+", "+name, func(t *testing.T) {
				r, _ := fakeRunner(nil, func(spec *executor.Spec, _ *e2e.FakeProcess) {
					mode := spec.Policy.Name()
					if mode != test.want || !slices.Contains(spec.Env, "SALLYPORT_SANDBOX="+mode) {
						t.Errorf("mode %s, environment %q", mode, spec.Env)
					}
					if offline := slices.Contains(spec.Env,
						"CODEX_SANDBOX_NETWORK_DISABLED=1"); offline != (mode != "full-access") {
						t.Errorf("%s: %q", mode, spec.Env)
					}
					if test.want == "custom" && spec.Policy.LevelAt("/w/secret") != sandbox.LevelDeny {
						t.Error("the deny entry is gone")
					}
				})
				r.Policy, r.Rules, r.Approver = test.policy, ruleSet(t, runRules), yes
				res, err := perform(t, r, Cmd{Args: test.args, Dir: "/w",
					Unsandboxed: test.unsandboxed}, session)
				if err != nil || res.Sandbox.Mode != test.want {
					t.Errorf("%+v, %v", res, err)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestPermits: what no approval may open is not asked for, neither by the caller, nor after a
// denial; and no rule opens it.
func TestPermits(t *testing.T) {
	errCeiling := errors.New("more than the ceiling")
	for _, test := range []struct {
		name  string
		cmd   Cmd
		not   string // what is not permitted; empty for nothing
		err   error
		asked int
		mode  sandbox.Mode
	}{
		{"the caller leaves", Cmd{Args: []string{"x"}, Unsandboxed: true}, approval.Outside, errCeiling, 0, 0},
		{"the caller leaves, permitted", Cmd{Args: []string{"x"}, Unsandboxed: true}, "", nil, 1, sandbox.Full},
		{"the caller asks for more", Cmd{Args: []string{"x"}, AskFor: []sandbox.Grant{{Path: "/srv", Level: sandbox.LevelWrite}}}, "write:/srv", errCeiling, 0, 0},
		{"a rule leaves", Cmd{Args: []string{"npm"}}, approval.Outside, nil, 0, sandbox.Managed},
		{"a rule leaves, permitted", Cmd{Args: []string{"npm"}}, "", nil, 0, sandbox.Full},
		{"a rule prompts, and something else is not permitted", Cmd{Args: []string{"git", "push"}}, approval.Outside, nil, 1, sandbox.Managed},
		{"a rule forbids", Cmd{Args: []string{"rm"}, Unsandboxed: true}, approval.Outside, ErrForbidden, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			var mode sandbox.Mode
			r, _ := fakeRunner(nil, func(spec *executor.Spec,
				_ *e2e.FakeProcess) {
				mode = spec.Policy.Mode()
			})
			defer r.Close()
			asked := 0
			r.Rules, r.Policy = ruleSet(t, runRules), sandbox.WorkspaceWrite()
			r.Approver = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
				asked++
				return approval.Decision{Answer: approval.Approved}, nil
			})
			r.Permits = func(required []string) error {
				for _, word := range required {
					if word == test.not {
						return errCeiling
					}
				}
				return nil
			}
			c := test.cmd
			c.Dir = "/w"
			_, err := r.Run(t.Context(), &c)
			if !errors.Is(err, test.err) || asked != test.asked || mode != test.mode {
				t.Errorf("%v, asked %d times, %v; want %v, %d, %v", err, asked, mode, test.err,
					test.asked, test.mode)
			}
			if test.err != nil && !errors.Is(err, ErrForbidden) {
				t.Errorf("%v is not forbidden", err)
			}
		})
	}
	runs := 0
	r, _ := fakeRunner(nil, deniedOnce(&runs, sandbox.Notified))
	defer r.Close()
	r.Approver = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
		t.Error("it is asked about")
		return approval.Decision{Answer: approval.Approved}, nil
	})
	r.Permits = func([]string) error { return errCeiling }
	if res, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w"}); err != nil || runs != 1 ||
		res.ExitCode != 1 {
		t.Errorf("%+v, %v, %d runs", res, err, runs)
	}
}

// TestSpecIdentity checks that the executor gets the identity that events carry.
func TestSpecIdentity(t *testing.T) {
	var c collector
	r, e := fakeRunner(&c, func(*executor.Spec, *e2e.FakeProcess) {})
	defer r.Close()
	if _, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/"}); err != nil {
		t.Fatal(err)
	}
	if e.Spec.Run == "" || e.Spec.Run != c.events[0].Run || e.Spec.Attempt != 1 {
		t.Errorf("the Spec has run %q, attempt %d; the events have run %q", e.Spec.Run, e.Spec.Attempt,
			c.events[0].Run)
	}
	first := e.Spec.Run
	s, err := r.Start(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	if e.Spec.Run != s.Info().Run || e.Spec.Run == first || e.Spec.Attempt != 1 {
		t.Errorf("the Spec has run %q, attempt %d; the session has run %q", e.Spec.Run,
			e.Spec.Attempt, s.Info().Run)
	}
}

// A knownHost is an executor that describes its machine as the test says.
type knownHost struct {
	e2e.Fake
	info    executor.HostInfo
	hostErr error
}

func (e *knownHost) Host(context.Context) (executor.HostInfo, error) { return e.info, e.hostErr }

func (e *knownHost) Places(context.Context, string, []string, string) (sandbox.Places, error) {
	return sandbox.Places{Dir: "/there"}, nil
}

func (e *knownHost) Shell(_ context.Context, name, script string, _ bool) ([]string, error) {
	return []string{name, script}, nil
}

// TestHost checks what a Runner asks of the machine of its executor.
func TestHost(t *testing.T) {
	base := []string{"Path=/bin", "PATH=/usr/bin"}
	run := func(t *testing.T, e *knownHost, c *Cmd) error {
		t.Helper()
		e.Play = func(*executor.Spec, *e2e.FakeProcess) {}
		r := &Runner{Executor: e, Policy: sandbox.ReadOnly()}
		defer r.Close()
		_, err := r.Run(t.Context(), c)
		return err
	}
	t.Run("places and shell", func(t *testing.T) {
		e := &knownHost{info: executor.HostInfo{OS: "linux"}}
		if err := run(t, e, &Cmd{Script: "do it", Shell: "sh", Env: base}); err != nil {
			t.Fatal(err)
		}
		if e.Spec.Dir != "/there" || !slices.Equal(e.Spec.Args, []string{"sh", "do it"}) {
			t.Errorf("directory %q, arguments %q", e.Spec.Dir, e.Spec.Args)
		}
	})
	t.Run("the system decides about variables", func(t *testing.T) {
		for _, test := range []struct {
			system string
			kept   bool // Path, which is the same variable as PATH on Windows
		}{{"linux", true}, {"windows", false}, {"", true}} {
			e := &knownHost{info: executor.HostInfo{OS: test.system}}
			if err := run(t, e, &Cmd{Args: []string{"x"}, Env: base}); err != nil {
				t.Fatal(err)
			}
			if slices.Contains(e.Spec.Env, "Path=/bin") != test.kept {
				t.Errorf("system %q: environment %q", test.system, e.Spec.Env)
			}
		}
	})
	t.Run("unknown", func(t *testing.T) {
		e := &knownHost{hostErr: errors.ErrUnsupported}
		if err := run(t, e, &Cmd{Args: []string{"x"}, Env: base}); err != nil {
			t.Error(err)
		}
	})
	t.Run("not reachable", func(t *testing.T) {
		broken := errors.New("no connection")
		if err := run(t, &knownHost{hostErr: broken},
			&Cmd{Args: []string{"x"}, Env: base}); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	})
}

func TestTimeoutAndSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan int)
		r, _ := fakeRunner(nil, func(_ *executor.Spec, p *e2e.FakeProcess) {
			signals <- 0
			signals <- 10
			signals <- 0 // taken only when 10 was sent
			<-p.Stopped
			p.Exit = executor.Exit{Code: 0, Stopped: true, LastSignal: 15}
			if !slices.Equal(p.Signals, []int{10}) {
				t.Errorf("signals %v", p.Signals)
			}
		})
		defer r.Close()
		begin := time.Now()
		res, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/", Timeout: 3 * time.Second,
			Signals: signals})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != 3*time.Second {
			t.Errorf("it took %v", took)
		}
		if !res.TimedOut || res.ExitCode != 124 || res.Signal != 0 || res.Attempts[0].Code != 0 {
			t.Errorf("%+v", res)
		}
	})
}

// A tieContext is one that is canceled in this very moment: it has its error, and no one
// was told yet.
type tieContext struct{ context.Context }

func (tieContext) Err() error { return context.Canceled }

// TestTimeoutTie: a cancellation that is there when the time limit is exceeded wins.
func TestTimeoutTie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for ctx, want := range map[context.Context]End{t.Context(): EndTimedOut,
			tieContext{t.Context()}: EndCanceled} {
			p := e2e.NewFakeProcess()
			a := &attempt{process: p, stopped: make(chan struct{})}
			release := a.watch(ctx, &Cmd{Timeout: time.Second})
			<-p.Stopped
			release()
			if got := a.asked(); got != want {
				t.Errorf("the run ends as %q, want %q", got, want)
			}
		}
	})
}

func TestUnknownEnd(t *testing.T) {
	r, _ := fakeRunner(nil, func(_ *executor.Spec,
		p *e2e.FakeProcess) {
		p.Exit = executor.Exit{Code: -1}
	})
	defer r.Close()
	res, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/"})
	if err == nil || res == nil || res.End != EndFailed || res.ExitCode != -1 {
		t.Errorf("got %+v and %v, want both", res, err)
	}
}

func TestForeignExecutor(t *testing.T) {
	r, e := fakeRunner(nil, func(*executor.Spec, *e2e.FakeProcess) {})
	defer r.Close()
	if _, err := r.Run(t.Context(), &Cmd{Script: "exit 1", Dir: "/somewhere"}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"/bin/sh", "-c", "exit 1"}; !slices.Equal(e.Spec.Args, want) ||
		e.Spec.Dir != "/somewhere" {
		t.Errorf("it got %q in %q", e.Spec.Args, e.Spec.Dir)
	}
	for _, c := range []*Cmd{{Args: []string{"x"}, Dir: "relative"}, {Args: []string{"x"}},
		{Script: "x", Shell: "zsh", Dir: "/"}} {
		if _, err := r.Run(t.Context(), c); err == nil || !strings.HasPrefix(err.Error(), "sallyport: Cmd.") {
			t.Errorf("%+v gave %v", c, err)
		}
	}
}

// TestLateUnavailable: a sandbox that turned out not to be there is no end of a
// command.
func TestLateUnavailable(t *testing.T) {
	r, _ := fakeRunner(nil, func(_ *executor.Spec, p *e2e.FakeProcess) {
		p.Exit = executor.Exit{Code: -1}
		p.Err = &sandbox.UnsupportedError{Need: "a", Have: "b", Hint: "c"}
	})
	defer r.Close()
	res, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/"})
	if !errors.Is(err, ErrNoSandbox) || res == nil || res.End != EndUnavailable {
		t.Errorf("got %+v and %v", res, err)
	}
}

// TestUpdate: a command gets the policy and the directory that count when it begins, and keeps
// them, also for the question about it and for its second attempt.
func TestUpdate(t *testing.T) {
	var got []string
	runs := 0
	fail := deniedOnce(&runs, sandbox.Notified)
	r, _ := fakeRunner(nil, func(spec *executor.Spec, p *e2e.FakeProcess) {
		got = append(got, spec.Policy.LevelAt(spec.Dir+"/x").String()+" "+spec.Dir)
		fail(spec, p)
	})
	defer r.Close()
	r.Policy, r.Approval = sandbox.WorkspaceWrite("."), approval.OnRequest
	r.Approver = approval.Func(func(_ context.Context, q *approval.Request) (approval.Decision, error) {
		r.Update(sandbox.ReadOnly(), "/later")
		return approval.Decision{Answer: approval.ApprovedForSession}, nil
	})
	run := func(dir string, want ...string) {
		t.Helper()
		got, runs = nil, 0
		if _, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: dir}); err != nil ||
			!slices.Equal(got, want) {
			t.Errorf("%v, attempts in %q, want %q", err, got, want)
		}
	}
	r.Update(sandbox.WorkspaceWrite("."), "/first")
	run("", "write /first", "write /first")
	run("/own", "read /own", "read /own")
	run("", "read /later", "read /later")
	run("", "read /later") // what was approved for the session is given from the start
	r.Update(sandbox.WorkspaceWrite("."), "/first")
	run("", "write /first")
}

// TestWarningOfHome: a home below the host's /tmp is not warned of where a private one hides it.
func TestWarningOfHome(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, tmp, dir, home string
		want                 bool
	}{
		{"hidden", "", "/w", "/tmp/h", false},
		{"hidden by a private one that was asked for", "private", "/w", "/tmp/h", false},
		{"hidden, with a workspace below", "", "/tmp/h/w", "/tmp/h", false},
		{"the host's", "host", "/w", "/tmp/h", true},
		{"the workspace", "", "/tmp/h", "/tmp/h", true},
		{"in the workspace", "", "/tmp/w", "/tmp/w/h", true},
		{"elsewhere", "", "/home/u", "/home/u", true},
	} {
		p := sandbox.WorkspaceWrite().Bind(sandbox.Places{Dir: c.dir, SlashTmp: "/tmp"})
		x := &execution{policy: p, dir: c.dir, cmd: &Cmd{Tmp: c.tmp}}
		if got := x.warnings(c.home); len(got) > 0 != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
