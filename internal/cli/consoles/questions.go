// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package consoles

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/console"
	"github.com/sallyport-dev/sallyport/internal/server/listen"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// questions answers the methods about open questions of all processes of this user.
type questions struct{ watch *listen.QuestionWatch }

// An asked is an open question. The member names stay.
type asked struct {
	ID      string          `json:"id"`
	Digest  string          `json:"digest"`
	Request json.RawMessage `json:"request"` // what an approver program gets
	Source  string          `json:"source"`  // which process asks
	RunID   string          `json:"runId,omitempty"`
	Expires int64           `json:"expiresAtMs,omitempty"`
}

// maxWait is how long a request waits for a change at most, in milliseconds.
const maxWait = 600_000

// waitOf is how long a request waits for a change.
func waitOf(p *wire.ListWait) time.Duration {
	return time.Duration(min(p.WaitMs, maxWait)) * time.Millisecond
}

// list is question/list, the newest first. With since it waits for a change.
func (q questions) list(ctx context.Context, params json.RawMessage) (any, error) {
	var p wire.ListWait
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, waitOf(&p))
	defer cancel()
	list, version := q.watch.Listing(ctx, p.Since)
	answer := struct {
		Questions []asked                  `json:"questions"`
		Approved  []listen.QuestionSession `json:"approved"`
		Silent    []string                 `json:"silent"`
		Version   string                   `json:"version"`
	}{[]asked{}, list.Session, list.Silent, version}
	for _, one := range slices.Backward(list.Pending) {
		answer.Questions = append(answer.Questions, asked{one.Request.ID, one.Digest, one.Text,
			"process " + strconv.Itoa(one.PID), one.RunID, one.Expires})
	}
	return answer, nil
}

// answer is question/answer.
func (q questions) answer(_ context.Context, params json.RawMessage) (any, error) {
	var p wire.QuestionAnswer
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	p.Source = string(approval.FromConsole)
	return struct{}{}, refused(q.watch.Answer(&p))
}

// forget is question/forget.
func (q questions) forget(_ context.Context, params json.RawMessage) (any, error) {
	return forget("", params)
}

// forget has a process forget what it remembers, or removes a rule from a file; empty is none.
func forget(file string, params json.RawMessage) (any, error) {
	var p wire.QuestionID
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	list, err := listen.ListQuestions(file)
	if err == nil {
		err = list.Forget(p.ID)
	}
	return struct{}{}, refused(err)
}

// refused turns an error of a process that asks into one for the page.
func refused(err error) error {
	for known, reason := range map[error]runs.Reason{listen.ErrUnknownQuestion: runs.UnknownQuestion,
		listen.ErrNotOffered: runs.NotOffered, listen.ErrOther: runs.OtherQuestion} {
		if !errors.Is(err, known) {
			continue
		}
		e := console.Refused(wire.CodeInvalidRequest, err.Error(), string(reason))
		var late *listen.AnsweredError
		if errors.As(err, &late) && late.By != "" {
			e.Data, _ = json.Marshal(map[string]any{"reason": reason, "by": late.By}) // words always encode
		}
		return e
	}
	return err
}
