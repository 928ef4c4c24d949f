// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// questionTime is how long a question waits for an answer.
const questionTime = 15 * time.Minute

// maxStarts is how many starts that were asked about are remembered, for calls that are repeated.
const maxStarts = 1024

// A start is what one exec has begun: it is judged, asked about, runs or has ended. It outlives the call.
type start struct {
	server   *Server
	run      *runs.Run
	identity string             // of what was asked for
	cancel   context.CancelFunc // prevents the start
	settled  chan struct{}      // closed when it runs, or does not

	// These are written before settled is closed.
	result *sallyport.Result // of a command that does not run
	err    error

	mu      sync.Mutex
	asked   *question     // that is open, for callers; nil for none
	expired bool          // no one answered
	changed chan struct{} // closed when a question is asked
	elicits *sdk.ServerSession
	within  context.Context //nolint:containedctx // of the call in which the client is asked
}

// A question is one that a call answers, or someone elsewhere.
type question struct {
	request *approval.Request
	expires time.Time
}

// begin starts what a call asks for. Elicits is nil where the client is not asked within a call.
func (s *Server) begin(ctx context.Context, x *execution, elicits *sdk.ServerSession) (*start, error) {
	run, err := s.runs.Reserve(owner)
	if err != nil {
		return nil, err
	}
	st := &start{server: s, run: run, identity: x.identity, settled: make(chan struct{}),
		changed: make(chan struct{}), elicits: elicits, within: context.WithoutCancel(ctx)}
	life, cancel := context.WithCancel(s.life)
	st.cancel = cancel
	q := &runs.Request{Args: x.flags, Dir: s.opts.Dir, Workdir: x.workdir, Environ: s.opts.Environ,
		Trace: x.trace, Patch: x.patch, OpenStdin: x.opens, Approver: approval.Func(st.approve)}
	if !slices.Contains(x.flags, escalate) {
		q.Hidden, q.Stays = s.opts.Hidden, x.env
	}
	if s.opts.Stage != "" {
		q.Stage = &executor.Staging{Name: s.opts.Stage}
		// commands at the same time share a sandbox, which is what a stage is for
		q.Named = &runs.Named{Name: s.opts.Stage, Else: true}
	}
	if x.tty {
		q.TTY, q.Screen = &executor.Size{Cols: 80, Rows: 24}, true
	}
	s.work.Go(func() {
		defer cancel()
		st.result, st.err = run.Start(life, q)
		if st.result == nil && st.err == nil {
			st.feed(x)
		}
		close(st.settled)
	})
	return st, nil
}

// feed gives the command its input.
func (st *start) feed(x *execution) {
	if x.stdin != "" {
		_, _ = st.run.Write("", []byte(x.stdin)) // a command that reads less of it is none the worse
	}
	if x.opens && !x.keeps {
		_, _ = st.run.CloseInput()
	}
}

// stop ends what was begun: it does not start any more, or is terminated.
func (st *start) stop() {
	st.cancel()
	st.server.work.Go(func() {
		<-st.settled
		if st.result == nil && st.err == nil {
			_, _ = st.run.Terminate(context.Background()) // without an end of the context there is no error
		}
	})
}

// approve asks about the start, or later about what the command was denied.
func (st *start) approve(ctx context.Context, r *approval.Request) (approval.Decision, error) {
	if st.elicits != nil {
		return st.elicit(ctx, r)
	}
	most := questionTime
	if r.Waiting {
		most = time.Duration(r.WaitMS) * time.Millisecond
	}
	q := &question{request: r, expires: time.Now().Add(most)}
	st.server.remember(r.ID, st)
	st.open(q)
	defer st.close(q)
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-timer.C:
		st.mu.Lock()
		defer st.mu.Unlock()
		st.expired = true
		return approval.Decision{Answer: approval.TimedOut, Source: approval.FromUser}, nil
	case <-ctx.Done():
		return approval.Decision{}, context.Cause(ctx)
	}
}

func (st *start) open(q *question) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.asked = q
	close(st.changed)
	st.changed = make(chan struct{})
}

func (st *start) close(q *question) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.asked == q {
		st.asked = nil
	}
}

// asks returns the open question, if there is one, and a channel that is closed when one comes.
func (st *start) asks() (*question, <-chan struct{}) {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.asked, st.changed
}

// elicit asks the client within a call. The end of ctx withdraws the question.
func (st *start) elicit(ctx context.Context, r *approval.Request) (approval.Decision, error) {
	asking, cancel := context.WithCancelCause(st.within)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	res, err := st.elicits.Elicit(asking, form(r))
	switch {
	case ctx.Err() != nil:
		return approval.Decision{}, context.Cause(ctx)
	case err != nil:
		d := r.Decide(approval.Denied)
		d.Source, d.Message = approval.FromUser, "the client gave no valid answer: "+text.Line(err.Error())
		return d, nil
	}
	return decision(res, r), nil
}

// askedInput is the name of the question among the inputs that a client of the revision 2026-07-28 gives.
const askedInput = "approval"

// form returns the question for a person.
func form(r *approval.Request) *sdk.ElicitParams {
	words := make([]string, len(r.Available))
	for i, a := range r.Available {
		words[i] = a.String()
	}
	asked := map[string]any{"decision": map[string]any{
		"type": "string", "title": "Decision", "enum": words,
		"description": "What sallyport does with the command.",
	}}
	if dir := r.Directory(); dir != "" {
		asked["path"] = map[string]any{
			"type": "string", "title": "Path", "enum": []string{r.Offers[0].Path, dir},
			"description": "What an approval opens: the path (the default), or all below the directory.",
		}
	}
	return &sdk.ElicitParams{Mode: "form", Message: message(r), RequestedSchema: map[string]any{
		"type": "object", "required": []string{"decision"}, "properties": asked,
	}}
}

// message shows everything that an answer is about. Words of others are escaped.
func message(r *approval.Request) string {
	said := "sallyport asks whether a command may run.\n"
	if r.Runs > 0 {
		said = fmt.Sprintf("sallyport asks about a command that ran %d times already.\n", r.Runs)
	}
	if r.Waiting {
		said = "sallyport asks about a command that is waiting for the answer. It has not been repeated.\n"
	}
	row := func(name, value string) {
		if value != "" {
			said += name + ": " + text.Line(value) + "\n"
		}
	}
	if r.Script != "" {
		row("Script", r.Script)
	} else {
		row("Command", fmt.Sprintf("%q", r.Args))
	}
	row("Directory", r.Dir)
	row("Program", r.Program)
	for _, line := range r.Given() {
		said += line + "\n"
	}
	row("Reason", r.Reason)
	row("The caller says", r.Justification)
	for _, need := range r.Requires {
		row("Asks for", need)
	}
	for _, d := range r.Denials {
		row("Blocked", fmt.Sprintf("%s %s%s", d.Op, d.Path, d.Addr))
	}
	for _, o := range r.Offers {
		if o.Path == "" {
			row("The answer "+o.Answer.String()+" remembers", fmt.Sprintf("%q %s", o.Rule, o.Host))
		}
	}
	return said
}

// decision reads an answer. Everything that is not one of the offered words denies.
func decision(res *sdk.ElicitResult, r *approval.Request) approval.Decision {
	var said approval.Answer
	word, _ := res.Content["decision"].(string)
	d, why := r.Decide(approval.Denied), "the user said "+text.Word(res.Action)
	if res.Action == "accept" {
		why = "the answer has no decision that was offered"
		if said.UnmarshalText([]byte(word)) == nil && said != approval.TimedOut {
			path, _ := res.Content["path"].(string)
			if chosen := r.DecideOn(said, path); r.Takes(&chosen) {
				d, why = chosen, ""
			}
		}
	}
	d.Source, d.Message = approval.FromUser, why
	return d
}

// errExpired is the error for an approval that no one gave in time.
var errExpired = errors.New("it has expired; call exec again without approval_id to ask again")

// remember lets a call find a start by the ID of a question.
func (s *Server) remember(id string, st *start) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts.Add(id, st)
}

// recall returns the start with the ID of a question, for a call that asks for the same.
func (s *Server) recall(id, identity string) (*start, error) {
	s.mu.Lock()
	st, ok := s.starts.Find(id)
	s.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("unknown approval_id %s; call exec without it to ask",
			text.Word(shortened(id, 100)))
	}
	st.mu.Lock()
	expired := st.expired
	st.mu.Unlock()
	switch {
	case st.identity != identity:
		return nil, fmt.Errorf(
			"the arguments are not those of approval %s, which stays open; repeat them, or "+
				"call without approval_id", text.Word(id))
	case expired:
		return nil, fmt.Errorf("approval %s: %w", text.Word(id), errExpired)
	}
	return st, nil
}
