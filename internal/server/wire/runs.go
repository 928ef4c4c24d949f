// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"

	"github.com/sallyport-dev/sallyport/approval"
)

// A Caller is a Client, for requests about runs.
type Caller interface {
	Call(ctx context.Context, method string, params, result any) error
	Repeat(ctx context.Context, method string, params, result any) error
}

const (
	// runMethods begins the names of methods about runs, and startRun is the one that starts them.
	runMethods = "run/"
	startRun   = runMethods + "start"
)

// StartRun starts a run and returns its ID, or the JSON form of the result of a command that does not run.
// After a cut it asks again, which starts nothing twice; a run that is of use to one connection only is not
// asked for on another. The end of ctx prevents the start, or ends the run if it came too late for that.
func StartRun(ctx context.Context, c Caller,
	params *RunStart) (id string, result json.RawMessage, err error) {
	p, call := *params, c.Call
	if !p.Transient {
		p.StartID, call = rand.Text(), c.Repeat
	}
	var got struct {
		RunStartResult
		Result json.RawMessage `json:"result"`
	}
	switch err := call(ctx, startRun, &p, &got); {
	case err != nil:
		return "", nil, err
	case !got.Started:
		return "", got.Result, nil
	case got.RunID == "":
		return "", nil, errNoID
	}
	if ctx.Err() == nil {
		return got.RunID, nil, nil
	}
	if err := RemoveRun(context.WithoutCancel(ctx), c, got.RunID); err != nil {
		return "", nil, err
	}
	return "", nil, context.Cause(ctx)
}

// RemoveRun terminates a run, if it is alive, and has the server forget it. It blocks until then. That
// the run is not known is an error, unless the answer to a first request was lost.
func RemoveRun(ctx context.Context, c Caller, id string) error {
	const method, unknown = "run/remove", "unknownRun"
	p := RunParams{RunID: id}
	err := c.Call(ctx, method, p, nil)
	if lost := new(TransportError); !errors.As(err, &lost) || !lost.Sent {
		return err
	}
	if err = c.Repeat(ctx, method, p, nil); RefusalOf(err).Reason == unknown {
		return nil
	}
	return err
}

// errNoID is for a run that could not be reached.
var errNoID = errors.New("the server started a run and did not tell its ID")

// errEmptyPart ends the read of a result that would never be complete.
var errEmptyPart = errors.New("the server sent a part of a result that is empty")

// FetchRunResult returns the JSON form of the result of a run that has ended, with or without its output.
// With it, it comes in parts: one message may not carry it.
func FetchRunResult(ctx context.Context, c Caller, id string, output bool) (json.RawMessage, error) {
	var text []byte
	for {
		var got struct {
			RunResult
			Result json.RawMessage `json:"result"`
		}
		params := map[string]any{"runId": id, "output": output}
		if output {
			params["from"] = len(text)
		}
		if err := c.Repeat(ctx, "run/result", params, &got); err != nil {
			return nil, err
		}
		if got.Result != nil { // all of it, also from servers that know no parts
			return got.Result, nil
		}
		text = append(text, got.Part...)
		switch {
		case got.Complete:
			return text, nil
		case len(got.Part) == 0:
			return nil, errEmptyPart
		}
	}
}

// A Refusal is why a server refused a request about a run: the data of its error. The zero Refusal says
// nothing.
type Refusal struct {
	Reason string `json:"reason"`             // a word
	Taken  int    `json:"taken,omitempty"`    // bytes of a write
	Exit   int    `json:"exitCode,omitempty"` // of "sallyport run" for a run that is invalid
	// By is who has answered a question that is not open any more, such as "user", "console" or "timeout".
	By string `json:"by,omitempty"`
	// Session is the ID of the one that has made a start, for the reason started.
	Session string `json:"session,omitempty"`
}

// ReasonLost is the [Refusal.Reason] of a request about what a machine had that was lost: what became of it
// is not known, also whether a start was performed.
const ReasonLost = "lost"

// RefusalOf returns what an error says.
func RefusalOf(err error) (r Refusal) {
	var answer *Error
	if errors.As(err, &answer) {
		_ = json.Unmarshal(answer.Data, &r) // other errors have other data, or none
	}
	return r
}

// AnswerApproval returns the [ClientOptions.OnRequest] that has an approver answer the questions of a server
// about runs.
func AnswerApproval(a approval.Approver) func(context.Context, string, json.RawMessage) (any, error) {
	return func(ctx context.Context, method string, params json.RawMessage) (any, error) {
		if method != MethodApprove {
			return nil, &Error{Code: CodeNoMethod, Message: "unknown method " + method}
		}
		var asked struct {
			Request approval.Request `json:"request"`
		}
		if err := json.Unmarshal(params, &asked); err != nil {
			return nil, &Error{Code: CodeInvalidParams, Message: err.Error()}
		}
		d, err := approval.Ask(ctx, a, &asked.Request)
		if errors.Is(err, approval.ErrPass) {
			return RunApproval{Decision: "none", Message: "there is no terminal to ask on"}, nil
		}
		if err != nil {
			return nil, err
		}
		return RunApproval{Decision: d.Answer.String(), Message: d.Message, Path: d.Path}, nil
	}
}
