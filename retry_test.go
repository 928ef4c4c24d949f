// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/e2e"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// deniedWrite is a fact: the command was denied writing to /srv.
func deniedWrite(source sandbox.Source) sandbox.Denial {
	return sandbox.Denial{Access: sandbox.Access{Op: sandbox.Write, Path: "/srv/file"}, Errno: "EROFS",
		Source: source}
}

// deniedOnce plays a command that is denied writing to /srv/file until it may, and counts how
// often it runs.
func deniedOnce(runs *int, source sandbox.Source) func(*executor.Spec, *e2e.FakeProcess) {
	return func(spec *executor.Spec, p *e2e.FakeProcess) {
		*runs++
		if spec.Policy.Mode() == sandbox.Full || spec.Policy.LevelAt("/srv/file") == sandbox.LevelWrite {
			spec.OnOutput(executor.Stdout, []byte("second\n"))
			return
		}
		spec.OnOutput(executor.Stdout, []byte("first\n"))
		p.Exit = executor.Exit{Code: 1, Denials: []sandbox.Denial{deniedWrite(source)}}
	}
}

// TestRetry: after a denial that is a fact the least that allows it is asked for, once.
func TestRetry(t *testing.T) {
	granular := approval.Granular{SandboxApproval: true}.Policy()
	for _, test := range []struct {
		name     string
		source   sandbox.Source
		policy   approval.Policy
		denies   bool
		answer   approval.Answer
		asked    []string // what the question requires; nil for no question
		runs     int
		code     int
		out      string
		attempts int
	}{
		{"approved", sandbox.Notified, approval.OnRequest, false, approval.Approved, []string{"write:/srv/file"}, 2, 0, "second\n", 2},
		{"refused: the first result stays", sandbox.Notified, approval.OnRequest, false, approval.Denied, []string{"write:/srv/file"}, 1, 1, "first\n", 1},
		{"aborted", sandbox.Notified, approval.OnRequest, false, approval.Abort, []string{"write:/srv/file"}, 1, 1, "first\n", 1},
		{"no answer in time", sandbox.Notified, approval.OnRequest, false, approval.TimedOut, []string{"write:/srv/file"}, 1, 1, "first\n", 1},
		{"a guess is never asked about", sandbox.Guessed, approval.OnRequest, false, approval.Approved, nil, 1, 1, "first\n", 1},
		{"never", sandbox.Notified, approval.Never, false, approval.Approved, nil, 1, 1, "first\n", 1},
		{"granular", sandbox.Audited, granular, false, approval.Approved, []string{"write:/srv/file"}, 2, 0, "second\n", 2},
		{"granular without", sandbox.Notified, approval.Granular{Rules: true}.Policy(), false, approval.Approved, nil, 1, 1, "first\n", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			var events collector
			runs := 0
			r, _ := fakeRunner(&events, deniedOnce(&runs, test.source))
			r.Approval = test.policy
			var asked []string
			r.Approver = approval.Func(func(_ context.Context,
				q *approval.Request) (approval.Decision, error) {
				asked = append(asked, q.Requires...)
				if q.Kind != approval.KindAccess || q.Runs != 1 || len(q.Denials) != 1 ||
					q.Denials[0].Path != "/srv/file" {
					t.Errorf("the question is %+v", q)
				}
				return approval.Decision{Answer: test.answer}, nil
			})
			res, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w"})
			if closed := r.Close(); err != nil || closed != nil {
				t.Fatal(err, closed)
			}
			if !slices.Equal(asked, test.asked) || runs != test.runs || len(res.Attempts) != test.attempts ||
				res.ExitCode != test.code || string(res.Stdout.Bytes()) != test.out {
				t.Errorf("asked for %q, ran %d times, %d attempts, exit code %d, output %q", asked, runs,
					len(res.Attempts), res.ExitCode, res.Stdout.Bytes())
			}
			if again := test.runs == 2; again != (res.First != nil) || again &&
				(string(res.First.Stdout.Bytes()) != "first\n" || res.First.ExitCode != 1 ||
					len(res.First.Denials()) != 1) {
				t.Errorf("the first result is %+v", res.First)
			}
			if (test.asked != nil) != (len(res.Approvals) == 1) {
				t.Errorf("approvals %+v", res.Approvals)
			}
			said := slices.ContainsFunc(res.Notices,
				func(w string) bool { return strings.HasPrefix(w, "it was not run again: ") })
			if refused := test.asked != nil && test.runs == 1; refused != said {
				t.Errorf("notices %q", res.Notices)
			}
			checkEvents(t, events.events, test.asked != nil, test.runs == 2)
		})
	}
}

// checkEvents looks for the events of a question and of a second attempt.
func checkEvents(t *testing.T, events []event.Event, asked, again bool) {
	t.Helper()
	count := map[string]int{}
	for _, e := range events {
		count[e.Body.Kind()]++
		if text, err := json.Marshal(e); err != nil || !json.Valid(text) {
			t.Errorf("%s: %v", text, err)
		}
	}
	n := map[bool]int{true: 1}
	if count["approval_requested"] != n[asked] || count["approval_decided"] != n[asked] ||
		count["retrying"] != n[again] || count["started"] != 1+n[again] {
		t.Errorf("events %v", count)
	}
}

// TestRetryHost: a host that the proxy refused is asked for, and is open in the second attempt; one
// that must be named by the user is not asked about.
func TestRetryHost(t *testing.T) {
	for _, test := range []struct {
		name  string
		named bool
		asked []string
		runs  int
	}{{"a host that no entry names", false, []string{"host:a.example:443"}, 2},
		{"a protected address", true, nil, 1}} {
		t.Run(test.name, func(t *testing.T) {
			runs := 0
			r, _ := fakeRunner(nil, func(spec *executor.Spec, p *e2e.FakeProcess) {
				if runs++; slices.Contains(spec.Policy.Hosts(), "a.example:443") {
					return
				}
				p.Exit = executor.Exit{Code: 1, Denials: []sandbox.Denial{{
					Access: sandbox.Access{Op: sandbox.Connect, Addr: "a.example:443"},
					Source: sandbox.Proxied, Grant: "--allow-host a.example:443", NoGrant: test.named,
				}}}
			})
			r.Policy = r.Policy.WithNetwork(sandbox.NetworkProxy)
			var asked []string
			r.Approver = approval.Func(func(_ context.Context,
				q *approval.Request) (approval.Decision, error) {
				asked = append(asked, q.Requires...)
				return approval.Decision{Answer: approval.Approved}, nil
			})
			_, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w"})
			if closed := r.Close(); err != nil || closed != nil {
				t.Fatal(err, closed)
			}
			if !slices.Equal(asked, test.asked) || runs != test.runs {
				t.Errorf("asked for %q, ran %d times", asked, runs)
			}
		})
	}
}

// TestRetryOutside: leaving the sandbox is its own question, asked only where no grant helps, the
// approval policy is not the caller's matter, and nothing is denied for good.
func TestRetryOutside(t *testing.T) {
	play := func(runs *int) func(*executor.Spec, *e2e.FakeProcess) {
		return func(spec *executor.Spec, p *e2e.FakeProcess) {
			if *runs++; spec.Policy.Mode() != sandbox.Full {
				p.Exit = executor.Exit{Code: 1,
					Denials: []sandbox.Denial{{Access: sandbox.Access{Op: sandbox.Connect,
						Addr: "192.0.2.1:443"}, Source: sandbox.Notified}}}
			}
		}
	}
	onFailure, err := approval.Parse("on-failure")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		policy approval.Policy
		denies bool
		asked  int
	}{
		{"on-failure", onFailure, false, 1},
		{"on-failure, with something denied for good", onFailure, true, 0},
		{"on-request never asks for it", approval.OnRequest, false, 0},
		{"granular", approval.Granular{SandboxApproval: true}.Policy(), false, 1},
		{"granular, with something denied for good", approval.Granular{SandboxApproval: true}.Policy(), true, 0},
		{"never", approval.Never, false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			runs, asked := 0, 0
			r, _ := fakeRunner(nil, play(&runs))
			r.Approval = test.policy
			if test.denies {
				r.Policy = r.Policy.WithEntries(sandbox.PathEntry("/w/secret", sandbox.LevelDeny))
			}
			r.Approver = approval.Func(func(_ context.Context,
				q *approval.Request) (approval.Decision, error) {
				asked++
				if !slices.Equal(q.Requires, []string{approval.Outside}) ||
					!strings.Contains(q.Reason, "the second run would be without the sandbox") {
					t.Errorf("it requires %q, because %q", q.Requires, q.Reason)
				}
				return approval.Decision{Answer: approval.Approved}, nil
			})
			res, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w"})
			if closed := r.Close(); err != nil || closed != nil {
				t.Fatal(err, closed)
			}
			if asked != test.asked || runs != 1+test.asked ||
				(res.Sandbox.Mode == "full-access") != (test.asked == 1) {
				t.Errorf("asked %d times, ran %d times, mode %s", asked, runs, res.Sandbox.Mode)
			}
		})
	}
}

// TestSessionApproval: a command that was approved for the session starts with what was
// approved, runs once, and is asked about again when anything about it changes.
func TestSessionApproval(t *testing.T) {
	runs, asked := 0, 0
	r, _ := fakeRunner(nil, deniedOnce(&runs, sandbox.Notified))
	defer r.Close()
	r.Approver = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
		asked++
		return approval.Decision{Answer: approval.ApprovedForSession}, nil
	})
	run := func(c Cmd, wantRuns, wantAsked int) *Result {
		t.Helper()
		c.Dir, runs, asked = "/w", 0, 0
		res, err := r.Run(t.Context(), &c)
		if err != nil || runs != wantRuns || asked != wantAsked {
			t.Fatalf("%v: %d runs after %d questions, want %d after %d", err, runs, asked,
				wantRuns, wantAsked)
		}
		return res
	}
	run(Cmd{Args: []string{"x"}}, 2, 1)
	if res := run(Cmd{Args: []string{"x"}}, 1, 0); len(res.Attempts) != 1 || res.First != nil {
		t.Errorf("%+v", res)
	}
	run(Cmd{Args: []string{"x", "more"}}, 2, 1)
	run(Cmd{Args: []string{"x"}, EnvPolicy: EnvPolicy{Set: map[string]string{"LD_PRELOAD": "/w/x.so"}}}, 2, 1)
	run(Cmd{Args: []string{"x"}, Tmp: "host"}, 2, 1)
	if n := len(r.Approvals()); n != 4 {
		t.Errorf("%d are remembered", n)
	}
	for _, a := range r.Approvals() {
		if err := r.RevokeApproval(a.Request.ID); err != nil {
			t.Error(err)
		}
	}
	if err := r.RevokeApproval("x"); !errors.Is(err, approval.ErrNotRemembered) {
		t.Error(err)
	}
	run(Cmd{Args: []string{"x"}}, 2, 1)
}

// TestRetryCanceled: the end of the context while the question is open keeps the first result.
func TestRetryCanceled(t *testing.T) {
	runs := 0
	r, _ := fakeRunner(nil, deniedOnce(&runs, sandbox.Notified))
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	r.Approver = approval.Func(func(ctx context.Context, _ *approval.Request) (approval.Decision, error) {
		cancel()
		<-ctx.Done()
		return approval.Decision{}, ctx.Err()
	})
	res, err := r.Run(ctx, &Cmd{Args: []string{"x"}, Dir: "/w"})
	if !errors.Is(err, context.Canceled) || res == nil || res.End != EndCanceled ||
		string(res.Stdout.Bytes()) != "first\n" || runs != 1 {
		t.Errorf("%+v, %v, %d runs", res, err, runs)
	}
}

// TestAskFor: more than the policy needs an approval, covers what was asked for, and nothing else.
func TestAskFor(t *testing.T) {
	for _, test := range []struct {
		name   string
		policy approval.Policy
		answer approval.Answer
		want   error
	}{
		{"approved", approval.OnRequest, approval.Approved, nil},
		{"refused", approval.OnRequest, approval.Denied, ErrRefused},
		{"never", approval.Never, approval.Approved, ErrForbidden},
		{"granular without", approval.Granular{Rules: true}.Policy(), approval.Approved, ErrForbidden},
	} {
		t.Run(test.name, func(t *testing.T) {
			var levels []sandbox.Level
			r, _ := fakeRunner(nil, func(spec *executor.Spec, _ *e2e.FakeProcess) {
				levels = append(levels, spec.Policy.LevelAt("/srv/file"), spec.Policy.LevelAt("/other"))
			})
			defer r.Close()
			r.Approval, r.Approver = test.policy, answering(test.answer)
			_, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w",
				AskFor: []sandbox.Grant{{Path: "/srv", Level: sandbox.LevelWrite}}})
			if !errors.Is(err, test.want) || (test.want == nil) != slices.Equal(levels,
				[]sandbox.Level{sandbox.LevelWrite, sandbox.LevelRead}) {
				t.Errorf("%v, levels %v", err, levels)
			}
		})
	}
}

// TestRemember: a rule is offered only where it is narrow and has the command run unasked; an
// approval with it counts for the Runner at once.
func TestRemember(t *testing.T) {
	for _, test := range []struct {
		name    string
		cmd     Cmd
		offered []string
	}{
		{"the command", Cmd{Args: []string{"go", "vet", "./..."}}, []string{"go", "vet", "./..."}},
		{"the caller's prefix", Cmd{Args: []string{"go", "vet", "./..."}, PrefixRule: []string{"go", "vet"}}, []string{"go", "vet"}},
		{"a program alone", Cmd{Args: []string{"make"}}, nil},
		{"too wide", Cmd{Args: []string{"bash", "-c", "x"}, PrefixRule: []string{"bash", "-c"}}, nil},
		{"of another command", Cmd{Args: []string{"go", "vet"}, PrefixRule: []string{"go", "test"}}, nil},
		{"a script of plain commands", Cmd{Args: []string{"sh", "-c", "cargo test -p x"}}, []string{"cargo", "test", "-p", "x"}},
		{"an opaque script", Cmd{Args: []string{"sh", "-c", "cargo test > $X"}, PrefixRule: []string{"cargo", "test"}}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var lines []string
			runs, asked := 0, 0
			r, _ := fakeRunner(nil, func(*executor.Spec, *e2e.FakeProcess) { runs++ })
			defer r.Close()
			r.Approval = approval.Untrusted
			r.Remember = func(_ []string, line string) error { lines = append(lines, line); return nil }
			r.Approver = approval.Func(func(_ context.Context,
				q *approval.Request) (approval.Decision, error) {
				asked++
				if len(q.Offers) == 0 {
					if test.offered != nil {
						t.Error("no rule is offered")
					}
					return approval.Decision{Answer: approval.Approved}, nil
				}
				if !slices.Equal(q.Offers[0].Rule, test.offered) {
					t.Errorf("offered %q", q.Offers[0].Rule)
				}
				return approval.Decision{Answer: approval.ApprovedRule, Rule: q.Offers[0].Rule}, nil
			})
			for range 2 {
				c := test.cmd
				c.Dir = "/w"
				if _, err := r.Run(t.Context(), &c); err != nil {
					t.Fatal(err)
				}
			}
			want := 2
			if test.offered != nil {
				want = 1
			}
			if runs != 2 || asked != want || len(lines) != 2-want {
				t.Errorf("%d runs, %d questions, remembered %q", runs, asked, lines)
			}
		})
	}
}

// TestRememberParent is C13: a rule that is remembered in a part of a session counts in all of it,
// and not in another one.
func TestRememberParent(t *testing.T) {
	asked := 0
	runner := func(parent *Runner) *Runner {
		r, _ := fakeRunner(nil, func(*executor.Spec, *e2e.FakeProcess) {})
		r.Approval, r.Parent, r.Rules = approval.Untrusted, parent, ruleSet(t, runRules)
		r.Remember = func([]string, string) error { return nil }
		r.Approver = approval.Func(func(_ context.Context, q *approval.Request) (approval.Decision, error) {
			asked++
			return q.Decide(approval.ApprovedRule), nil
		})
		t.Cleanup(func() { r.Close() })
		return r
	}
	top := runner(nil)
	part := runner(runner(top))
	for _, r := range []*Runner{part, part, part.Parent, top} {
		if _, err := r.Run(t.Context(), &Cmd{Args: []string{"cargo", "test"},
			Dir: "/w"}); err != nil || asked != 1 {
			t.Fatalf("%v, %d questions", err, asked)
		}
	}
	if _, err := runner(top).Run(t.Context(), &Cmd{Args: []string{"cargo", "test"},
		Dir: "/w"}); err != nil || asked != 2 {
		t.Errorf("%v, %d questions", err, asked)
	}
}

// TestEnvironments is B12: what was approved for one machine is asked about for another.
func TestEnvironments(t *testing.T) {
	host := &knownHost{info: executor.HostInfo{OS: "linux", Environment: "a"}}
	host.Play = func(*executor.Spec, *e2e.FakeProcess) {}
	var asked []string
	r := &Runner{Executor: host, Approval: approval.Untrusted}
	defer r.Close()
	r.Approver = approval.Func(func(_ context.Context, q *approval.Request) (approval.Decision, error) {
		asked = append(asked, q.Environment)
		return approval.Decision{Answer: approval.ApprovedForSession}, nil
	})
	for _, name := range []string{"a", "b", "a", "b"} {
		host.info.Environment = name
		if _, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w"}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(asked, []string{"a", "b"}) {
		t.Errorf("asked for %q", asked)
	}
}

// told is the kinds of events of runs without those of output, with the status of reviews and the
// decision of questions.
func told(t *testing.T, events []event.Event, run string) string {
	t.Helper()
	var all []string
	question := ""
	for _, e := range events {
		if e.Run != run {
			t.Errorf("an event of the run %q, want %q", e.Run, run)
		}
		word := e.Body.Kind()
		switch b := e.Body.(type) {
		case event.Output, event.Exited, event.Denied:
			continue
		case event.ApprovalRequested:
			question = b.Request.ID
		case event.ReviewStarted:
			if b.Review.Request.ID != question {
				t.Errorf("a review of %q", b.Review.Request.ID)
			}
		case event.ReviewCompleted:
			word += "=" + string(b.Review.Status)
		case event.ApprovalDecided:
			word += "=" + b.Decision.String() + " by " + string(b.Source)
		case event.SandboxOutcome:
			word += "=" + b.Outcome
		}
		all = append(all, word)
	}
	return strings.Join(all, " ")
}

// TestReviewEvents: a review stands between its question and the decision, in the events of its run.
func TestReviewEvents(t *testing.T) {
	for _, test := range []struct {
		name    string
		answers []approval.Answer
		want    string
	}{
		{"approved", []approval.Answer{approval.Approved}, "judged approval_requested review_started review_completed=approved approval_decided=approved by reviewer started" +
			" approval_requested review_started review_completed=approved approval_decided=approved by reviewer retrying started sandbox_outcome=escalated ended"},
		{"denied", []approval.Answer{approval.Denied}, "judged approval_requested review_started review_completed=denied approval_decided=denied by reviewer ended"},
		{"the second attempt is denied", []approval.Answer{approval.Approved, approval.Denied}, "judged approval_requested review_started review_completed=approved approval_decided=approved by reviewer started" +
			" approval_requested review_started review_completed=denied approval_decided=denied by reviewer sandbox_outcome=denied ended"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var c collector
			r, _ := fakeRunner(&c, deniedOnce(new(int), sandbox.Notified))
			r.Approver = &reviewer{answers: test.answers}
			_, _ = r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w",
				AskFor: []sandbox.Grant{{Path: "/other", Level: sandbox.LevelWrite}}})
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if got := told(t, c.events, c.events[0].Run); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestReviewCanceled: a review that ends with its run is reported as aborted, before the end.
func TestReviewCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var c collector
	r, _ := fakeRunner(&c, func(*executor.Spec, *e2e.FakeProcess) { t.Error("it ran") })
	r.Approver = approval.Func(func(ctx context.Context, q *approval.Request) (approval.Decision, error) {
		review := approval.Review{ID: "v", Request: q, Status: approval.ReviewInProgress}
		approval.Reviewing(ctx, review)
		cancel()
		<-ctx.Done()
		review.Status = approval.ReviewAborted
		approval.Reviewing(ctx, review)
		return approval.Decision{}, context.Cause(ctx)
	})
	_, err := r.Run(ctx, &Cmd{Args: []string{"x"}, Dir: "/w", Unsandboxed: true})
	if closed := r.Close(); err == nil || closed != nil {
		t.Fatal(err, closed)
	}
	if got := told(t, c.events,
		c.events[0].Run); got != "judged approval_requested review_started review_completed=aborted ended" {
		t.Errorf("got %s", got)
	}
}

// TestRetryInput: a command is run again only with all of its input: nothing is asked where that can
// be read once, and a file that was closed while the question was open prevents the second attempt.
func TestRetryInput(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "input"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		stdin io.Reader
		asked int
	}{
		{"a reader", strings.NewReader("input"), 0},
		{"a file that is closed", file, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			runs, asked := 0, 0
			r, _ := fakeRunner(nil, deniedOnce(&runs, sandbox.Notified))
			r.Approval = approval.OnRequest
			r.Approver = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
				asked++
				return approval.Decision{Answer: approval.Approved}, file.Close()
			})
			res, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w", Stdin: test.stdin})
			if closed := r.Close(); err != nil || closed != nil {
				t.Fatal(err, closed)
			}
			said := slices.Contains(res.Notices,
				"it was not run again: its input changed while the question was open")
			if runs != 1 || asked != test.asked || said != (asked > 0) || res.ExitCode != 1 {
				t.Errorf("ran %d times, asked %d times, exit code %d, notices %q", runs, asked,
					res.ExitCode, res.Notices)
			}
		})
	}
}

// startsOnce is an executor whose second start fails.
type startsOnce struct {
	*e2e.Fake
	starts int
	err    error
}

func (e *startsOnce) Start(ctx context.Context, spec *executor.Spec) (executor.Process, error) {
	if e.starts++; e.starts > 1 {
		return nil, e.err
	}
	return e.Fake.Start(ctx, spec)
}

// TestRetryNotStarted: the first result stays where the second attempt does not start.
func TestRetryNotStarted(t *testing.T) {
	for _, err := range []error{errors.New("no room"), ErrEndUnknown} {
		runs := 0
		r, fake := fakeRunner(nil, deniedOnce(&runs, sandbox.Notified))
		r.Executor = &startsOnce{Fake: fake, err: err}
		r.Approval, r.Approver = approval.OnRequest, answering(approval.Approved)
		res, got := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w"})
		if closed := r.Close(); closed != nil {
			t.Fatal(closed)
		}
		if res == nil || runs != 1 || res.ExitCode != 1 || string(res.Stdout.Bytes()) != "first\n" ||
			res.First != nil {
			t.Fatalf("%v: ran %d times, %+v, %v", err, runs, res, got)
		}
		said := slices.ContainsFunc(res.Notices,
			func(w string) bool { return strings.HasPrefix(w, "it was not run again: ") })
		if unknown := errors.Is(err, ErrEndUnknown); said == unknown ||
			errors.Is(got, ErrEndUnknown) != unknown {
			t.Errorf("%v: %v, notices %q", err, got, res.Notices)
		}
	}
}
