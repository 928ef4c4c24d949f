// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// ErrNoContext says that a context is nil.
var ErrNoContext = errors.New("the context is nil; pass that of the request, or context.Background()")

// ErrExit is the Value of a PanicError for what called runtime.Goexit.
var ErrExit = errors.New("runtime.Goexit, which t.FailNow and t.SkipNow call")

// A PanicError says that something of the caller panicked, or ended its goroutine.
type PanicError struct {
	Where string // what was called, such as "Cmd.Stdin"
	At    string // the function that panicked and its line; empty where that is not known
	Value any    // of the panic; ErrExit for the end of the goroutine
}

// Error returns one sentence.
func (e *PanicError) Error() string {
	if errors.Is(e, ErrExit) {
		return e.Where + " did not return: it called " + ErrExit.Error() +
			"; return an error or nothing instead"
	}
	at := ""
	if e.At != "" {
		at = " at " + e.At
	}
	return e.Where + " panicked" + at + ": " + text.Line(fmt.Sprint(e.Value))
}

// Unwrap returns the value of the panic if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ErrorText is what an error says, for a member of JSON; empty for none.
func ErrorText(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimPrefix(err.Error(), "sallyport: ")
}

// Said is the error with a text; nil for none.
func Said(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

// CheckContext returns ErrNoContext for a context that is nil.
func CheckContext(ctx context.Context) error {
	if ctx == nil {
		return ErrNoContext
	}
	return nil
}

// Call calls something of the caller and returns its error. A panic is a *PanicError, and so is the end of
// the goroutine: f has one of its own, so that what has called Call goes on. Call returns when f has.
func Call(where string, f func() error) error {
	done := make(chan error, 1)
	go func() {
		var err error = &PanicError{Where: where, Value: ErrExit} // if nothing else becomes known
		defer func() {
			if v := recover(); v != nil {
				err = &PanicError{Where: where, At: place(), Value: v}
			}
			done <- err
		}()
		err = f()
	}()
	return <-done
}

// place returns the function that panics now, and its line.
func place() string {
	var at [32]uintptr
	frames := runtime.CallersFrames(at[:runtime.Callers(0, at[:])])
	for panics := false; ; {
		f, more := frames.Next()
		switch inside := strings.HasPrefix(f.Function, "runtime."); {
		case panics && !inside:
			return fmt.Sprintf("%s (line %d)", f.Function, f.Line)
		case f.Function == "runtime.gopanic":
			panics = true
		}
		if !more {
			return ""
		}
	}
}

// maxID is how long an id of the caller may be, in bytes.
const maxID = 128

// CheckID says what is wrong with an id that the caller gives to a command, as a clause with the fix; empty
// for one that is right.
func CheckID(id string) string {
	switch {
	case len(id) > maxID:
		return fmt.Sprintf("it has %d bytes, and %d at most are kept; use a shorter one", len(id), maxID)
	case !utf8.ValidString(id) || strings.ContainsFunc(id, func(r rune) bool { return !text.Visible(r) }):
		return "it has characters that do not print; use letters and digits"
	}
	return ""
}
