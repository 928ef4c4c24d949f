// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// passes is a terminal that is not there.
var passes = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
	return approval.Decision{}, approval.ErrPass
})

// waits is a terminal in front of which no one answers. It tells why it was withdrawn.
func waits(why chan<- error) approval.Approver {
	return approval.Func(func(ctx context.Context, _ *approval.Request) (approval.Decision, error) {
		<-ctx.Done()
		why <- context.Cause(ctx)
		return approval.Decision{}, ctx.Err()
	})
}

// newPost returns a Post with a memory, in a state directory of its own.
func newPost(t *testing.T, beside approval.Approver) *QuestionServer {
	t.Helper()
	var memory approval.Memory
	p := &QuestionServer{
		Beside: beside, Wait: time.Minute, Remembered: memory.List, Revoke: memory.Revoke,
		Failed: func(err error) { t.Error(err) },
	}
	t.Cleanup(p.Close)
	return p
}

func home(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "p") //nolint:usetesting // a short name, for systems with short addresses
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("XDG_STATE_HOME", dir)
}

func request(id string) *approval.Request {
	return &approval.Request{
		ID: id, Kind: approval.KindCommand, Args: []string{"git", "push"}, Dir: "/w",
		Reason: "a rule prompts",
		Offers: []approval.Offer{{Answer: approval.ApprovedRule, Rule: []string{"git", "push"}}},
		Available: []approval.Answer{approval.Approved, approval.ApprovedForSession, approval.Denied,
			approval.Abort},
	}
}

type outcome struct {
	d   approval.Decision
	err error
}

// ask asks, and returns when the question can be answered.
func (p *QuestionServer) ask(t *testing.T, r *approval.Request) <-chan outcome {
	t.Helper()
	changed := p.questions.Changed()
	out := make(chan outcome, 1)
	go func() {
		d, err := p.Approve(t.Context(), r)
		out <- outcome{d, err}
	}()
	<-changed
	return out
}

func list(t *testing.T) *QuestionListing {
	t.Helper()
	l, err := ListQuestions("")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAnswer(t *testing.T) {
	for _, test := range []struct {
		name, id string
		answer   approval.Answer
		message  string
		want     approval.Decision
	}{
		{"approve", "abc-1", approval.Approved, "", approval.Decision{Answer: approval.Approved}},
		{"for the session, shortened", "a", approval.ApprovedForSession, "", approval.Decision{Answer: approval.ApprovedForSession}},
		{"the rule", "abc-1", approval.ApprovedRule, "", approval.Decision{Answer: approval.ApprovedRule, Rule: []string{"git", "push"}}},
		{"deny", "abc-1", approval.Denied, "not\ntoday", approval.Decision{Answer: approval.Denied, Message: "not\ntoday"}},
		{"abort", "abc-1", approval.Abort, "", approval.Decision{Answer: approval.Abort}},
	} {
		t.Run(test.name, func(t *testing.T) {
			home(t)
			why := make(chan error, 1)
			p := newPost(t, waits(why))
			out := p.ask(t, request("abc-1"))
			l := list(t)
			if len(l.Pending) != 1 || l.Pending[0].PID != os.Getpid() ||
				l.Pending[0].Request.Reason != "a rule prompts" || len(l.Silent) > 0 {
				t.Fatalf("%+v", l)
			}
			if err := l.Answer(test.id, test.answer, test.message, ""); err != nil {
				t.Fatal(err)
			}
			got := <-out
			if d := got.d; got.err != nil || d.Answer != test.want.Answer || d.Message != test.want.Message ||
				!slices.Equal(d.Rule, test.want.Rule) || d.Source != approval.FromUser {
				t.Errorf("%+v", got)
			}
			if cause := <-why; !errors.Is(cause, approval.ErrAnswered) {
				t.Errorf("the terminal was told %v", cause)
			}
			if err := l.Answer("abc-1", approval.Approved, "", ""); !errors.Is(err, ErrUnknownQuestion) {
				t.Errorf("answered twice: %v", err)
			}
			if l := list(t); len(l.Pending) != 0 {
				t.Errorf("%+v", l)
			}
		})
	}
}

// TestOneAnswer: of many answers at once one counts, and the others are told.
func TestOneAnswer(t *testing.T) {
	home(t)
	p := newPost(t, passes)
	out := p.ask(t, request("abc-1"))
	l := list(t)
	var done sync.WaitGroup
	results := make([]error, 10)
	for i := range results {
		done.Go(func() {
			results[i] = l.Answer("abc-1", []approval.Answer{approval.Denied, approval.Approved}[i%2],
				fmt.Sprint(i), "")
		})
	}
	done.Wait()
	got, counted := <-out, 0
	for i, err := range results {
		if err == nil {
			counted++
			if got.d.Message != fmt.Sprint(i) {
				t.Errorf("%d was told that it counts, and %+v does", i, got)
			}
		} else if !errors.Is(err, ErrUnknownQuestion) {
			t.Error(err)
		}
	}
	if counted != 1 {
		t.Errorf("%d answers count", counted)
	}
}

// TestNotOffered: such an answer leaves the question open.
func TestNotOffered(t *testing.T) {
	home(t)
	p := newPost(t, passes)
	r := request("abc-1")
	r.Offers, r.Available = nil, []approval.Answer{approval.Approved, approval.Denied}
	out := p.ask(t, r)
	l := list(t)
	for _, a := range []approval.Answer{approval.ApprovedRule, approval.ApprovedForSession} {
		if err := l.Answer("abc-1", a, "", ""); !errors.Is(err, ErrNotOffered) {
			t.Errorf("%s: %v", a, err)
		}
	}
	var none *QuestionIDError
	if err := l.Answer("x", approval.Approved, "", ""); !errors.As(err, &none) {
		t.Error(err)
	}
	if err := l.Answer("abc-1", approval.Denied, "", ""); err != nil || (<-out).d.Answer != approval.Denied {
		t.Error(err)
	}
}

// TestTerminal: what the terminal says counts, and where there is none a question waits as long as
// it was told to.
func TestTerminal(t *testing.T) {
	home(t)
	p := newPost(t, approval.Fixed(approval.Decision{Answer: approval.Approved}))
	if d, err := p.Approve(t.Context(), request("abc-1")); err != nil || d.Answer != approval.Approved {
		t.Errorf("answered on the terminal: %+v, %v", d, err)
	}
	if l := list(t); len(l.Pending) != 0 {
		t.Errorf("%+v", l)
	}
	p = newPost(t, passes)
	p.Wait = 0
	if d, err := p.Approve(t.Context(), request("abc-2")); !errors.Is(err, approval.ErrPass) {
		t.Errorf("no one to ask: %+v, %v", d, err)
	}
	p = newPost(t, passes)
	p.Wait = time.Millisecond
	if d, err := p.Approve(t.Context(), request("abc-3")); err != nil || d.Answer != approval.TimedOut {
		t.Errorf("no answer: %+v, %v", d, err)
	}
	p = newPost(t, passes)
	p.Before = approval.Fixed(approval.Decision{Answer: approval.Abort})
	if d, err := p.Approve(t.Context(), request("abc-4")); err != nil || d.Answer != approval.Abort {
		t.Errorf("a program answers first: %+v, %v", d, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := newPost(t, passes).Approve(ctx, request("abc-5")); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %+v, %v", d, err)
	}
}

// TestAnnounced: who looks for a question that was announced waits for it, and for no other.
func TestAnnounced(t *testing.T) {
	home(t)
	p := newPost(t, passes)
	p.Announce("abc-1")
	answered := make(chan error, 1)
	go func() {
		l, err := ListQuestions("")
		if err == nil {
			err = l.Answer("abc", approval.Approved, "", "")
		}
		answered <- err
	}()
	if d, err := p.Approve(t.Context(), request("abc-1")); err != nil || d.Answer != approval.Approved {
		t.Errorf("%+v, %v", d, err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
	p.Announce("abc-1") // the event may come late
	p.await(t.Context())
	p.Announce("abc-2")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.await(ctx) // a question that is never asked
	q := newPost(t, passes)
	q.Announce("abc-3")
	q.Before = approval.Func(func(ctx context.Context, _ *approval.Request) (approval.Decision, error) {
		if q.await(t.Context()); len(q.questions.Pending()) != 0 {
			t.Error("others can answer before the program")
		}
		return approval.Decision{Answer: approval.Abort}, nil
	})
	if d, err := q.Approve(t.Context(), request("abc-3")); err != nil || d.Answer != approval.Abort {
		t.Errorf("%+v, %v", d, err)
	}
	q.Announce("abc-4")
	alone := q.Alone(approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
		q.await(t.Context())
		return approval.Decision{Answer: approval.Approved}, nil
	}))
	if d, err := alone.Approve(t.Context(), request("abc-4")); err != nil || d.Answer != approval.Approved {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestSession: approvals for the session are listed and forgotten.
func TestSession(t *testing.T) {
	home(t)
	p := newPost(t, passes)
	var memory approval.Memory
	p.Remembered, p.Revoke = memory.List, memory.Revoke
	r := request("abc-1")
	r.Key = "k"
	changed := p.questions.Changed()
	done := make(chan error, 1)
	go func() { _, _, err := memory.Ask(t.Context(), p, r); done <- err }()
	<-changed
	if err := list(t).Answer("abc-1", approval.ApprovedForSession, "", ""); err != nil || <-done != nil {
		t.Fatal(err)
	}
	l := list(t)
	if len(l.Session) != 1 || l.Session[0].ID != "abc-1" || !slices.Equal(l.Session[0].Argv, r.Args) ||
		l.Session[0].Time.IsZero() {
		t.Fatalf("%+v", l)
	}
	if rule, err := l.Forget("abc"); err != nil || rule != "" || len(memory.List()) != 0 {
		t.Errorf("%v, %v", err, memory.List())
	}
	if _, err := l.Forget("abc"); !errors.Is(err, ErrUnknownQuestion) {
		t.Errorf("forgotten twice: %v", err)
	}
}

// TestForgetRule: the line goes from the file, once.
func TestForgetRule(t *testing.T) {
	home(t)
	file := filepath.Join(t.TempDir(), "default.rules")
	const line = `prefix_rule(pattern=["a", "b"], decision="allow")`
	if err := os.WriteFile(file, []byte("# mine\n"+line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := ListQuestions(file)
	if err != nil || len(l.Rules) != 1 {
		t.Fatalf("%+v, %v", l, err)
	}
	if rule, err := l.Forget("rule-"); err != nil || rule != line {
		t.Error(err)
	}
	if _, err := l.Forget("rule-"); !errors.Is(err, ErrUnknownQuestion) {
		t.Errorf("forgotten twice: %v", err)
	}
	if text, err := os.ReadFile(file); string(text) != "# mine\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := ListQuestions(filepath.Dir(file)); err == nil {
		t.Error("a directory has rules")
	}
}

// directory is where the sockets are; it is made by a Post.
func directory(t *testing.T) string {
	t.Helper()
	p := newPost(t, passes)
	p.open()
	p.Close()
	dir := filepath.Join(os.Getenv("XDG_STATE_HOME"), "sallyport", socketsDir)
	if names, err := os.ReadDir(dir); err != nil || len(names) != 0 {
		t.Fatalf("%v, %v", names, err)
	}
	return dir
}

func listenAt(t *testing.T, path string) *net.UnixListener {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	t.Cleanup(func() { l.Close() })
	return l
}

// TestModes: nothing is open to others.
func TestModes(t *testing.T) {
	home(t)
	p := newPost(t, passes)
	p.open()
	dir := filepath.Join(os.Getenv("XDG_STATE_HOME"), "sallyport", socketsDir)
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	for path, want := range map[string]os.FileMode{dir: os.ModeDir | 0o700,
		filepath.Join(dir, names[0].Name()): os.ModeSocket | 0o600} {
		if info, err := os.Lstat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if l, err := ListQuestions(""); err == nil {
		t.Errorf("a directory that others can enter: %+v", l)
	}
}

// TestStrangers: sockets of the dead are removed; what is no socket of ours is neither used nor
// removed.
func TestStrangers(t *testing.T) {
	home(t)
	dir := directory(t)
	name := func(pid int) string { return fmt.Sprintf("%s/%d-0123456789abcdef.sock", dir, pid) }
	listenAt(t, name(11)).Close() // of a killed process
	target := listenAt(t, filepath.Dir(dir)+"/target")
	if err := errors.Join(os.Symlink(filepath.Dir(dir)+"/target", name(12)),
		os.WriteFile(name(13), nil, 0o600), os.Mkdir(name(14), 0o700),
		os.WriteFile(dir+"/notes", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	l := list(t)
	if len(l.Pending) != 0 || len(l.Silent) != 3 || strings.Contains(fmt.Sprint(l.Silent), "process 11") {
		t.Errorf("%q", l.Silent)
	}
	if _, err := os.Lstat(name(11)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket of a dead process: %v", err)
	}
	for _, n := range []string{name(12), name(13), name(14), dir + "/notes"} {
		if _, err := os.Lstat(n); err != nil {
			t.Error(err)
		}
	}
	if err := target.SetDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if c, err := target.Accept(); err == nil {
		c.Close()
		t.Error("the target of a link was asked")
	}
}

// TestForeign needs root, to give a socket away.
func TestForeign(t *testing.T) {
	testenv.NeedRoot(t)
	home(t)
	name := directory(t) + "/11-0123456789abcdef.sock"
	other := listenAt(t, name)
	if err := os.Lchown(name, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if l := list(t); len(l.Silent) != 1 || !strings.Contains(l.Silent[0], "no socket of this user's") {
		t.Errorf("%q", l.Silent)
	}
	if err := other.SetDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if c, err := other.Accept(); err == nil {
		c.Close()
		t.Error("the socket of another user was asked")
	}
}

// TestNothingElse: who may answer runs nothing in the process that asks, and sees no files of it.
func TestNothingElse(t *testing.T) {
	home(t)
	p := newPost(t, passes)
	p.open()
	_, c := session(t)
	for method, params := range map[string]any{
		"process/start": map[string]any{"processId": "p", "argv": []string{"/bin/true"}, "cwd": "file:///", "env": map[string]string{}, "tty": false},
		"fs/readFile":   map[string]any{"path": "file:///etc/hostname"}, "run/start": map[string]any{"args": []string{"true"}}, "run/list": nil,
		"process/list": nil, "environment/info": nil, "http/request": map[string]any{},
	} {
		var refused *wire.Error
		if err := c.Call(t.Context(), method, params, nil); !errors.As(err, &refused) ||
			refused.Code != wire.CodeNoMethod {
			t.Errorf("%s: %v", method, err)
		}
	}
	if c.Server().Environment != nil {
		t.Errorf("%+v", c.Server().Environment)
	}
}

// TestChanged: an answer is for the question that was shown, also where another one has its ID
// meanwhile.
func TestChanged(t *testing.T) {
	home(t)
	p := newPost(t, passes)
	ctx, withdraw := context.WithCancel(t.Context())
	changed := p.questions.Changed()
	go p.Approve(ctx, request("abc-1")) //nolint:errcheck // it is withdrawn
	<-changed
	l := list(t)
	changed = p.questions.Changed()
	withdraw()
	<-changed
	r := request("abc-1")
	r.Requires = []string{approval.Outside}
	out := p.ask(t, r)
	if err := l.Answer("abc-1", approval.Approved, "", ""); !errors.Is(err, ErrOther) {
		t.Errorf("the answer to another question: %v", err)
	}
	if err := list(t).Answer("abc-1", approval.Approved, "", ""); err != nil ||
		(<-out).d.Answer != approval.Approved {
		t.Error(err)
	}
}

// TestHost: the rule of a question about a host is the host that is offered.
func TestHost(t *testing.T) {
	home(t)
	p := newPost(t, passes)
	r := request("abc-1")
	r.Kind, r.Offers = approval.KindNetwork,
		[]approval.Offer{{Answer: approval.ApprovedHost, Host: "example.com", Protocol: "https"}}
	out := p.ask(t, r)
	l := list(t)
	if !strings.Contains(l.String(), "answers: approve; approve --rule; approve --session; deny\n") {
		t.Errorf("%s", l)
	}
	if err := l.Answer("abc-1", approval.ApprovedRule, "", ""); err != nil {
		t.Fatal(err)
	}
	if got := <-out; got.d.Answer != approval.ApprovedHost || got.d.Host != "example.com" {
		t.Errorf("%+v", got)
	}
}

// TestLarge: questions that no message carries together are listed one after the other.
func TestLarge(t *testing.T) {
	home(t)
	defer func(old time.Duration) { patience = old }(patience)
	patience = time.Minute // a busy machine
	p := newPost(t, passes)
	p.Wait = time.Hour // likewise
	var out [2]<-chan outcome
	for i := range out {
		r := request(fmt.Sprint("abc-", i))
		r.Script = strings.Repeat("x", 6<<20)
		out[i] = p.ask(t, r)
	}
	for i := range out {
		l := list(t)
		if len(l.Pending) != 1 || len(l.Silent) != min(1, len(out)-1-i) {
			t.Fatalf("%d questions, %q", len(l.Pending), l.Silent)
		}
		if err := l.Answer(fmt.Sprint("abc-", i), approval.Approved, "", ""); err != nil ||
			(<-out[i]).err != nil {
			t.Error(err)
		}
	}
}

// TestTwoPosts: each question has its own process.
func TestTwoPosts(t *testing.T) {
	home(t)
	p, q := newPost(t, passes), newPost(t, passes)
	first, second := p.ask(t, request("abc-1")), q.ask(t, request("abd-1"))
	l := list(t)
	if len(l.Pending) != 2 {
		t.Fatalf("%+v", l)
	}
	if err := l.Answer("ab", approval.Approved, "", ""); err == nil {
		t.Error("one of two was answered")
	}
	if err := errors.Join(l.Answer("abd", approval.Approved, "", ""),
		l.Answer("abc", approval.Denied, "", "")); err != nil {
		t.Error(err)
	}
	if a, b := <-first, <-second; a.d.Answer != approval.Denied || b.d.Answer != approval.Approved {
		t.Errorf("%+v, %+v", a, b)
	}
}

// TestNoAnswer: a question for which a command waits is over at once where the program that was asked has no
// answer, no one is in front of a terminal and no time is given for others. It stays open otherwise.
func TestNoAnswer(t *testing.T) {
	for _, test := range []struct {
		name  string
		final bool
		wait  time.Duration
		open  bool
	}{
		{"a program without an answer", true, 0, false},
		{"time for others", true, time.Hour, true},
		{"no program", false, 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			home(t)
			p := newPost(t, passes)
			p.Wait, p.BeforeIsFinal = test.wait, test.final
			if test.final {
				p.Before = passes
			}
			r := request("abc-1")
			r.Waiting, r.WaitMS = true, time.Hour.Milliseconds()
			waiting := make(chan struct{})
			p.Waits = func(*approval.Request, time.Duration, bool) { close(waiting) }
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			over := make(chan error, 1)
			go func() {
				_, err := p.Approve(ctx, r)
				over <- err
			}()
			select {
			case err := <-over:
				if test.open || !errors.Is(err, approval.ErrPass) {
					t.Error(err)
				}
			case <-waiting:
				if cancel(); !test.open {
					t.Error("it stays open")
				}
				if err := <-over; err == nil {
					t.Error("nothing ended it")
				}
			}
		})
	}
}
