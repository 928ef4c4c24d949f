// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A form is what a body is in JSON.
type form interface {
	// value returns the body.
	value() (Body, error)
}

// forms are those of all bodies, by kind.
var forms = map[string]form{
	"judged": judged{}, "approval_requested": requested{}, "approval_decided": decided{}, "retrying": retrying{},
	"granted":        granted{},
	"review_started": review{}, "review_completed": reviewed{}, "sandbox_outcome": outcome{}, "started": started{},
	"output": output{}, "denied": denied{}, "network_decided": record{}, "network_closed": record{},
	"listening": listening{}, "quarantined": quarantined{},
	"exited": exited{}, "survived": survived{}, "recorded": recorded{}, "ended": ended{},
}

// some turns an empty list into nil, as bodies have it.
func some[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return s
}

// duration returns n milliseconds, at most as many as there can be.
func duration(n int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(min(max(n, -most), most)) * time.Millisecond
}

type judged struct {
	Args     []string `json:"argv"`
	Dir      string   `json:"cwd"`
	Decision string   `json:"decision"`
	Reason   string   `json:"reason,omitempty"`
	Rule     *Rule    `json:"rule,omitempty"`
	Review   bool     `json:"strict_review,omitempty"`
	Version  string   `json:"policy_version,omitempty"`
}

func (f judged) value() (Body, error) {
	return Judged{Args: some(f.Args), Dir: f.Dir, Decision: f.Decision, Reason: f.Reason, Rule: f.Rule,
		Review: f.Review, PolicyVersion: f.Version}, nil
}

type requested struct{ approval.Request }

func (f requested) value() (Body, error) {
	q := &f.Request
	q.Args, q.Files, q.Requires, q.Denials, q.Offers, q.Available = some(q.Args), some(q.Files),
		some(q.Requires), some(q.Denials), some(q.Offers), some(q.Available)
	for i := range q.Offers {
		q.Offers[i].Rule = some(q.Offers[i].Rule)
	}
	return ApprovalRequested{q}, nil
}

// A review has the members that both events of a review share.
type review struct {
	ID      string                `json:"id"`
	Request string                `json:"request_id"`
	Status  approval.ReviewStatus `json:"status"`
	Started int64                 `json:"started_at_ms"` // since 1970
	Source  string                `json:"decision_source"`
	Model   string                `json:"model"`
	Shadow  bool                  `json:"shadow"`
	Action  string                `json:"action"`
}

func reviewOf(r *approval.Review, action string) review {
	if action == "" {
		action = r.Request.Action()
	}
	return review{r.ID, r.Request.ID, r.Status, r.Started.UnixMilli(), "agent", r.Model, r.Shadow, action}
}

// of returns the Review.
func (f *review) of() approval.Review {
	return approval.Review{
		ID: f.ID, Request: &approval.Request{ID: f.Request}, Model: f.Model, Shadow: f.Shadow,
		Status: f.Status, Started: time.UnixMilli(f.Started).UTC(),
	}
}

func (f review) value() (Body, error) { return ReviewStarted{f.of(), f.Action}, nil }

type reviewed struct {
	review
	Completed     int64  `json:"completed_at_ms"`
	Attempts      int    `json:"attempts"`
	Outcome       string `json:"outcome,omitempty"`
	Risk          string `json:"risk,omitempty"`
	Authorization string `json:"authorization,omitempty"`
	Rationale     string `json:"rationale,omitempty"`
	Error         string `json:"error,omitempty"`
}

func (f reviewed) value() (Body, error) {
	r := f.of()
	r.Completed, r.Attempts, r.Failure = time.UnixMilli(f.Completed).UTC(), f.Attempts, f.Error
	r.Outcome, r.Risk, r.Authorization, r.Rationale = f.Outcome, f.Risk, f.Authorization, f.Rationale
	return ReviewCompleted{r, f.Action}, nil
}

type decided struct{ ApprovalDecided }

func (f decided) value() (Body, error) {
	f.Rule, f.Evidence = some(f.Rule), some(f.Evidence)
	return f.ApprovalDecided, nil
}

type granted Granted

func (f granted) value() (Body, error) { return Granted(f), nil }

type retrying struct {
	Reason string   `json:"reason"`
	Added  []string `json:"added"`
}

func (f retrying) value() (Body, error) { return Retrying{f.Reason, some(f.Added)}, nil }

type outcome struct {
	Outcome   string           `json:"outcome"`
	Initial   int64            `json:"initial_duration_ms"`
	Escalated *int64           `json:"escalated_duration_ms,omitempty"`
	Mode      string           `json:"mode"`
	Level     string           `json:"level"`
	Evidence  []sandbox.Source `json:"evidence"`
}

func (f outcome) value() (Body, error) {
	b := SandboxOutcome{Outcome: f.Outcome, Initial: duration(f.Initial), Mode: f.Mode, Level: f.Level,
		Evidence: some(f.Evidence)}
	if f.Escalated != nil && f.Outcome == OutcomeEscalated {
		b.Escalated = duration(*f.Escalated)
	}
	return b, nil
}

type started struct {
	Sandbox  Sandbox  `json:"sandbox"`
	Withheld []string `json:"withheld,omitempty"`
}

func (f started) value() (Body, error) {
	s := &f.Sandbox
	s.Mechanism, s.Weaker, s.Hidden, s.Replaced, s.Published = some(s.Mechanism), some(s.Weaker),
		some(s.Hidden), some(s.Replaced), some(s.Published)
	return Started{f.Sandbox, some(f.Withheld)}, nil
}

type output struct {
	Stream        string `json:"stream"`
	Number        uint64 `json:"number"`
	Offset        uint64 `json:"offset"`
	Text          string `json:"text"`
	Data          []byte `json:"data,omitempty"`
	DroppedEvents uint64 `json:"dropped_events,omitempty"`
	DroppedBytes  uint64 `json:"dropped_bytes,omitempty"`
}

func (f output) value() (Body, error) {
	b := Output{Number: f.Number, Offset: f.Offset, Data: some(f.Data), DroppedEvents: f.DroppedEvents,
		DroppedBytes: f.DroppedBytes}
	switch f.Stream {
	case executor.Stdout.String():
	case executor.Stderr.String():
		b.Stream = executor.Stderr
	default:
		return nil, fmt.Errorf("the stream %q is not known; use stdout or stderr", f.Stream)
	}
	if len(f.Data) == 0 {
		b.Data = some([]byte(f.Text))
	}
	return b, nil
}

type denied sandbox.Denial

func (f denied) value() (Body, error) { return Denied{sandbox.Denial(f)}, nil }

type record network.Record

func (f record) value() (Body, error) { return Network{network.Record(f)}, nil }

type listening struct {
	Port uint16 `json:"port"`
}

func (f listening) value() (Body, error) { return Listening(f), nil }

type quarantined executor.Quarantined

func (f quarantined) value() (Body, error) { return Quarantined{executor.Quarantined(f)}, nil }

type exited struct {
	Code      int                 `json:"exit_code"`
	Signal    int                 `json:"signal"`
	Survivors []executor.Survivor `json:"survivors"`
	Duration  int64               `json:"duration_ms"`
}

func (f exited) value() (Body, error) {
	return Exited{f.Code, f.Signal, some(Listed(f.Survivors)), duration(f.Duration)}, nil
}

type survived struct {
	Survivors int                 `json:"survivors"`
	List      []executor.Survivor `json:"survivor_list"`
	By        string              `json:"survivors_by,omitempty"`
}

func (f survived) value() (Body, error) {
	const most = 1 << 20 // a larger number of processes is not one of ours
	if f.Survivors < len(f.List) || f.Survivors > most {
		return nil, errors.New("the number of its survivors is not one of this list")
	}
	return Survived{some(append(f.List, make([]executor.Survivor, f.Survivors-len(f.List))...)), f.By}, nil
}

type recorded Recorded

func (f recorded) value() (Body, error) { return Recorded(f), nil }

type ended struct {
	ExitCode int    `json:"exit_code"`
	End      string `json:"end"`
	Error    string `json:"error,omitempty"`
	Duration int64  `json:"duration_ms"`
}

func (f ended) value() (Body, error) {
	return Ended{f.ExitCode, f.End, f.Error, duration(f.Duration)}, nil
}
