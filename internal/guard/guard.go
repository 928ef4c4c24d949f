// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guard keeps names that do not exist yet from being created behind the
// user's back.
//
// A sandbox can mount something read-only over a name that exists. For a name
// that does not, there are two means. A placeholder is an empty folder that is
// made on the host, so that there is something to mount over; it is journaled,
// shared by everybody who needs it at the same time, and removed after the last
// of them, or at the next start after a crash. A watch makes nothing: whatever
// appears at the name is moved to quarantine at once and, finally, before the
// result of the command is told.
//
// The flow: [Keeper.Hold] before the command, the mounts over
// [Hold.Placeholders] by the caller, [Hold.Broken] while it runs, [Hold.Finish]
// when its whole tree is dead, [Hold.Release], and [Keeper.Close] at the end.
// [Clean] ends what processes left that were killed.
//
// The package refuses to touch what it has not made: a folder is removed only if
// it is empty and still the one in the journal, nothing is ever replaced, and no
// symbolic link is followed on the way to a name. It does not survive a crash of
// the machine (nothing is flushed to disk), and it mounts nothing.
package guard

import (
	"errors"
	"fmt"
	"time"
)

// ErrUnsupported is returned by everything in this package on systems other
// than Linux. It wraps [errors.ErrUnsupported].
var ErrUnsupported error = unsupported{}

// unsupported is not made by package fmt: that would cost every start of the program
// as much as a thread.
type unsupported struct{}

func (unsupported) Error() string {
	return "guard: missing names cannot be guarded on this system: " + errors.ErrUnsupported.Error()
}

func (unsupported) Unwrap() error { return errors.ErrUnsupported }

// ErrClosed is returned by [Keeper.Hold] after [Keeper.Close].
var ErrClosed = errors.New("guard: the keeper is closed")

// A Want is one name to guard. The zero value is refused: it names nothing.
type Want struct {
	// Path is absolute and clean, may hold any byte but NUL, and has no symbolic
	// link in its folder part. Nothing may stand there but a placeholder of ours.
	Path string
	// Placeholder asks for a folder to mount over; false asks for a watch.
	Placeholder bool
	// Notice makes a watch that only tells: what appears stays where it is, and so
	// may what stands there already. Several things that appear are told once.
	Notice bool
	// Dev and Ino, unless Ino is zero, are those of a file or folder that stands there
	// and that a mount will cover: neither a placeholder nor a watch is wanted, and
	// [Hold.Broken] tells when something else stands there.
	Dev, Ino uint64
	// Why is a word for the note beside what goes to quarantine. It may be empty.
	Why string
}

// A Placeholder is a folder that now stands at a wanted name.
type Placeholder struct {
	Path string
	Dev  uint64 // as stat(2) tells it
	Ino  uint64
}

// A Skip is a placeholder that is not needed, because nobody with this user's
// rights can make the name either.
type Skip struct {
	Path string
	Err  error // why mkdir(2), or the way there, failed; never nil
}

// A Kind says what stood at a name, in a word for people.
type Kind string

// The kinds of what can stand at a name. The zero value is no kind.
const (
	KindFile   Kind = "file"
	KindFolder Kind = "folder"
	KindLink   Kind = "symbolic link"
	KindPipe   Kind = "named pipe"
	KindSocket Kind = "socket"
	KindDevice Kind = "device"
	// KindGone is something that appeared and had disappeared, or had been moved
	// by somebody else, before it could be looked at.
	KindGone Kind = "gone"
)

// A Found is something that appeared at a watched name.
type Found struct {
	Path string
	// MovedTo is where it is now. Empty means that it is nowhere (KindGone) or
	// still at Path; in the latter case Finish returns an error too.
	MovedTo string
	Kind    Kind
	Why     string // of the Want
	When    time.Time
	// NotCopied counts what a copy to another file system left behind: pipes,
	// sockets and devices. Zero means that everything is at MovedTo.
	NotCopied int
}

// A Keeper guards names for one process. Its zero value with State set is ready;
// it must not be copied after first use and is safe for concurrent use. It has a
// few descriptors and one goroutine from the first Hold that needs them until
// Close.
type Keeper struct {
	// State is the folder for what outlives a run: absolute, existing, mode 0700,
	// on a local file system, and hidden from commands.
	State string

	in keeper
}

// Hold makes or shares the placeholders of wants and arms the watches. On error
// nothing of this call is left. It blocks only for the moment in which another
// process changes the journal.
//
// The errors are [*ExistsError] where something stands at a name already,
// [*HoldError] where a name cannot be guarded, and [ErrClosed]. No wants make a
// Hold that does nothing.
func (k *Keeper) Hold(wants []Want) (*Hold, error) { return k.hold(wants) }

// Quarantine moves what stands at a path to quarantine, whatever it is: for names
// that turn out to be harmful when a command has ended. Nothing standing there is
// [KindGone] and no error. The path is as in a [Want], why is for the note beside.
func (k *Keeper) Quarantine(path, why string) (Found, error) { return k.quarantineNow(path, why) }

// DropUnused removes the placeholders that no [Hold] of this Keeper and no other
// living process needs, before Close does.
func (k *Keeper) DropUnused() error { return k.dropUnused() }

// Close ends all watches, waits for the goroutine, and removes the placeholders
// that no other living process holds. Every Hold should be released before; one
// that is not is broken. A second Close does nothing. A placeholder that cannot
// be removed stays in the journal for the next start and is named in the error.
func (k *Keeper) Close() error { return k.close() }

// A Hold is a set of names that are guarded. It comes from [Keeper.Hold]; its
// methods are safe for concurrent use.
type Hold struct{ in hold }

// Placeholders returns the folders that now stand at wanted names, in the order of
// the wants. Nil means that there are none.
func (h *Hold) Placeholders() []Placeholder { return h.placeholders() }

// Skipped returns the placeholders that are not needed. Nil means none.
func (h *Hold) Skipped() []Skip { return h.skipped() }

// Weaker returns, one sentence each, what is guarded less than asked. Nil means
// that everything is as asked. More can be added until Finish has returned.
func (h *Hold) Weaker() []string { return h.weaker() }

// Broken returns a channel that is closed when a placeholder was removed,
// replaced or moved away while held. What ran until then was protected: whoever
// did it stands outside the sandbox.
func (h *Hold) Broken() <-chan struct{} { return h.brokenCh() }

// OnBroken has f called in a goroutine of its own when [Hold.Broken] is closed, at once
// when it is already: for callers that would else keep a goroutine waiting for as long
// as the command runs. The f of an earlier call is not called any more.
func (h *Hold) OnBroken(f func()) { h.onBroken(f) }

// Cause returns a [*BrokenError] after Broken was closed, and nil before.
func (h *Hold) Cause() error { return h.cause() }

// Finish looks a last time at every name and moves what stands at a watched one
// to quarantine. Call it when no process of the command is left. It returns all
// that was found since Hold, and an error that joins a [*BrokenError] for a
// placeholder that was lost and a [*QuarantineError] for each name that could not
// be emptied or looked at. A second call looks again.
func (h *Hold) Finish() ([]Found, error) { return h.finish() }

// Release ends the watches. The placeholders stay until [Keeper.Close], so that
// the next Hold finds them. A second Release does nothing.
func (h *Hold) Release() { h.release() }

// Clean ends what dead processes left below state: placeholders, journal entries,
// and quarantined things beyond 256 MiB or 30 days (those of the last hour stay).
// What living processes hold is told and left alone. A state folder that does not
// exist is clean. The error is about the journal as a whole; single entries are in
// the report.
func Clean(state string) (Report, error) { return clean(state) }

// A Report says what [Clean] did. The zero value: there was nothing to do.
type Report struct {
	Removed []string // placeholders that are gone now, by path
	Kept    []Left   // entries whose folder is not ours any more: only the entry is gone
	Held    []Held   // placeholders that living processes need
	Odd     []Left   // files of the journal that make no sense and were left alone
	Failed  []Left   // placeholders that could not be removed; tried again next time

	Discarded       []string // boxes of the quarantine that were removed, by path
	Quarantine      int      // boxes that are there now
	QuarantineBytes int64    // and what they hold
}

// A Left is something that Clean left where it is.
type Left struct {
	Path string
	Err  error // why; never nil
}

// A Held is a placeholder in use.
type Held struct {
	Path    string
	Holders int // living keepers, 1 or more
}

// An ExistsError says that something stands at a wanted name, so that it is to be
// protected as something present.
type ExistsError struct {
	Path string
	Kind Kind
}

// Error says what stands where.
func (e *ExistsError) Error() string {
	return fmt.Sprintf("guard: %s: a %s stands there now; plan again", e.Path, e.Kind)
}

// A HoldError says why a name cannot be guarded.
type HoldError struct {
	Path string
	Do   string // what failed, as in "make the placeholder"
	Err  error  // never nil
	Fix  string // what helps, as a sentence without a period; may be empty
}

// Error is one sentence with the mend.
func (e *HoldError) Error() string {
	s := fmt.Sprintf("guard: %s: cannot %s: %v", e.Path, e.Do, e.Err)
	if e.Fix != "" {
		s += "; " + e.Fix
	}
	return s
}

// Unwrap returns the cause.
func (e *HoldError) Unwrap() error { return e.Err }

// A BrokenError names a placeholder that was lost while held.
type BrokenError struct {
	Path string
	What string // what happened to it, as in "was removed"
	// Fixed says that it is no placeholder, but what a wall stood over.
	Fixed bool
}

// Error is one sentence with the mend.
func (e *BrokenError) Error() string {
	if e.Fixed {
		return fmt.Sprintf("guard: %s %s from outside while a command ran, and the wall over it went with it, so the command was ended; run it again", e.Path, e.What)
	}
	return fmt.Sprintf("guard: the placeholder %s %s from outside while a command ran; run the command again", e.Path, e.What)
}

// A QuarantineError says that a watched name could not be looked at, or what
// appeared there could not be moved away.
type QuarantineError struct {
	Path string
	Err  error // never nil
}

// Error is one sentence with the mend.
func (e *QuarantineError) Error() string {
	return fmt.Sprintf("guard: %s: what appeared there cannot be moved to quarantine: %v; look at it before you use the folder", e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *QuarantineError) Unwrap() error { return e.Err }
