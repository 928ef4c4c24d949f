// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/caller"
)

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
		if err := caller.Check(ctx); err != nil {
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
	if err := caller.Check(ctx); err != nil {
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
