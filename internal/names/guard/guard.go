// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guard protects names that do not exist yet while a command runs.
//
// A sandbox mounts something read-only over a file that exists. A name that does not exist is
// watched, and nothing is created there: what appears at it is moved to quarantine at once and,
// finally, before the result of the command is returned. Of what is covered by a mount it is
// noticed when something else takes its place.
//
// The flow: [Protector.Hold] before the command, [Hold.OnBroken] while it runs, [Hold.Finish] when
// its process tree has ended, [Hold.Release], and [Protector.Close]. [Clean] settles what killed
// processes left.
//
// Nothing is ever replaced, and no symbolic link is followed on the way to a name. The package
// does not survive a crash of the machine (nothing is flushed to disk), and it mounts nothing.
package guard

import (
	"errors"
	"fmt"
	"time"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// ErrClosed is returned by a Protector after its Close.
var ErrClosed = errors.New("the protector of protected names is closed")

// A Claim is one name to protect. The zero value is invalid.
type Claim struct {
	// Path is absolute and clean, may hold any byte but NUL, and has no symbolic link in
	// its directory part. Nothing may exist there.
	Path string
	// ReportOnly makes a watch that moves nothing: what appears stays where it is, and
	// may exist already. Several things that appear are reported once.
	ReportOnly bool
	// Dev and Ino, unless Ino is zero, identify a file or directory that exists and that
	// a mount will cover. Its name is not watched; [Hold.OnBroken] reports when something
	// else takes its place.
	Dev, Ino uint64
	// Allowed reports whether what appeared at the name in a directory is the user's own and stays,
	// unreported. It must not use the Protector. Nil is never.
	Allowed func(dir string) bool
	// Why is the reason in the note beside what goes to quarantine. It may be empty.
	Why string
}

// Kind is what exists at a name, in words.
type Kind string

// The kinds of what can exist at a name. The zero value is no kind.
const (
	KindFile      Kind = "file"
	KindDirectory Kind = "directory"
	KindLink      Kind = "symbolic link"
	KindPipe      Kind = "named pipe"
	KindSocket    Kind = "socket"
	KindDevice    Kind = "device"
	// KindGone is something that appeared and was removed or moved by another process
	// before it could be looked at.
	KindGone Kind = "gone"
)

// A Found is something that appeared at a watched name.
type Found struct {
	Path string
	// MovedTo is where it is now. Empty means that it is gone (KindGone) or still at
	// Path; in the latter case Finish returns an error too.
	MovedTo string
	Kind    Kind
	Why     string // of the Claim
	When    time.Time
}

// Clean removes what dead processes left below the state directory: files of the journal, and
// quarantined things beyond 256 MiB or 30 days (those of the last hour stay). A state directory
// that does not exist is clean. The error is about the journal or the quarantine as a whole; single
// entries are in the report.
func Clean(state string) (Report, error) { return clean(state) }

// A Report says what [Clean] did. The zero value: there was nothing to do.
type Report struct {
	// Held is what living processes need. It was left alone.
	Held []Held `json:"held"`
	// Unknown is what does not belong into the state directory. It was left alone.
	Unknown []Left `json:"unknown"`
	// Failed is what could not be removed or looked at. The next start tries again.
	Failed []Left `json:"failed"`
	// Planted is what commands whose sallyport was killed had left in git directories. It is in
	// quarantine now.
	Planted []Left `json:"planted"`
	// Discarded are the quarantined things that were removed, by the path of their directory.
	Discarded []string `json:"discarded"`
	// Quarantined counts the things in quarantine now, QuarantineBytes their size.
	Quarantined     int   `json:"quarantined"`
	QuarantineBytes int64 `json:"quarantine_bytes"`
}

// A Left is something that was left where it is.
type Left struct {
	Path string `json:"path"`
	Why  string `json:"why"` // never empty
}

// A Held is something in use.
type Held struct {
	Path    string `json:"path"`
	Holders int    `json:"holders"` // living processes, 1 or more
}

// An ExistsError reports that something exists at a claimed name, or that it is not
// what the claim says.
type ExistsError struct {
	Path string
	Kind Kind
}

// Error says what exists where.
func (e *ExistsError) Error() string {
	if e.Kind == KindGone {
		return text.Word(e.Path) + " was removed while the sandbox was prepared; try again"
	}
	return fmt.Sprintf("a %s appeared at %s while the sandbox was prepared; try again", e.Kind,
		text.Word(e.Path))
}

// A HoldError says why a name cannot be protected.
type HoldError struct {
	Path string
	Op   string // what failed, as in "open its directory"
	Err  error  // never nil
	Fix  string // what helps, without a period; may be empty
}

// Error is one sentence with the fix.
func (e *HoldError) Error() string {
	s := fmt.Sprintf("cannot protect %s: %s: %v", text.Word(e.Path), e.Op, e.Err)
	if e.Fix != "" {
		s += "; " + e.Fix
	}
	return text.Line(s)
}

// Unwrap returns the cause.
func (e *HoldError) Unwrap() error { return e.Err }

// A BrokenError names something that was lost while a command ran.
type BrokenError struct {
	Path string
	What string // what happened to it, as in "was removed"
	// Again says that the command made it at a watched name, too often.
	Again bool
	// Unwatched says that changes are not reported any more; What is why. There is no Path.
	Unwatched bool
}

// Error is one sentence with the fix.
func (e *BrokenError) Error() string {
	switch {
	case e.Again:
		return fmt.Sprintf("%s %s by the command, so it was ended; look at what it does",
			text.Word(e.Path), e.What)
	case e.Unwatched:
		return text.Line(e.What) + "; the command was ended"
	}
	return fmt.Sprintf("%s %s from outside while the command ran, which removes the mount over it, so the command was ended; "+
		"run it again", text.Word(e.Path), e.What)
}

// A QuarantineError says that a watched name could not be looked at, or what appeared
// there could not be quarantined.
type QuarantineError struct {
	Path string
	Err  error // never nil
}

// Error is one sentence with the fix.
func (e *QuarantineError) Error() string {
	return fmt.Sprintf("cannot quarantine %s: %s; look at it before you use the directory", text.Word(e.Path),
		text.Line(e.Err.Error()))
}

// Unwrap returns the cause.
func (e *QuarantineError) Unwrap() error { return e.Err }
