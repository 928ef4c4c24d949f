// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/run/output"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Response is the answer to a call.
type Response struct {
	CallID  string // of the call that started the process, also in answers to writes
	ChunkID string // names this response: six lower-case hexadecimal digits
	// WallTime is how long the call waited for output, without starting and writing.
	WallTime time.Duration

	// SessionID is what to write to; 0 when the process has ended.
	SessionID int
	// ExitCode is the exit code of a process that ended during the call, 128+Signal
	// when a signal ended it; nil for one that still runs.
	ExitCode *int
	Signal   int

	// Output is the output since the last response, with a line in it if bytes were omitted.
	Output []byte
	// OmittedBytes counts the bytes that are not in Output. OriginalTokens estimates the
	// tokens of all output since the last response, those included.
	OmittedBytes   uint64
	OriginalTokens int

	Command string           // what was started
	Reason  sallyport.Reason // what ended the wait

	// Denials are the accesses that the sandbox denied the command, when it has ended:
	// facts, or guesses that say so (sandbox.Guessed). DenialsOmitted counts more.
	Denials        []sandbox.Denial
	DenialsOmitted int
	// SuspectDenied says that Denials has only a guess, from the exit code and the words
	// in the output. It may be wrong, and Text does not have it.
	SuspectDenied bool

	// Notices are sentences for the model, for example about processes that were ended to
	// make room.
	Notices []string

	text      string // Output as text
	marker    string // the line in text for omitted bytes; empty for none
	tokens    int    // how much of text is shown
	truncated bool   // the JSON form shows no more either
	plain     bool   // without what Codex does not have
}

// setOutput makes the forms of the output from what was collected.
func (r *Response) setOutput(s output.Snapshot) {
	r.Output = s.Render()
	r.OmittedBytes, r.OriginalTokens = s.Omitted, tokenCount(s.Total)
	if s.Omitted == 0 {
		r.text = text.Decode(s.Bytes())
		return
	}
	head, tail := text.Whole(s.Head, s.Tail)
	marker := output.Marker(s.Omitted + uint64(len(s.Head)-len(head)+len(s.Tail)-len(tail)))
	r.text = text.Decode(head) + marker + text.Decode(tail)
	r.marker = strings.Trim(marker, "\n")
}

// Text returns the response as a model reads it: lines of facts and then the output, cut to
// the tokens that the call asked for.
func (r *Response) Text() string {
	var b strings.Builder
	if r.ChunkID != "" {
		fmt.Fprintf(&b, "Chunk ID: %s\n", r.ChunkID)
	}
	fmt.Fprintf(&b, "Wall time: %.4f seconds\n", r.WallTime.Seconds())
	if r.ExitCode != nil {
		fmt.Fprintf(&b, "Process exited with code %d\n", *r.ExitCode)
	}
	if r.SessionID != 0 {
		fmt.Fprintf(&b, "Process running with session ID %d\n", r.SessionID)
	}
	fmt.Fprintf(&b, "Original token count: %d\n", r.OriginalTokens)
	if !r.plain {
		r.writeFacts(&b)
	}
	b.WriteString("Output:\n")
	b.WriteString(r.body())
	return b.String()
}

// writeFacts writes the lines that Codex does not have.
func (r *Response) writeFacts(b *strings.Builder) {
	switch r.Reason {
	case sallyport.ReasonInput:
		b.WriteString("Process is waiting for input\n")
	case sallyport.ReasonPassword:
		b.WriteString("Process is waiting for a password\n")
	}
	for _, d := range r.Denials {
		if evident(d) {
			fmt.Fprintf(b, "Sandbox denied: %s\n", d)
		}
	}
	if r.DenialsOmitted > 0 {
		fmt.Fprintf(b, "Sandbox denied: %d more accesses\n", r.DenialsOmitted)
	}
	for _, n := range r.Notices {
		fmt.Fprintf(b, "%s\n", text.Line(n))
	}
}

// evident reports whether a denial is a fact, not a guess.
func evident(d sandbox.Denial) bool { return d.Source.Evidence() }

// body returns the output cut to the tokens of the response.
func (r *Response) body() string {
	if r.marker == "" {
		return text.FormatTruncated(r.text, r.tokens)
	}
	if text.TokenCount(len(r.text)) <= r.tokens {
		return r.text // the marker is in it
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Warning: truncated output (original token count: %d)\n", r.OriginalTokens)
	cut := text.TruncateMiddle(r.text, r.tokens)
	if !strings.Contains(cut, r.marker) {
		fmt.Fprintf(&b, "%s\n", r.marker)
	}
	fmt.Fprintf(&b, "\n%s", cut)
	return b.String()
}

// MarshalJSON returns the response as programs read it: chunk_id, wall_time_seconds,
// exit_code, session_id, original_token_count and output, which is cut only if the call
// names a number of tokens. Other facts follow, unless the tools are compatible.
func (r *Response) MarshalJSON() ([]byte, error) {
	form := struct {
		ChunkID        string  `json:"chunk_id,omitempty"`
		WallTime       float64 `json:"wall_time_seconds"`
		ExitCode       *int    `json:"exit_code,omitempty"`
		SessionID      int     `json:"session_id,omitempty"`
		OriginalTokens int     `json:"original_token_count"`
		Output         string  `json:"output"`

		Reason         sallyport.Reason `json:"reason,omitempty"`
		Signal         int              `json:"signal,omitempty"`
		OmittedBytes   uint64           `json:"output_omitted_bytes,omitempty"`
		Denials        []sandbox.Denial `json:"denials,omitempty"`
		DenialsOmitted int              `json:"denials_omitted,omitempty"`
		SuspectDenied  bool             `json:"suspect_denied,omitempty"`
		Notices        []string         `json:"notices,omitempty"`
	}{
		ChunkID: r.ChunkID, WallTime: r.WallTime.Seconds(), ExitCode: r.ExitCode, SessionID: r.SessionID,
		OriginalTokens: r.OriginalTokens, Output: r.text,
	}
	if r.truncated {
		form.Output = r.body()
	}
	if !r.plain {
		form.Reason, form.Signal, form.OmittedBytes = r.Reason, r.Signal, r.OmittedBytes
		form.Denials, form.DenialsOmitted, form.SuspectDenied = r.Denials, r.DenialsOmitted, r.SuspectDenied
		form.Notices = r.Notices
	}
	return json.Marshal(form)
}

// Denied returns an [*Error] of the kind [ErrDenied] if the command failed and the sandbox denied it an
// access, certainly or probably, for callers who treat that as an error; else nil.
func (r *Response) Denied() error {
	if r.ExitCode == nil || *r.ExitCode == 0 || len(r.Denials) == 0 {
		return nil
	}
	message := text.TruncateMiddle(r.text, bufferTokens)
	if r.text == "" {
		message = fmt.Sprintf("Process exited with code %d", *r.ExitCode)
	}
	return &Error{Kind: ErrDenied, Message: ErrDenied.Error() + ": " + message, Denials: r.Denials}
}

// newChunkID returns six random lower-case hexadecimal digits from source; nil means
// the system's.
func newChunkID(source io.Reader) (string, error) {
	if source == nil {
		source = rand.Reader
	}
	var b [3]byte
	if _, err := io.ReadFull(source, b[:]); err != nil {
		return "", fmt.Errorf("unified: cannot read random bytes for a chunk id: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}
