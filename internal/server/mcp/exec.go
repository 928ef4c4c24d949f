// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"errors"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// newRevision is the revision of the protocol from which on servers ask in answers, and not by requests.
const newRevision = "2026-07-28"

// asksBy returns how a client can be asked: within a call, or in the answer to one. Both are nil where
// calls are repeated with an approval_id.
func (s *Server) asksBy(req *sdk.CallToolRequest) (within *sdk.ServerSession, inAnswer bool) {
	caps := req.ClientCapabilities()
	if s.opts.ByCall || caps == nil || caps.Elicitation == nil ||
		caps.Elicitation.Form == nil && caps.Elicitation.URL != nil {
		return nil, false
	}
	if req.ProtocolVersion() >= newRevision {
		return nil, true
	}
	return req.Session, false
}

// exec runs a script.
func (s *Server) exec(c *call) (*answer, error) {
	x := c.args.execution(s)
	if c.args.err != nil {
		return nil, c.args.err
	}
	return s.perform(c, x)
}

// perform starts what a call asks for and waits for it, or goes on with what was asked about.
func (s *Server) perform(c *call, x *execution) (*answer, error) {
	within, inAnswer := s.asksBy(c.req)
	id := x.approval
	if inAnswer && c.req.Params.RequestState != "" {
		id = c.req.Params.RequestState
	}
	var st *start
	var err error
	repeated := id != ""
	if repeated {
		st, err = s.recall(id, x.identity)
	} else {
		x.trace.Parent, _ = c.req.Params.Meta["traceparent"].(string) // as the specification names them
		x.trace.State, _ = c.req.Params.Meta["tracestate"].(string)
		st, err = s.begin(c.ctx, x, within)
	}
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(c.ctx, st.stop)()
	lost := repeated && s.answered(c, st, id)
	a, err := st.follow(c, x, repeated, inAnswer)
	if err == nil && lost {
		a.say("the answer of this call was not used: the question was answered elsewhere before")
	}
	return a, err
}

// answered gives the answer that comes with a repeated call, and reports whether it does not count, for there
// was an earlier one. What is not on offer was made a denial before.
func (s *Server) answered(c *call, st *start, id string) (lost bool) {
	res, ok := c.req.Params.InputResponses[askedInput].(*sdk.ElicitResult)
	if !ok {
		return false
	}
	q, _ := st.asks()
	if q == nil || q.request.ID != id {
		return true
	}
	err := st.run.Answer(id, decision(res, q.request))
	st.close(q)
	return err != nil
}

// follow waits for a start as a call says, and returns the answer.
func (st *start) follow(c *call, x *execution, repeated, inAnswer bool) (*answer, error) {
	deadline := time.Now().Add(x.yield)
	ctx, cancel := context.WithDeadline(c.ctx, deadline)
	defer cancel()
	if st.elicits != nil { // a person may take long
		ctx = c.ctx
	}
	var known *question // for whose answer the call waits
	if repeated && !inAnswer {
		known, _ = st.asks()
	}
	for {
		q, asked := st.asks()
		if q != nil && q != known {
			return st.needed(q, inAnswer), nil
		}
		select {
		case <-st.settled:
			left := time.Until(deadline)
			if st.elicits != nil {
				left = x.yield
			}
			if a, err := st.outcome(c, x, left, known); !errors.Is(err, errAsked) {
				return a, err
			}
		case <-asked:
		case <-ctx.Done():
			if c.ctx.Err() != nil {
				return nil, context.Cause(c.ctx)
			}
			known, ctx = nil, c.ctx // it is asked about, or being judged, which is not long
		}
	}
}

// errAsked ends a wait for a run about which a question is asked.
var errAsked = errors.New("a question is asked")

// outcome waits for a run that was started, or tells why there is none. The error is errAsked where another
// question than a known one is open, or that one is when the time is over.
func (st *start) outcome(c *call, x *execution, left time.Duration, known *question) (*answer, error) {
	switch {
	case st.err != nil:
		return nil, st.err
	case st.result != nil && (st.result.End == sallyport.EndUnavailable ||
		st.result.End == sallyport.EndFailed):
		return nil, errors.New(st.result.Error)
	case st.result != nil:
		return notRun(st.run.ID(), st.result, x.tokens)
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		for {
			q, asked := st.asks()
			if q != nil && q != known {
				cancel(errAsked)
				return
			}
			select {
			case <-asked:
			case <-ctx.Done():
				return
			}
		}
	}()
	a, err := await(ctx, st.run, &x.until, max(left, 0), 0, new(uint64), x.tokens)
	asked := errors.Is(context.Cause(ctx), errAsked)
	cancel(nil)
	<-watching
	if err != nil && asked {
		return nil, errAsked
	}
	if q, _ := st.asks(); err == nil && q != nil && a.facts["state"] == stateRunning {
		return st.needed(q, false), nil
	}
	return a, err
}

// notRun returns the answer about a command that does not run.
func notRun(run string, res *sallyport.Result, tokens int) (*answer, error) {
	a, err := newAnswer(run, res)
	if err == nil {
		delete(a.facts, "error")
		a.facts["output"], a.facts["reason"] = shortened(res.Error, bytesPerToken*tokens), "exit"
		a.facts["original_token_count"] = text.TokenCount(len(res.Error))
	}
	return a, err
}

// await waits for a run, and shows its output from an offset on.
func await(ctx context.Context, r *runs.Run, until *runs.Conditions, longest time.Duration, from uint64,
	match *uint64, tokens int) (*answer, error) {
	u, err := until.Until(longest)
	if err != nil {
		return nil, err
	}
	u.From = match
	got, err := r.Wait(ctx, u)
	if err != nil {
		return nil, err
	}
	a, err := newAnswer(r.ID(), got.Result)
	if err != nil {
		return nil, err
	}
	a.facts["reason"] = reasons[got.Reason]
	if got.Port != 0 {
		a.facts["port"] = got.Port
	}
	a.show(r, from, tokens)
	if got.Result == nil {
		a.facts["cwd"] = r.Info().Dir
		a.say("running (%s); session_id %s, cursor %s: call wait, write, read or signal", a.facts["reason"],
			r.ID(),
			a.facts["cursor"])
	}
	return a, nil
}

// reasons are the words of answers for those of waits.
var reasons = map[sallyport.Reason]string{
	sallyport.ReasonExited: "exit", sallyport.ReasonDeadline: "time", sallyport.ReasonInput: "input",
	sallyport.ReasonPassword: "input", sallyport.ReasonMatch: "match", sallyport.ReasonQuiet: "quiet",
	sallyport.ReasonPort: "port",
}

// needed returns the answer that a question is open.
func (st *start) needed(q *question, inAnswer bool) *answer {
	r := q.request
	a := &answer{facts: map[string]any{"state": stateApproval, "exit_code": nil, "output": "",
		"truncated":     false,
		"omitted_bytes": 0, "original_token_count": 0, "denials": []string{},
		"approval": map[string]any{"id": r.ID, "kind": r.Kind, "reason": shortened(r.Reason, maxFacts/4),
			"requires": few(r.Requires), "offers": offered(r), "waiting": r.Waiting,
			"expires": q.expires.UTC().Format(time.RFC3339)}}}
	if inAnswer {
		a.input, a.state = form(r), r.ID
		return a
	}
	a.say("approval needed: %s", shortened(r.Reason, maxFacts/4))
	for _, need := range few(r.Requires) {
		a.say("asks for: %s", need)
	}
	a.say("Tell the user what you want to run and why, and to run: sallyport approve %s", r.ID)
	if r.Waiting {
		a.say("The command is waiting until %s, and is not repeated.", q.expires.UTC().Format(time.RFC3339))
	}
	a.say("Then call exec again with the same arguments and approval_id %q. It runs once.", r.ID)
	return a
}

// few returns the first elements of a list, shortened.
func few(list []string) []string {
	const most, long = 8, 160
	out := []string{}
	for _, s := range list[:min(len(list), most)] {
		out = append(out, shortened(s, long))
	}
	return out
}

// offered are the answers that a question takes.
func offered(r *approval.Request) []string {
	out := make([]string, len(r.Available))
	for i, a := range r.Available {
		out[i] = a.String()
	}
	return out
}
