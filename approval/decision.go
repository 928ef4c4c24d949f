// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"time"
)

// An Answer is what an approver says. The zero Answer is Denied.
type Answer uint8

// The answers.
const (
	Denied             Answer = iota // the command does not run, and the caller goes on
	Abort                            // the same, and everything else that is asked is denied, too
	TimedOut                         // no answer came in time
	Approved                         // this time
	ApprovedForSession               // as long as the Runner lives, for the same question
	ApprovedRule                     // and from now on for commands that begin with the offered rule
	ApprovedHost                     // and from now on for the offered host
)

var answerWords = []string{"denied", "abort", "timed_out", "approved", "approved_for_session",
	"approved_execpolicy_amendment", "network_policy_amendment"}

// String returns the word of the answer on the wire, such as "approved_for_session".
func (a Answer) String() string {
	if int(a) < len(answerWords) {
		return answerWords[a]
	}
	return answerWords[Denied]
}

// Approves reports whether the answer lets the command run.
func (a Answer) Approves() bool { return a >= Approved && a <= ApprovedHost }

// MarshalText implements [encoding.TextMarshaler] with the word of String.
func (a Answer) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. An unknown word is an error and leaves a
// as it was.
func (a *Answer) UnmarshalText(text []byte) error {
	for i, w := range answerWords {
		if w == string(text) {
			*a = Answer(i)
			return nil
		}
	}
	return fmt.Errorf("approval: %q is no decision", text)
}

// A Source is who decided.
type Source string

// The sources.
const (
	FromConfig   Source = "config" // settings and rules, without a question
	FromHook     Source = "hook"   // a program
	FromReviewer Source = "reviewer"
	FromUser     Source = "user"
	FromConsole  Source = "console" // the user, in a browser
	FromCache    Source = "cache"   // an answer that was given before for the session
)

// A Decision is the answer to a Request. The zero Decision denies.
type Decision struct {
	Answer Answer
	// Rule, Host and Path are those of the offer that was taken; nil and empty for other answers. An empty
	// Path opens what the question requires.
	Rule []string
	Host string
	Path string
	// Deny says that the answer ApprovedHost denies the host, from now on.
	Deny bool
	// Message is for the caller: why it was denied. It may be empty.
	Message string
	Source  Source
	// Wait is how long the question was open.
	Wait time.Duration
}

// Approves reports whether the decision lets the command go on. One that remembers a host as denied does not.
func (d *Decision) Approves() bool { return d.Answer.Approves() && !d.Deny }

// Refusal returns what a caller is told of a decision that does not approve.
func (d *Decision) Refusal() string {
	switch {
	case d.Message != "":
		return d.Message
	case d.Source == FromHook:
		return "rejected by configuration"
	case d.Answer == TimedOut:
		return "no approval came in time"
	}
	return "rejected by user"
}
