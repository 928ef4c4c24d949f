// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"time"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// Source says how a denial is known. The zero Source is Guessed; a later one is more
// reliable.
type Source uint8

// The sources of denials, least reliable first. Only those above Guessed are evidence.
const (
	Guessed  Source = iota // concluded from exit code and output
	Proxied                // denied by the proxy
	Audited                // read from the kernel's log
	Notified               // seen while it happened
)

var sourceWords = []string{"guessed", "proxied", "audited", "notified"}

// String returns "guessed", "proxied", "audited" or "notified".
func (s Source) String() string { return wordOf(sourceWords, s) }

// MarshalText implements [encoding.TextMarshaler] with the word of String.
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. An unknown word is an error and
// leaves s as it was.
func (s *Source) UnmarshalText(text []byte) error { return parseWord("source", sourceWords, text, s) }

// Evidence returns whether the source is more than a guess.
func (s Source) Evidence() bool { return s > Guessed && s <= Notified }

// Denial is an access that was denied, or probably was; see Source. In JSON it has every
// member with a name, always, except those that say otherwise.
type Denial struct {
	Access
	Errno   string `json:"errno"`   // what the process got, such as "EROFS"; may be empty
	Source  Source `json:"source"`  // how it is known
	PID     int    `json:"pid"`     // of the process, as seen from outside the sandbox; 0 is unknown
	Program string `json:"program"` // of the process; may be empty
	// Name is what the process calls itself, which it can choose; empty when unknown, and then
	// no member of the JSON form.
	Name  string `json:"name,omitempty"`
	Rule  string `json:"rule"`  // the entry or rule that denied it, for people; may be empty
	Grant string `json:"grant"` // what allows it, as flags of run; empty when nothing narrow does
	// Wider is what allows it together with much more, as flags of run: the whole network, a
	// directory of the system. It is set only where Grant is empty; empty means that nothing
	// does, or that nothing is known. An empty one is no member of the JSON form.
	Wider string `json:"wider,omitempty"`
	// Harmless says why programs are known to go on without what was denied, in a few words;
	// empty for all other denials, and then no member of the JSON form.
	Harmless string `json:"harmless,omitempty"`
	Count    int    `json:"count"` // how often it was denied; 0 means once
	// no grant helps: it would have failed without the sandbox too, or a flag denies it
	NoGrant bool `json:"-"`
	// a name would be removed, moved or replaced, so that its directory must be open
	Unlinks bool      `json:"-"`
	Time    time.Time `json:"-"` // when it was denied, the last time
}

// MarshalJSON writes a Count of 0 as 1.
func (d Denial) MarshalJSON() ([]byte, error) {
	type plain Denial // without this method
	d.Count = max(d.Count, 1)
	return json.Marshal(plain(d))
}

// String returns the access, its errno and its source, such as
// "write /etc/hosts (EROFS, notified)". A guess begins with "probably".
func (d Denial) String() string {
	s := d.Access.String() + " ("
	if d.Source == Guessed {
		s = "probably " + s
	}
	if d.Errno != "" {
		s += text.Line(d.Errno) + ", "
	}
	return s + d.Source.String() + ")"
}
