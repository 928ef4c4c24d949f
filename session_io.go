// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/strict"
)

// The reasons why a session takes no input, for errors.Is.
var (
	// ErrInputClosed says that the command has no input that can be written to.
	ErrInputClosed = errors.New("sallyport: the session's input is closed; start it with a TTY or with OpenStdin to write to it")
	// ErrInputFull says that the command does not read: earlier input fills the
	// terminal or the pipe.
	ErrInputFull = errors.New("sallyport: input buffer full: the command is not reading")
)

// inputPatience is how long a write waits for a command that does not read.
const inputPatience = 2 * time.Second

// Write writes to the command's input, or types on its terminal. It returns how many
// bytes were taken: all of them, or an error, which is ErrInputClosed, os.ErrProcessDone,
// or ErrInputFull when the command has read nothing for 2 seconds.
func (s *Session) Write(p []byte) (int, error) {
	s.use()
	return s.write(context.Background(), p)
}

// write is Write that ends with ctx.
func (s *Session) write(ctx context.Context, p []byte) (int, error) {
	n, err := s.input.Do(ctx, p, false)
	return n, s.inputError(ctx, err)
}

// inputError returns the error of a write.
func (s *Session) inputError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil:
		return fmt.Errorf("sallyport: the write was canceled: %w", context.Cause(ctx))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrInputFull
	case errors.Is(err, io.ErrClosedPipe):
		return fmt.Errorf("%w: no process reads from it any more: %w", ErrInputClosed, io.ErrClosedPipe)
	case errors.Is(err, process.ErrInputEnded), errors.Is(err, os.ErrClosed) && s.input.Ended():
		return ErrInputClosed
	case errors.Is(err, os.ErrClosed), errors.Is(err, os.ErrProcessDone):
		return os.ErrProcessDone // there is no input any more
	}
	return fmt.Errorf("sallyport: cannot write to the session: %w", err)
}

// CloseInput ends the command's input. A terminal gets its end-of-file character and
// takes input afterwards; the error is ErrInputFull when the character cannot be typed
// because the command has read nothing for 2 seconds. It does nothing when the command has
// ended.
func (s *Session) CloseInput() error {
	s.use()
	if s.execution.cmd.TTY != nil {
		_, err := s.input.Do(context.Background(), nil, true)
		if err = s.inputError(context.Background(), err); errors.Is(err, os.ErrProcessDone) {
			return nil
		}
		return err
	}
	s.input.End()
	if err := s.attempt.Load().process.CloseInput(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("sallyport: cannot end the session's input: %w", err)
	}
	return nil
}

// Signal sends a signal by number to the command's process group; on a terminal SIGINT,
// SIGQUIT and SIGTSTP go to the foreground process group, as the keys do. It returns
// os.ErrProcessDone when the command has ended.
func (s *Session) Signal(sig int) error {
	s.use()
	return s.attempt.Load().signal(sig)
}

// Interrupt sends SIGINT, which has the same number everywhere.
func (s *Session) Interrupt() error {
	const sigint = 2
	return s.Signal(sigint)
}

// Resize changes the size of the terminal. It returns os.ErrProcessDone when the command
// has ended, and an error that is errors.ErrUnsupported without a terminal.
func (s *Session) Resize(size Size) error {
	s.use()
	if s.execution.cmd.TTY == nil {
		return fmt.Errorf("sallyport: the session has no terminal: %w", errors.ErrUnsupported)
	}
	s.mu.Lock()
	s.size = &size // of another attempt as well
	s.mu.Unlock()
	if err := s.attempt.Load().process.Resize(size); err != nil {
		return err
	}
	s.execution.terminal.Resize(size)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.screen != nil {
		usual := size.OrUsual()
		s.screen.Resize(int(usual.Cols), int(usual.Rows))
	}
	return nil
}

// What readers of a session's output get.
type (
	// A Delta is a piece of the output.
	Delta = executor.Chunk
	// A Line is a line of the output, or a gap in it.
	Line = executor.Line
	// A Match is the first match of a pattern in a line of the output.
	Match = executor.Match
	// Found is the result of a search.
	Found = executor.Found
)

// Deltas returns the output of the session from an offset on, as it is and as it comes,
// up to its end or to the end of ctx, which is an error. Every caller has an offset of its
// own: two get the same bytes, one that comes late misses nothing that is retained, and
// one that stops disturbs no other. Deltas takes no output away from Await.
func (s *Session) Deltas(ctx context.Context, from uint64) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		if err := strict.CheckContext(ctx); err != nil {
			yield(Delta{Offset: from}, err)
			return
		}
		for at := from; ; {
			d, err := s.output().Read(ctx, at)
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(Delta{Offset: at}, fmt.Errorf("sallyport: cannot read the output: %w", err))
				return
			}
			if !yield(d, nil) {
				return
			}
			at = d.End()
		}
	}
}

// SpillErr returns why less of a long output is retained than the Runner asks for: there
// can be no spill file, or it takes no more. It is nil otherwise.
func (s *Session) SpillErr() error {
	err := s.output().Err()
	if err == nil {
		return nil
	}
	return fmt.Errorf("sallyport: only a part of a long output is retained: %w", err)
}

// output returns the retained output.
func (s *Session) output() executor.Output { return s.attempt.Load().process.Output() }

// drop frees what is retained of the output outside of memory.
func (s *Session) drop() {
	_ = s.output().Close() // the next process that needs a file removes what stays
}

// Size returns how many bytes the command has printed so far, and how many of them are
// not retained.
func (s *Session) Size() (total, missing uint64) { return s.output().Size() }

// LineCount returns the number of lines so far; the last one may be incomplete.
func (s *Session) LineCount() int { return s.output().LineCount() }

// Lines returns the lines from and to and those between, as far as they exist, both
// streams in order of arrival. A number below 1 means the first line, or the last one. A
// gap stands for lines that are not retained, and the numbers after it are true. A result
// holds at most 16 MiB; if more is true, the next call begins after the last line.
func (s *Session) Lines(from, to int) (lines []Line, more bool) { return s.output().Lines(from, to) }

// Search looks for a pattern in all output that is retained and returns one match for a
// line, and at most most of them; 0 means 1 000. With an error, Found holds the matches so
// far.
func (s *Session) Search(ctx context.Context, pattern *regexp.Regexp, most int) (Found, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return Found{}, err
	}
	if pattern == nil {
		return Found{}, errors.New("sallyport: no pattern to search for; pass a regular expression")
	}
	found, err := s.output().Search(ctx, pattern, most)
	if err != nil {
		err = fmt.Errorf("sallyport: the search was canceled: %w", err)
	}
	return found, err
}

// A Screen is what a session's terminal shows.
type Screen struct {
	// Lines are the rows from top to bottom, without trailing blanks and control
	// characters.
	Lines      []string
	Cols, Rows int
	// Col and Row are the place of the cursor, from 0; Hidden says that it is not shown.
	Col, Row int
	Hidden   bool
	// Title is the title that the program gave its window; empty for none.
	Title string
	// Alternate says that this is the second screen, which full-screen programs use.
	Alternate bool
	// Modes are the sequences that bring a terminal into the modes of the program.
	Modes string
}

// String returns the rows as text, without empty rows at the end.
func (s Screen) String() string {
	text := strings.TrimRight(strings.Join(s.Lines, "\n"), "\n")
	if text == "" {
		return ""
	}
	return text + "\n"
}

// Screen returns what the terminal shows now; false without Cmd.Screen. It has no colors,
// and no lines that have left the screen.
func (s *Session) Screen() (Screen, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.screen == nil {
		return Screen{}, false
	}
	v := s.screen.Snapshot()
	return Screen{
		Lines: v.Lines, Cols: v.Cols, Rows: v.Rows,
		Col: v.Cursor.Col, Row: v.Cursor.Row, Hidden: !v.Cursor.Visible,
		Title: v.Title, Alternate: v.Alternate, Modes: s.screen.Modes(),
	}, true
}
