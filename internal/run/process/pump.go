// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
)

// A pump reads the output of one command and gives it to Config.Output.
type pump interface {
	// start begins to read.
	start()
	// eof returns a channel that is closed when no process holds the streams any more
	// and everything was read.
	eof() <-chan struct{}
	// last returns when the last byte was read; the zero Time is never.
	last() time.Time
	// next returns a channel that is closed when the next byte is read.
	next() <-chan struct{}
	// delivered reports that Config.Output has returned from everything that was written
	// until now; false where that cannot be known.
	delivered() bool
	// busy returns a channel that is closed when Config.Output has returned from what was read
	// last; nil when it has.
	busy() <-chan struct{}
	// commandEnded says that no process opens a stream again that has ended.
	commandEnded()
	// closeStream gives up the reading of a stream: who writes to it finds that nothing reads it.
	// What was not read is lost. It does nothing on a terminal, and does not block.
	closeStream(s executor.Stream)
	// finish reads what the streams hold now, without waiting for more, and closes
	// them. It blocks until that is done and must be called once.
	finish()
	// close closes the streams of a pump that was never started.
	close()
}

// bufferSize is how much is read at once, in bytes. More than a quarter of a MiB gains
// nothing: the copying dominates.
const bufferSize = 256 << 10

// buffers holds memory for reading, which a pump uses only while there is output.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// buffer returns memory for reading, which goes back to buffers.
func buffer() *[bufferSize]byte {
	if b, ok := buffers.Get().(*[bufferSize]byte); ok {
		return b
	}
	return new([bufferSize]byte)
}

const (
	// quietTime is how long a stream that a process still holds may be silent after the
	// command has ended.
	quietTime = 250 * time.Millisecond
	// drainTime is how long such a stream is read at most.
	drainTime = 2 * time.Second
	// hurriedTime is drainTime when the command was stopped.
	hurriedTime = 500 * time.Millisecond
)

// drain waits for the end of the output of a command that has just ended. It returns
// true when the streams have ended, and false when they were silent for quietTime, or
// were read for drainTime. Both begin with the end of the command, quietTime again with
// every byte, and both again when Config.Output, which the command would wait for, returns
// after they were over. When stopped is closed, drainTime becomes hurriedTime.
func drain(p pump, stopped <-chan struct{}) bool {
	end, most, hurried := time.Now(), drainTime, false
	timer := time.NewTimer(quietTime)
	defer timer.Stop()
	var busy <-chan struct{} // not nil while nothing but Config.Output is waited for
	for {
		select {
		case <-p.eof():
			return true
		case <-stopped:
			if busy != nil {
				busy, end = nil, time.Now()
			}
			stopped, hurried, most = nil, true, min(time.Since(end)+hurriedTime, drainTime)
		case <-busy:
			busy, end = nil, time.Now()
		case <-timer.C:
		}
		since := end
		if last := p.last(); last.After(since) {
			since = last
		}
		left := min(quietTime-time.Since(since), most-time.Since(end))
		if left > 0 {
			timer.Reset(left)
		} else if busy = p.busy(); hurried || busy == nil {
			return false
		}
	}
}
