// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"context"
	"time"
)

// Times between looks. The first comes quietTime after the last output: programs write
// a prompt and read within microseconds. Each further look comes twice as late, until
// longestPause, so that a command that computes for a minute costs 20 looks a second
// and an answer is at most that pause late.
const (
	quietTime    = 5 * time.Millisecond
	secondPause  = 10 * time.Millisecond
	longestPause = 50 * time.Millisecond
)

// Await repeats look until a process waits for input, and returns that answer. It looks
// 5 ms after the last output or input, then 10, 20, 40 and from then on 50 ms after the
// look before. It starts again with every output or input, and never looks twice within
// 5 ms. An answer during which there was output or input does not count. A wait that also
// ends by a timer counts when it is seen a second time, with no output, input or work seen in
// between: after the timer has ended, unless that takes [LongestDelay] or more. Programs pause
// like that before they go on, as vim does for 100 ms before it ends.
//
// last returns the time of the last output of the processes or input to them; zero means
// that there was none yet, and the first look is taken at once. An answer is never ahead
// of the output if reading output and noting the time are one step, under the lock that
// last takes. changed returns a channel that is closed at the next output or input after
// the call; if it is nil, Await only asks last.
//
// Await blocks until a process waits, or until ctx is done; then it returns the last
// answer, which has the reason, and [context.Cause]. It starts no goroutine, and ends
// only between looks, so look must not block. look and last must not be nil.
func Await(ctx context.Context, look func() Look, last func() time.Time,
	changed func() <-chan struct{}) (Look, error) {
	if changed == nil {
		changed = func() <-chan struct{} { return nil }
	}
	answer := unknown("there was no look yet")
	var looked time.Time
	pause, ignore := secondPause, false
	var timed timedWait
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for {
		// The notice comes before the time, or output between the two would be missed.
		notice := changed()
		seen := last()
		again := seen.Before(looked)
		due := looked.Add(pause)
		if !again {
			// There was output since the last look. Until the next look no notice is needed:
			// the time tells afterwards, and a flood of output does not wake this goroutine.
			pause, ignore, timed = secondPause, true, timedWait{}
			due = seen.Add(quietTime)
		}
		if ignore {
			notice = nil
		}
		noticed, err := pauseUntil(ctx, timer, due, notice)
		if err != nil {
			return answer, err
		}
		if !last().Equal(seen) {
			continue
		}
		if noticed {
			// A notice without output, such as that of a closed stream, must not make a busy
			// loop.
			ignore = true
			continue
		}
		if again {
			pause = min(2*pause, longestPause)
		}
		looked, ignore = time.Now(), false
		answer = look()
		if !last().Equal(seen) {
			continue
		}
		if timed.again(answer, looked) {
			return answer, nil
		}
		if answer.Waiting {
			answer = Look{Known: true, Why: "a program waits for input or a timer, and may go on by itself"}
		}
	}
}

// A timedWait is a wait with a timer that was seen once. The zero value is none.
type timedWait struct {
	pid int
	due time.Time // from when on it counts if it is seen again
}

// again reports whether a look is an answer: a wait without a timer, or one that was seen
// before.
func (w *timedWait) again(l Look, at time.Time) bool {
	switch {
	case !l.Waiting:
		*w = timedWait{}
		return false
	case !l.Timed:
		return true
	case w.pid == l.PID:
		return !at.Before(w.due)
	}
	w.pid, w.due = l.PID, at
	if l.Timeout < LongestDelay {
		w.due = at.Add(l.Timeout)
	}
	return false
}

// pauseUntil waits for the time due, for the notice, or for the end of ctx. It reports
// whether the notice came.
func pauseUntil(ctx context.Context, timer *time.Timer, due time.Time, notice <-chan struct{}) (bool, error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	d := time.Until(due)
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
