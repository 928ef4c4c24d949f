// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import "time"

// A pump hears the output pipes of one command.
type pump interface {
	// start begins to hear.
	start()
	// eof is closed when nobody holds a write end any more and everything has
	// been heard.
	eof() <-chan struct{}
	// lastByte returns when the last byte was heard; the zero Time if none was.
	lastByte() time.Time
	// heard is closed when the next byte is heard.
	heard() <-chan struct{}
	// allHeard reports that whatever was written until now has been handed on; false
	// where that cannot be known.
	allHeard() bool
	// commandEnded says that from now on nobody opens a stream anew.
	commandEnded()
	// finish hears what is in the pipes now, without waiting for more, and
	// closes them. It blocks until that is done and must be called once.
	finish()
	// abandon closes the pipes of a pump that was never started.
	abandon()
}

// drain waits for the end of the output of a command that has just ended. It
// returns true when the streams have ended, and false when they were silent for
// quiet, or have been heard for limit. Both are counted from the end of the
// command, quiet also from every byte.
func drain(p pump, quiet, limit time.Duration) bool {
	select {
	case <-p.eof():
		return true
	default:
	}
	end := time.Now()
	timer := time.NewTimer(min(quiet, limit))
	defer timer.Stop()
	for {
		select {
		case <-p.eof():
			return true
		case <-timer.C:
		}
		since := end
		if last := p.lastByte(); last.After(since) {
			since = last
		}
		now := time.Now()
		left := min(quiet-now.Sub(since), limit-now.Sub(end))
		if left <= 0 {
			return false
		}
		timer.Reset(left)
	}
}
