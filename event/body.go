// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"time"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/text"
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
	Reason   string // a sentence; may be empty
}

// Kind returns "judged".
func (Judged) Kind() string { return "judged" }
func (Judged) body()        {}

// MarshalJSON returns the members argv, cwd, decision and reason.
func (b Judged) MarshalJSON() ([]byte, error) {
	return encode(struct {
		Args     []string `json:"argv"`
		Dir      string   `json:"cwd"`
		Decision string   `json:"decision"`
		Reason   string   `json:"reason,omitempty"`
	}{list(b.Args), b.Dir, b.Decision, b.Reason})
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
	return encode(struct {
		Sandbox  Sandbox  `json:"sandbox"`
		Withheld []string `json:"withheld,omitempty"`
	}{b.Sandbox, b.Withheld})
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
	form := struct {
		Stream        string `json:"stream"`
		Number        uint64 `json:"number"`
		Offset        uint64 `json:"offset"`
		Text          string `json:"text"`
		Data          []byte `json:"data,omitempty"`
		DroppedEvents uint64 `json:"dropped_events,omitempty"`
		DroppedBytes  uint64 `json:"dropped_bytes,omitempty"`
	}{
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
	return encode(struct {
		Code      int                 `json:"exit_code"`
		Signal    int                 `json:"signal"`
		Survivors []executor.Survivor `json:"survivors"`
		Duration  int64               `json:"duration_ms"`
	}{b.Code, b.Signal, list(Listed(b.Survivors)), b.Duration.Milliseconds()})
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
	return encode(struct {
		Survivors int                 `json:"survivors"`
		List      []executor.Survivor `json:"survivor_list"`
		By        string              `json:"survivors_by,omitempty"`
	}{len(b.Survivors), Listed(b.Survivors), b.By})
}

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
	return encode(struct {
		ExitCode int    `json:"exit_code"`
		End      string `json:"end"`
		Error    string `json:"error,omitempty"`
		Duration int64  `json:"duration_ms"`
	}{b.ExitCode, b.End, b.Error, b.Duration.Milliseconds()})
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
