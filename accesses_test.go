// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/e2e"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// writing returns a write by a system call that the sandbox denies, to one path or two.
func writing(call string, paths ...string) executor.AccessQuestion {
	return executor.AccessQuestion{Access: sandbox.Access{Op: sandbox.Write, Path: paths[0]}, Call: call,
		Paths: paths, PID: 12, Program: "/bin/sh"}
}

// An accessRunner is a Runner whose commands want to write: their words, one after the other. Words with a
// comma are renames. What they got is noted.
type accessRunner struct {
	*Runner
	events  collector
	mu      sync.Mutex
	asked   []*approval.Request
	answers func(*approval.Request) (approval.Decision, error)
	got     []bool
}

func newAccessRunner(t *testing.T, answers func(*approval.Request) (approval.Decision, error)) *accessRunner {
	t.Helper()
	h := &accessRunner{answers: answers}
	h.Runner, _ = fakeRunner(&h.events, func(spec *executor.Spec, p *e2e.FakeProcess) {
		for _, word := range spec.Args[1:] {
			granted := spec.AskAccess != nil &&
				spec.AskAccess(t.Context(), writing("openat", strings.Split(word, ",")...))
			h.mu.Lock()
			h.got = append(h.got, granted)
			h.mu.Unlock()
			if !granted {
				p.Exit.Code = 1
				p.Exit.Denials = append(p.Exit.Denials, sandbox.Denial{Errno: "EROFS",
					Access: sandbox.Access{Op: sandbox.Write, Path: word}, Source: sandbox.Notified})
			}
			select {
			case <-p.Stopped:
				p.Exit.Stopped = true
				return
			default:
			}
		}
	})
	h.Policy = sandbox.WorkspaceWrite()
	h.Approver = approval.Func(func(_ context.Context, q *approval.Request) (approval.Decision, error) {
		h.mu.Lock()
		h.asked = append(h.asked, q)
		h.mu.Unlock()
		return h.answers(q)
	})
	t.Cleanup(func() { h.Close() })
	return h
}

// run runs a command that wants to write, and returns the result and what it got.
func (h *accessRunner) run(t *testing.T, paths ...string) (*Result, []bool) {
	t.Helper()
	h.got = nil
	res, err := h.Run(t.Context(), &Cmd{Args: append([]string{"a"}, paths...), Dir: "/w", AskWrites: true})
	if res == nil {
		t.Fatal(err)
	}
	return res, h.got
}

// always gives one answer.
func always(a approval.Answer) func(*approval.Request) (approval.Decision, error) {
	return func(*approval.Request) (approval.Decision, error) { return approval.Decision{Answer: a}, nil }
}

// TestAccessQuestion: what a question shows and offers, and what the result and the events have of it.
func TestAccessQuestion(t *testing.T) {
	h := newAccessRunner(t, always(approval.Approved))
	res, got := h.run(t, "/o/f")
	if !slices.Equal(got, []bool{true}) || res.ExitCode != 0 || len(res.Attempts) != 1 {
		t.Fatalf("%v, %+v", got, res)
	}
	q := h.asked[0]
	if q.Kind != approval.KindAccess || !q.Waiting || q.Runs != 0 ||
		!slices.Equal(q.Requires, []string{"write:/o/f"}) || !strings.Contains(q.Reason, "is waiting") ||
		!strings.Contains(q.Reason, "has not been repeated") ||
		!strings.Contains(q.Reason, "write /o/f") || strings.Contains(q.Reason, "stage") {
		t.Errorf("%+v", q)
	}
	want := []approval.Offer{{Answer: approval.Approved, Path: "/o/f"},
		{Answer: approval.ApprovedForSession, Path: "/o/f"}}
	if fmt.Sprint(q.Offers) != fmt.Sprint(want) {
		t.Errorf("offers %+v", q.Offers)
	}
	text, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"granted":[{"op":"write","path":"/o/f","by":"user","waited_ms":`) ||
		!strings.Contains(string(text), `"attempts":1`) {
		t.Errorf("%s", text)
	}
	var back Result
	if err := json.Unmarshal(text, &back); err != nil || !slices.Equal(back.Granted, res.Granted) {
		t.Errorf("%v, %+v", err, back.Granted)
	}
	var kinds []string
	for _, e := range h.events.events {
		kinds = append(kinds, e.Body.Kind())
	}
	if a, b := slices.Index(kinds, "approval_decided"), slices.Index(kinds, "granted"); a < 0 || b < a {
		t.Errorf("%v", kinds)
	}
}

// TestAccessAnswers: what each answer opens, for the next access to the path and for one beside it.
func TestAccessAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(*approval.Request) (approval.Decision, error)
		paths  []string
		got    string
		asked  int
		by     string
	}{
		{"once is for one access", always(approval.Approved), []string{"/o/f", "/o/f"}, "true true", 2,
			"user user"},
		{"for the session it is for the path", always(approval.ApprovedForSession),
			[]string{"/o/f", "/o/f", "/o/g"}, "true true true", 2, "user cache user"},
		{"a denial is kept", always(approval.Denied), []string{"/o/f", "/o/f", "/o/g"},
			"false false false", 2, ""},
		{"a rename needs both", always(approval.ApprovedForSession),
			[]string{"/o/f,/p/f", "/o/f", "/p/f,/o/f", "/p/g"}, "true true true true", 2,
			"user user cache cache cache user"},
		{"not asked: a denied path", always(approval.Approved), []string{"/d/f", "/d/g"},
			"false false", 0, ""},
		{"the directory of three, for this command", func(q *approval.Request) (approval.Decision, error) {
			o := q.Offers[len(q.Offers)-1]
			return approval.Decision{Answer: approval.Approved, Path: o.Path}, nil
		}, []string{"/o/1", "/o/2", "/o/3", "/o/4", "/o/d/e", "/o", "/other"},
			"true true true true true true true", 5,
			"user user user cache cache user user"},
		{"an answer that was not offered", func(*approval.Request) (approval.Decision, error) {
			return approval.Decision{Answer: approval.Approved, Path: "/"}, nil
		}, []string{"/o/1"}, "false", 1, ""},
		{"no one to ask", func(*approval.Request) (approval.Decision, error) {
			return approval.Decision{Answer: approval.Approved}, approval.ErrPass
		}, []string{"/o/1"}, "false", 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newAccessRunner(t, c.answer)
			h.Policy = sandbox.WorkspaceWrite().WithEntries(sandbox.PathEntry("/d", sandbox.LevelDeny))
			res, got := h.run(t, c.paths...)
			var by []string
			for _, g := range res.Granted {
				for range g.More + 1 {
					by = append(by, string(g.By))
				}
			}
			asked := 0
			for _, q := range h.asked {
				if q.Waiting {
					asked++
				} else {
					t.Errorf("it is asked about again: %+v", q)
				}
			}
			if fmt.Sprint(got) != "["+c.got+"]" || asked != c.asked || strings.Join(by, " ") != c.by {
				t.Errorf("%v after %d questions, by %v", got, asked, by)
			}
		})
	}
}

// TestAccessSession: an approval for the session is for all commands of the Runner, can be taken back, and
// opens nothing from the start.
func TestAccessSession(t *testing.T) {
	h := newAccessRunner(t, always(approval.ApprovedForSession))
	h.run(t, "/o/f")
	res, got := h.run(t, "/o/f")
	if !slices.Equal(got, []bool{true}) || len(h.asked) != 1 || res.Granted[0].By != approval.FromCache {
		t.Errorf("%v, %d questions, %+v", got, len(h.asked), res.Granted)
	}
	if res.Attempts[0].Policy.LevelAt("/o/f") == sandbox.LevelWrite {
		t.Error("the policy is wider")
	}
	if l := h.Approvals(); len(l) != 1 || h.RevokeApproval(l[0].Request.ID) != nil {
		t.Errorf("%+v", l)
	}
	if h.run(t, "/o/f"); len(h.asked) != 2 {
		t.Errorf("%d questions after it was taken back", len(h.asked))
	}
}

// TestAccessUnasked: who is not asked, denies.
func TestAccessUnasked(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*accessRunner)
	}{
		{"the policy never", func(h *accessRunner) { h.Approval = approval.Never }},
		{"no approver", func(h *accessRunner) { h.Approver = nil }},
		{"granular without questions about the sandbox", func(h *accessRunner) {
			h.Approval = approval.Granular{Rules: true}.Policy()
		}},
		{"a ceiling", func(h *accessRunner) {
			h.Permits = func(required []string) error {
				if slices.Contains(required, "write:/o/f") {
					return fmt.Errorf("%s is above the ceiling", required)
				}
				return nil
			}
		}},
		{"full access", func(h *accessRunner) { h.Policy = sandbox.FullAccess() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newAccessRunner(t, always(approval.Approved))
			c.change(h)
			if _, got := h.run(t, "/o/f"); got[0] || len(h.asked) != 0 {
				t.Errorf("%v after %d questions", got, len(h.asked))
			}
		})
	}
	t.Run("not wanted", func(t *testing.T) {
		h := newAccessRunner(t, always(approval.Denied))
		if _, err := h.Run(t.Context(), &Cmd{Args: []string{"a", "/o/f"}, Dir: "/w"}); err != nil {
			t.Error(err)
		}
		if h.got[0] || len(h.asked) == 1 && h.asked[0].Waiting {
			t.Errorf("%+v", h.asked)
		}
	})
}

// TestAccessReview: in strict review each access is reviewed anew, and nothing is for the session.
func TestAccessReview(t *testing.T) {
	h := newAccessRunner(t, always(approval.Denied))
	reviewed := 0
	h.Reviewer = approval.Func(func(_ context.Context, q *approval.Request) (approval.Decision, error) {
		if q.Waiting {
			if reviewed++; len(q.Offers) != 1 || q.Key != "" {
				t.Errorf("%+v", q)
			}
		}
		return approval.Decision{Answer: approval.Approved}, nil
	})
	h.Approver = nil
	if _, got := h.run(t, "/o/f", "/o/f"); !slices.Equal(got, []bool{true, true}) || reviewed != 2 {
		t.Errorf("%v after %d reviews", got, reviewed)
	}
}

// TestAccessAbort: an abort denies, the command goes on, and nothing more is asked in this run. What was
// approved for the session before is open still.
func TestAccessAbort(t *testing.T) {
	h := newAccessRunner(t, func(q *approval.Request) (approval.Decision, error) {
		if q.Requires[0] == "write:/o/kept" {
			return approval.Decision{Answer: approval.ApprovedForSession}, nil
		}
		return approval.Decision{Answer: approval.Abort}, nil
	})
	res, got := h.run(t, "/o/kept", "/o/f", "/o/g", "/o/f", "/o/kept")
	if !slices.Equal(got, []bool{true, false, false, false, true}) || res.End != EndExited || len(h.asked) != 2 ||
		len(res.Attempts) != 1 || len(res.Denials()) == 0 {
		t.Errorf("%v, %v, %d questions, %+v", got, res.End, len(h.asked), res.Denials())
	}
	if n := len(res.Approvals); n != 2 || res.Approvals[1].Decision != approval.Abort {
		t.Errorf("%+v", res.Approvals)
	}
	if said := strings.Join(res.Notices, "\n"); strings.Count(said, "abort") != 1 {
		t.Errorf("%q", res.Notices)
	}
	if h.run(t, "/o/f"); len(h.asked) != 3 {
		t.Errorf("the next run asked nothing")
	}
}

// TestAccessMany: a run asks 20 times at most, and says once that it would have asked more.
func TestAccessMany(t *testing.T) {
	h := newAccessRunner(t, always(approval.Approved))
	var paths []string
	for i := range 25 {
		paths = append(paths, fmt.Sprintf("/o%d/f", i))
	}
	res, got := h.run(t, paths...)
	granted, said := 0, 0
	for _, g := range got {
		if g {
			granted++
		}
	}
	for _, n := range res.Notices {
		if strings.Contains(n, "20 questions") {
			said++
		}
	}
	waiting := slices.DeleteFunc(h.asked, func(q *approval.Request) bool { return !q.Waiting })
	if granted != 20 || len(waiting) != 20 || said != 1 {
		t.Errorf("%d granted, %d questions, %q", granted, len(waiting), res.Notices)
	}
}

// TestAccessTime: the time limit and waits stand still while a question is open; without an answer it is no,
// and nothing is asked again.
func TestAccessTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAccessRunner(t, func(*approval.Request) (approval.Decision, error) {
			<-time.After(3 * time.Second)
			return approval.Decision{Answer: approval.Approved}, nil
		})
		defer h.Close()
		s, err := h.Start(t.Context(), &Cmd{Args: []string{"a", "/o/f"}, Dir: "/w", AskWrites: true,
			Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Await(t.Context(), Until{For: 2 * time.Second})
		if err != nil || r.Reason != ReasonExited || r.Result.TimedOut || len(r.Result.Granted) != 1 ||
			r.Result.Granted[0].WaitedMS != 3000 {
			t.Errorf("%+v, %v", r, err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // a wait that begins while the question is open
		h := newAccessRunner(t, func(*approval.Request) (approval.Decision, error) {
			<-time.After(time.Minute)
			return approval.Decision{Answer: approval.Denied}, nil
		})
		defer h.Close()
		h.AnswerTime = time.Hour
		s, err := h.Start(t.Context(), &Cmd{Args: []string{"a", "/o/f"}, Dir: "/w", AskWrites: true})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		start := time.Now()
		r, err := s.Await(t.Context(), Until{For: time.Hour, Quiet: 10 * time.Second})
		if err != nil || r.Reason != ReasonExited || time.Since(start) != time.Minute {
			t.Errorf("%+v, %v after %v", r, err, time.Since(start))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		h := newAccessRunner(t, nil)
		defer h.Close()
		h.Approver = approval.Func(func(ctx context.Context, _ *approval.Request) (approval.Decision, error) {
			<-ctx.Done()
			return approval.Decision{}, ctx.Err()
		})
		start := time.Now()
		res, got := h.run(t, "/o/f")
		if got[0] || time.Since(start) != time.Minute || res.End != EndExited || len(res.Attempts) != 1 {
			t.Errorf("%v after %v, %+v", got, time.Since(start), res)
		}
		h.AnswerTime = 5 * time.Second
		start = time.Now()
		if h.run(t, "/o/f"); time.Since(start) != 5*time.Second {
			t.Errorf("after %v", time.Since(start))
		}
	})
}

// TestAccessTogether: calls that wait for the same access get one answer; one question is open at a time, and
// one whose call has gone is withdrawn, so that its answer opens nothing.
func TestAccessTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		got := map[string]int{}
		h := &accessRunner{}
		h.Runner, _ = fakeRunner(&h.events, func(spec *executor.Spec, p *e2e.FakeProcess) {
			ctx, kill := context.WithCancel(t.Context())
			var calls sync.WaitGroup
			for _, path := range []string{"/o/killed", "/o/f", "/o/f", "/o/g"} {
				of := t.Context()
				if path == "/o/killed" {
					of = ctx
				}
				calls.Go(func() {
					if spec.AskAccess(of, writing("openat", path)) {
						mu.Lock()
						defer mu.Unlock()
						got[path]++
					}
				})
				synctest.Wait()
			}
			kill()
			calls.Wait()
		})
		h.Policy = sandbox.WorkspaceWrite()
		open, asked := 0, 0
		h.Approver = approval.Func(func(ctx context.Context, q *approval.Request) (approval.Decision, error) {
			mu.Lock()
			asked++
			if open++; open > 1 {
				t.Errorf("%d questions are open", open)
			}
			mu.Unlock()
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			mu.Lock()
			defer mu.Unlock()
			open--
			return approval.Decision{Answer: approval.Approved}, nil
		})
		defer h.Close()
		res, err := h.Run(t.Context(), &Cmd{Args: []string{"a"}, Dir: "/w", AskWrites: true})
		if err != nil || len(res.Granted) != 3 || asked != 3 || got["/o/f"] != 2 || got["/o/g"] != 1 ||
			got["/o/killed"] != 0 {
			t.Errorf("%v, %+v, %d questions, %v", err, res, asked, got)
		}
	})
}

// BenchmarkAccess is what a question costs whose approver answers at once.
func BenchmarkAccess(b *testing.B) {
	r, _ := fakeRunner(nil, func(spec *executor.Spec, _ *e2e.FakeProcess) {
		for b.Loop() {
			if !spec.AskAccess(b.Context(), writing("openat", "/o/f")) {
				b.Error("denied")
			}
		}
	})
	defer r.Close()
	r.Policy, r.Approver = sandbox.WorkspaceWrite(), approval.Fixed(approval.Decision{
		Answer: approval.ApprovedForSession})
	if _, err := r.Run(b.Context(), &Cmd{Args: []string{"a"}, Dir: "/w", AskWrites: true}); err != nil {
		b.Fatal(err)
	}
}
