// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"time"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// The decisions of [Judged], as they stand in JSON.
const (
	DecisionAllow  = "allow"
	DecisionPrompt = "prompt" // an approver has to be asked
	DecisionForbid = "forbidden"
)

// Judged says what was decided about a command before anything ran.
type Judged struct {
	Args     []string
	Dir      string
	Decision string // one of the constants
	Reason   string // a clause; may be empty
	Rule     *Rule  // that decided; nil if none did
	Review   bool   // it is reviewed in any case: strict review
	// PolicyVersion names the sandbox policy, the approval policy and the network policy by which it was
	// decided: equal ones have one version.
	PolicyVersion string

	// What follows is not in the JSON form. Path says which row of the table of decisions decided;
	// Requires is what the question about what the caller asks for requires; Held is why a rule that
	// leads outside of the sandbox does not, empty for no such rule.
	Path     string
	Requires []string
	Held     string
}

// A Rule is a rule that decided about a command, by its place in a rule file.
type Rule struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Decision string `json:"decision"`          // of the rule: one of the constants
	Sandbox  string `json:"sandbox,omitempty"` // what it says about where; may be empty
	// Justification is the reason that it gives; empty for none.
	Justification string `json:"justification,omitempty"`
}

// Kind returns "judged".
func (Judged) Kind() string { return "judged" }
func (Judged) body()        {}

// MarshalJSON returns the members argv, cwd, decision, reason, rule, strict_review
// and policy_version.
func (b Judged) MarshalJSON() ([]byte, error) {
	return encode(judged{list(b.Args), b.Dir, b.Decision, b.Reason, b.Rule, b.Review, b.PolicyVersion})
}

// ApprovalRequested says that an approval is asked for.
type ApprovalRequested struct{ Request *approval.Request }

// Kind returns "approval_requested".
func (ApprovalRequested) Kind() string { return "approval_requested" }
func (ApprovalRequested) body()        {}

// MarshalJSON returns the members of [approval.Request].
func (b ApprovalRequested) MarshalJSON() ([]byte, error) { return encode(b.Request) }

// ReviewStarted says that an automatic reviewer looks at a question, after [ApprovalRequested].
type ReviewStarted struct {
	Review approval.Review
	// Action is what the question is about, on one line; empty means that of Review.Request.
	Action string
}

// Kind returns "review_started".
func (ReviewStarted) Kind() string { return "review_started" }
func (ReviewStarted) body()        {}

// MarshalJSON returns the members id, request_id, status, started_at_ms, decision_source, model,
// shadow and action.
func (b ReviewStarted) MarshalJSON() ([]byte, error) { return encode(reviewOf(&b.Review, b.Action)) }

// ReviewCompleted says what became of a review, before [ApprovalDecided].
type ReviewCompleted struct {
	Review approval.Review
	Action string // as in ReviewStarted
}

// Kind returns "review_completed".
func (ReviewCompleted) Kind() string { return "review_completed" }
func (ReviewCompleted) body()        {}

// MarshalJSON returns the members of [ReviewStarted], and completed_at_ms, attempts, and where they
// are known outcome, risk, authorization, rationale and error.
func (b ReviewCompleted) MarshalJSON() ([]byte, error) {
	r := &b.Review
	return encode(reviewed{
		reviewOf(r, b.Action), r.Completed.UnixMilli(), r.Attempts, r.Outcome, r.Risk, r.Authorization,
		r.Rationale, r.Failure,
	})
}

// ApprovalDecided is the answer to a question.
type ApprovalDecided struct {
	ID       string          `json:"id"` // of the request
	Decision approval.Answer `json:"decision"`
	Source   approval.Source `json:"source"`
	WaitMS   int64           `json:"wait_ms"` // how long the question was open
	Message  string          `json:"message,omitempty"`
	// Rule and Host are what is remembered, if anything is.
	Rule []string `json:"rule,omitempty"`
	Host string   `json:"host,omitempty"`
	Deny bool     `json:"deny,omitempty"` // the host is remembered as one that is denied
	// Path is the path that was opened for a command that waits, if the answer names one.
	Path string `json:"path,omitempty"`
	// PolicyVersion is that of [Judged], when it was asked; Evidence lists how the denials are known on
	// which the question rests.
	PolicyVersion string           `json:"policy_version,omitempty"`
	Evidence      []sandbox.Source `json:"evidence,omitempty"`
	// Asked says that an answer to the question can be remembered, and none was.
	Asked bool `json:"-"`
}

// Kind returns "approval_decided".
func (ApprovalDecided) Kind() string { return "approval_decided" }
func (ApprovalDecided) body()        {}

// Granted is an access that the sandbox denies, and that an answer opened while the command ran: the call
// waited for it and was made then, once.
type Granted struct {
	Op   sandbox.Op `json:"op"`   // write or connect
	Path string     `json:"path"` // of the file or the socket
	// By is who decided: approval.FromCache where an earlier answer of the run or the session covers it.
	By       approval.Source `json:"by"`
	WaitedMS int64           `json:"waited_ms"` // how long the call waited
	Call     string          `json:"call"`      // the system call, such as "mkdir"
	// More is how many further calls an earlier answer opened in the same way, in a result; 0 in an event.
	More int `json:"more,omitempty"`
}

// Kind returns "granted".
func (Granted) Kind() string { return "granted" }
func (Granted) body()        {}

// Retrying says that a command is run again, with more than before. The attempt of the event is
// the one that follows.
type Retrying struct {
	Reason string
	Added  []string // in the words of [approval.Request.Requires]
}

// Kind returns "retrying".
func (Retrying) Kind() string { return "retrying" }
func (Retrying) body()        {}

// MarshalJSON returns the members reason and added.
func (b Retrying) MarshalJSON() ([]byte, error) {
	return encode(retrying{b.Reason, list(b.Added)})
}

// The outcomes of [SandboxOutcome].
const (
	OutcomeDenied    = "denied"    // it failed, and was denied what it may have needed
	OutcomeEscalated = "escalated" // and was run again, with what was approved then
	OutcomeTimedOut  = "timed_out"
	OutcomeSignal    = "signal" // one that was not ours ended it
)

// SandboxOutcome says what else became of a run than success or a failure of its own. It comes
// before [Ended], for runs with such an outcome only.
type SandboxOutcome struct {
	Outcome string // one of the constants
	// Initial and Escalated are how long the attempts took; Escalated is zero without a second one.
	Initial, Escalated time.Duration
	Mode, Level        string // of the sandbox of the last attempt, as in a result
	// Evidence says how it is known what was denied, without what is only guessed: each source once.
	Evidence []sandbox.Source
}

// Kind returns "sandbox_outcome".
func (SandboxOutcome) Kind() string { return "sandbox_outcome" }
func (SandboxOutcome) body()        {}

// MarshalJSON returns the members outcome, initial_duration_ms, escalated_duration_ms, mode, level
// and evidence. The second duration is there for escalated only.
func (b SandboxOutcome) MarshalJSON() ([]byte, error) {
	form := outcome{Outcome: b.Outcome, Initial: b.Initial.Milliseconds(), Mode: b.Mode, Level: b.Level,
		Evidence: list(b.Evidence)}
	if second := b.Escalated.Milliseconds(); b.Outcome == OutcomeEscalated {
		form.Escalated = &second
	}
	return encode(form)
}

// Started says that a process runs, and confined by what.
type Started struct {
	Sandbox  Sandbox
	Withheld []string // names of variables that the command does not get
}

// Kind returns "started".
func (Started) Kind() string { return "started" }
func (Started) body()        {}

// MarshalJSON returns the members sandbox and withheld.
func (b Started) MarshalJSON() ([]byte, error) {
	return encode(started(b))
}

// Output is a piece of what a command printed. It ends with a whole character
// unless the stream does not, or is not UTF-8. After the last piece that is
// handed out of a stream comes at most one Output without data that counts what
// was held back.
type Output struct {
	Stream executor.Stream
	// Number counts the pieces of this stream from 1, and Offset is the place of
	// Data in the stream, in bytes.
	Number uint64
	Offset uint64
	Data   []byte
	// DroppedEvents and DroppedBytes count what is missing before this piece.
	DroppedEvents uint64
	DroppedBytes  uint64
}

// Kind returns "output".
func (Output) Kind() string { return "output" }
func (Output) body()        {}

// MarshalJSON returns the members stream, number, offset and text; where Data is
// not UTF-8 text is lossy and data holds the bytes in base64. The members
// dropped_events and dropped_bytes are there when they are not zero.
func (b Output) MarshalJSON() ([]byte, error) {
	form := output{
		Stream: b.Stream.String(), Number: b.Number, Offset: b.Offset,
		DroppedEvents: b.DroppedEvents, DroppedBytes: b.DroppedBytes,
	}
	form.Text, form.Data = texts(b.Data)
	return encode(form)
}

// Denied says that an access was denied, and how that is known.
type Denied struct{ Denial sandbox.Denial }

// Kind returns "denied".
func (Denied) Kind() string { return "denied" }
func (Denied) body()        {}

// MarshalJSON returns the members of [sandbox.Denial].
func (b Denied) MarshalJSON() ([]byte, error) { return encode(b.Denial) }

// Listening says that the command is about to listen at a port of a network of its own, where the port could
// be published. It can come before [Started].
type Listening struct{ Port uint16 }

// Kind returns "listening".
func (Listening) Kind() string { return "listening" }
func (Listening) body()        {}

// MarshalJSON returns the member port.
func (b Listening) MarshalJSON() ([]byte, error) { return encode(listening(b)) }

// Network says what a managed network did with a request, or that a connection has ended: then it has
// the member end. The first of them can come before [Started].
type Network struct{ network.Record }

// Kind returns "network_decided", and "network_closed" for the end of a connection.
func (b Network) Kind() string {
	if b.End != nil {
		return "network_closed"
	}
	return "network_decided"
}
func (Network) body() {}

// MarshalJSON returns the members of [network.Record].
func (b Network) MarshalJSON() ([]byte, error) { return encode(b.Record) }

// Quarantined says that a name appeared where none may be, and was moved away
// before the run ended.
type Quarantined struct {
	executor.Quarantined
}

// Kind returns "quarantined".
func (Quarantined) Kind() string { return "quarantined" }
func (Quarantined) body()        {}

// MarshalJSON returns the members path, moved_to, why and grant.
func (b Quarantined) MarshalJSON() ([]byte, error) { return encode(b.Quarantined) }

// Exited says that a command has ended and nothing of its tree is left.
type Exited struct {
	Code      int // as in executor.Exit
	Signal    int
	Survivors []executor.Survivor
	Duration  time.Duration
}

// Kind returns "exited".
func (Exited) Kind() string { return "exited" }
func (Exited) body()        {}

// MarshalJSON returns the members exit_code, signal, survivors (the first
// [SurvivorsListed]) and duration_ms.
func (b Exited) MarshalJSON() ([]byte, error) {
	return encode(exited{b.Code, b.Signal, list(Listed(b.Survivors)), b.Duration.Milliseconds()})
}

// SurvivorsListed is how many survivors the JSON forms describe one by one; the
// others are counted.
const SurvivorsListed = 20

// Listed returns the survivors that a JSON form describes.
func Listed(all []executor.Survivor) []executor.Survivor { return all[:min(len(all), SurvivorsListed)] }

// Survived says that processes outlived their command and were ended. It comes
// before [Exited], and only when there were any.
type Survived struct {
	Survivors []executor.Survivor
	By        string // how they were found and ended: executor.ByNamespace and the like
}

// Kind returns "survived".
func (Survived) Kind() string { return "survived" }
func (Survived) body()        {}

// MarshalJSON returns the members survivors (how many), survivor_list (the first
// [SurvivorsListed]) and survivors_by.
func (b Survived) MarshalJSON() ([]byte, error) {
	return encode(survived{len(b.Survivors), list(Listed(b.Survivors)), b.By})
}

// Recorded says that what the terminal of the command showed is in a file. It comes before [Ended].
type Recorded struct {
	Path   string `json:"path"`   // of the file, absolute; empty where none could be made
	Format string `json:"format"` // "asciicast-v3" or "asciicast-v2"
	SHA256 string `json:"sha256"` // of the whole file, in hexadecimal
	Bytes  int64  `json:"bytes"`  // of the file
	Gaps   int64  `json:"gaps"`   // bytes of output that are not in it
	Hidden int64  `json:"hidden"` // bytes that were typed and are not in it: the terminal did not show them
	// Error says why the recording ended before the command; empty when it did not.
	Error string `json:"error,omitempty"`
}

// Kind returns "recorded".
func (Recorded) Kind() string { return "recorded" }
func (Recorded) body()        {}

// Ended is the last event of a run, whether a command ran or not.
type Ended struct {
	ExitCode int
	End      string // the member "end" of a result
	Error    string // why it did not run; empty when it did
	Duration time.Duration
}

// Kind returns "ended".
func (Ended) Kind() string { return "ended" }
func (Ended) body()        {}

// MarshalJSON returns the members exit_code, end, error and duration_ms.
func (b Ended) MarshalJSON() ([]byte, error) {
	return encode(ended{b.ExitCode, b.End, b.Error, b.Duration.Milliseconds()})
}

// texts returns p as text and, where that loses something, p itself.
func texts(p []byte) (string, []byte) {
	if utf8.Valid(p) {
		return string(p), nil
	}
	return text.Decode(p), p
}

// list turns nil into an empty list, which is [] in JSON.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
