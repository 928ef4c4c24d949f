// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package consoles

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/console"
	"github.com/sallyport-dev/sallyport/internal/server/listen"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// questions answers the methods about open questions of all processes of this user.
type questions struct{}

// An asked is an open question. The member names stay.
type asked struct {
	ID      string            `json:"id"`
	Digest  string            `json:"digest"`
	Request *approval.Request `json:"request"` // what an approver program gets
	Source  string            `json:"source"`  // which process asks
}

func (questions) list(context.Context, json.RawMessage) (any, error) {
	list, err := listen.ListQuestions("")
	if err != nil {
		return nil, err
	}
	answer := struct {
		Questions []asked                  `json:"questions"`
		Approved  []listen.QuestionSession `json:"approved"`
		Silent    []string                 `json:"silent"`
	}{[]asked{}, list.Session, list.Silent}
	for _, q := range list.Pending {
		answer.Questions = append(answer.Questions,
			asked{q.Request.ID, q.Digest(), q.Request, "process " + strconv.Itoa(q.PID)})
	}
	return answer, nil
}

func (questions) answer(_ context.Context, params json.RawMessage) (any, error) {
	var p wire.QuestionAnswer
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	list, err := listen.ListQuestions("")
	if err != nil {
		return nil, err
	}
	for _, q := range list.Pending {
		if q.Request.ID == p.ID {
			return struct{}{}, refused(q.Decide(p.Digest, p.Decision, p.Message, p.Path))
		}
	}
	return nil, refused(listen.ErrUnknownQuestion)
}

func (questions) forget(_ context.Context, params json.RawMessage) (any, error) {
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
		if errors.Is(err, known) {
			return console.Refused(wire.CodeInvalidRequest, err.Error(), string(reason))
		}
	}
	return err
}
