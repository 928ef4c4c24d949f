// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"time"
)

// The methods question/* are an extension: open questions of runs, or of the process that serves.

// QuestionList is the result of question/list, each list the oldest first. They must not be nil.
type QuestionList struct {
	Questions []Question `json:"questions"`
	Approved  []Approved `json:"approved"` // for the session
	Omitted   int        `json:"omitted"`  // how many questions the message has no room for
	// Answered are the last questions that have their answer, the oldest first.
	Answered []Answered `json:"answered,omitempty"`
	// Version changes with a question that comes or goes, or with its limit. It is empty of older servers.
	Version string `json:"version,omitempty"`
}

// Question is an open question.
type Question struct {
	RunID   string          `json:"runId,omitempty"` // empty for a question of no run of a server
	Digest  string          `json:"digest"`          // identifies what Request says; an answer has it
	Request json.RawMessage `json:"request"`         // what an approver program gets
	// Expires is when it is denied without an answer, in milliseconds since 1970; 0 for no known limit.
	Expires int64 `json:"expiresAtMs,omitempty"`
}

// Answered is a question that has its answer.
type Answered struct {
	ID string `json:"id"`
	By string `json:"by"` // who was first, as of [Refusal]
}

// Approved is an approval for the session that is remembered.
type Approved struct {
	ID       string    `json:"id"` // of its question
	Argv     []string  `json:"argv"`
	CWD      string    `json:"cwd"`
	Requires []string  `json:"requires"`
	Time     time.Time `json:"time"` // when it was given
}

// QuestionAnswer are the parameters of question/answer.
type QuestionAnswer struct {
	_        struct{} `rule:"name=QuestionAnswerParams"`
	ID       string   `json:"id" rule:"need"`
	Digest   string   `json:"digest" rule:"need"`
	Decision string   `json:"decision" rule:"need"`
	Message  string   `json:"message,omitempty"`
	Path     string   `json:"path,omitempty"` // of the offer; empty for the first one
	// who answers: "user", which empty is as well, or "console"
	Source string `json:"source,omitempty"`
}

// QuestionID are the parameters of question/forget.
type QuestionID struct {
	_  struct{} `rule:"name=QuestionForgetParams"`
	ID string   `json:"id" rule:"need"`
}
