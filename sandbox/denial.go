// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"fmt"
	"time"
)

// A Source says how sure a denial is. The zero Source is Guessed; a later one
// is surer.
type Source uint8

// The sources of denials, least sure first. Only those above Guessed are
// evidence.
const (
	Guessed  Source = iota // concluded from exit code and output
	Proxied                // refused by our proxy
	Audited                // read from the kernel's log
	Notified               // seen while it happened
)

var sourceWords = [...]string{"guessed", "proxied", "audited", "notified"}

// String returns "guessed", "proxied", "audited" or "notified".
func (s Source) String() string { return wordOf(sourceWords[:], uint8(s)) }

// MarshalText implements [encoding.TextMarshaler] with the word of String.
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. An unknown word is an
// error and leaves s as it was.
func (s *Source) UnmarshalText(text []byte) error {
	i, err := parseWord("source", sourceWords[:], string(text))
	if err != nil {
		return err
	}
	*s = Source(i)
	return nil
}

// Evidence reports whether the source is more than a guess.
func (s Source) Evidence() bool { return s > Guessed && s <= Notified }

// A Denial is an access that was refused, and how sure we are of it. The zero
// Denial is a guess about nothing.
type Denial struct {
	Access
	Errno   string    // what the process was told, such as "EROFS"; may be empty
	Source  Source    // how it is known
	PID     int       // of the process, as seen from outside the sandbox; 0 when not known
	Program string    // of the process; may be empty
	Rule    string    // the entry or rule that refused it, as a person writes it; may be empty
	Grant   string    // the cure, as [ParseGrants] reads it; empty when there is none
	Count   int       // how often it was refused; 0 means once
	NoGrant bool      // it would have been refused without the sandbox, too, so no grant helps; not part of the JSON form
	Time    time.Time // when; not part of the JSON form
}

// denialJSON is the JSON form: these members, always all of them.
type denialJSON struct {
	Op      Op     `json:"op"`
	Path    string `json:"path"`
	Addr    string `json:"addr"`
	Errno   string `json:"errno"`
	Source  Source `json:"source"`
	PID     int    `json:"pid"`
	Program string `json:"program"`
	Rule    string `json:"rule"`
	Grant   string `json:"grant"`
	Count   int    `json:"count"`
}

// MarshalJSON returns an object with the members op, path, addr, errno, source,
// pid, program, rule, grant and count, always all of them. Bytes of a path that are not
// UTF-8 are replaced, as JSON cannot hold them.
func (d Denial) MarshalJSON() ([]byte, error) {
	return json.Marshal(denialJSON{
		Op: d.Op, Path: d.Path, Addr: d.Addr, Errno: d.Errno, Source: d.Source,
		PID: d.PID, Program: d.Program, Rule: d.Rule, Grant: d.Grant, Count: max(d.Count, 1),
	})
}

// UnmarshalJSON reads the form of MarshalJSON. Members that are absent are
// zero, others are ignored; unknown words are errors.
func (d *Denial) UnmarshalJSON(data []byte) error {
	var j denialJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return fmt.Errorf("sandbox: denial: %w", err)
	}
	*d = Denial{
		Access: Access{Op: j.Op, Path: j.Path, Addr: j.Addr},
		Errno:  j.Errno, Source: j.Source, PID: j.PID, Program: j.Program, Rule: j.Rule, Grant: j.Grant, Count: j.Count,
	}
	return nil
}

// String returns the denial as a person reads it, such as
// "write /etc/hosts (EROFS, notified)". A guess begins with "probably".
func (d Denial) String() string {
	s := d.Access.String() + " ("
	if d.Source == Guessed {
		s = "probably " + s
	}
	if d.Errno != "" {
		s += d.Errno + ", "
	}
	return s + d.Source.String() + ")"
}
