// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package inputwait

import (
	"context"
	"time"
)

// Times between looks. The first comes quietTime after the last output: programs
// write a prompt and read within microseconds, so waiting longer buys nothing, and
// looking sooner would look at programs in the middle of their output. Each further
// look comes twice as late, until longestPause, so that a command that computes for a
// minute costs 20 looks a second and an answer is never more than that pause late.
const (
	quietTime    = 5 * time.Millisecond
	secondPause  = 10 * time.Millisecond
	longestPause = 50 * time.Millisecond
)

// Await repeats look until it says that a process waits for input, and returns that
// answer. It looks 5 ms after the last output or input, then 10, 20, 40 and from then
// on 50 ms after the look before, starts again with every output or input, and never
// looks twice within 5 ms. An answer during which there was output or input does not
// count.
//
// last returns the time of the last output of the processes or input to them; the
// zero time means that there was none yet, and the first look is taken at once. An
// answer is never ahead of the output when reading output and noting the time are one
// step: done under the lock that last takes.
// changed returns a channel that is closed at the next output or input, counted from
// the call; nil means that no such notice is given, and only last tells.
//
// Await blocks until a yes or until ctx is done; then it returns the last answer,
// which says why it was not a yes, and [context.Cause]. It starts no goroutine, and
// ends only between looks, so look must not block. look and last must not be nil.
func Await(ctx context.Context, look func() Look, last func() time.Time, changed func() <-chan struct{}) (Look, error) {
	answer := unknown("there was no look yet")
	var looked time.Time
	pause, deaf := secondPause, false
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for {
		// The notice is asked for before the time is, or else what comes between the two
		// would be missed.
		notice := noticeOf(changed)
		seen := last()
		again := seen.Before(looked)
		due := looked.Add(pause)
		if !again {
			// There was something since the last look. Until the next one nothing has to be
			// heard: afterwards the time tells, and a flood of output wakes nobody.
			pause, deaf = secondPause, true
			due = later(seen.Add(quietTime), looked.Add(quietTime))
		}
		if deaf {
			notice = nil
		}
		heard, err := await(ctx, timer, time.Until(due), notice)
		if err != nil {
			return answer, err
		}
		if !last().Equal(seen) {
			continue
		}
		if heard {
			// A notice of nothing, such as that of a closed stream, must not make a busy loop.
			deaf = true
			continue
		}
		if again {
			pause = min(2*pause, longestPause)
		}
		looked, deaf = time.Now(), false
		answer = look()
		if answer.Waiting && last().Equal(seen) {
			return answer, nil
		}
	}
}

// noticeOf returns what changed returns; nil never tells anything.
func noticeOf(changed func() <-chan struct{}) <-chan struct{} {
	if changed == nil {
		return nil
	}
	return changed()
}

// await waits for the time d to pass, or for the notice, or for the end of ctx. It
// reports whether the notice came.
func await(ctx context.Context, timer *time.Timer, d time.Duration, notice <-chan struct{}) (bool, error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if d <= 0 {
		return false, nil
	}
	timer.Reset(d)
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-notice:
		return true, nil
	case <-timer.C:
		return false, nil
	}
}

// later returns the later of the two times.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
