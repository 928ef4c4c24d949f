// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/strict"
)

// A FeedFailure says why not all of an input reached a command. The nil and the zero Failure say that
// nothing is known to be missing. It must not be copied.
type FeedFailure struct {
	mu  sync.Mutex
	err error
}

// Err returns the first error; nil means none.
func (f *FeedFailure) Err() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// usual reports whether an error of a [InputTaker] is one of those by which nothing takes input any more.
func usual(err error) bool {
	ends := []error{nil, io.ErrClosedPipe, os.ErrClosed, os.ErrProcessDone}
	return slices.ContainsFunc(ends, func(end error) bool { return errors.Is(err, end) })
}

// note records an error of a Taker and reports true, unless it is a usual one.
func (f *FeedFailure) note(err error) bool {
	if usual(err) {
		return false
	}
	f.keep(err)
	return true
}

// unread records the error of a read, of which only io.EOF is the end: a reader that was closed may have
// had more.
func (f *FeedFailure) unread(err error) {
	if err != nil && !errors.Is(err, io.EOF) {
		f.keep(err)
	}
}

func (f *FeedFailure) keep(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = cmp.Or(f.err, err)
}

// errCount says that a reader is none.
var errCount = errors.New("the reader returned a count of bytes that it cannot have read")

// read is input.Read. A panic is an error, and so are a count that cannot be and a reader that goes on with
// nothing for ever.
func read(input io.Reader, buf []byte) (n int, err error) {
	err = strict.Call("Cmd.Stdin", func() (err error) {
		const tries = 100 // as bufio
		for range tries {
			switch n, err = input.Read(buf); {
			case n < 0 || n > len(buf):
				n = 0
				return errCount
			case n > 0 || err != nil:
				return err
			}
		}
		return io.ErrNoProgress
	})
	return n, err
}

// A InputTaker takes the input of a command, as an [executor.Process] does.
type InputTaker interface {
	Write(p []byte) (int, error)
	CloseInput() error
}

// feedSize is how much of an input is read at once, in bytes: what io.Copy does.
const feedSize = 32 << 10

// Feed writes all of an input to p, in the background, and closes the input of p. For p an input that
// fails is at its end, as with os/exec; the Failure tells that it was not, before p knows.
func Feed(p InputTaker, input io.Reader) *FeedFailure {
	f := new(FeedFailure)
	go func() {
		buf := make([]byte, feedSize)
		for {
			n, err := read(input, buf)
			_, failed := (writeOnly{p}).Write(buf[:n])
			if err != nil || failed != nil {
				f.note(failed)
				if failed == nil {
					f.unread(err)
				}
				_ = p.CloseInput() // where that fails, nothing reads it any more
				return
			}
		}
	}()
	return f
}

// writeOnly writes all.
type writeOnly struct{ p InputTaker }

func (w writeOnly) Write(b []byte) (int, error) {
	sum := 0
	for sum < len(b) {
		n, err := w.p.Write(b[sum:])
		if sum += n; err != nil && !errors.Is(err, io.ErrShortWrite) {
			return sum, err
		}
	}
	return sum, nil
}

// Keys are what is typed on the terminal of a command: one reader serves all of its attempts, so
// that a key which is read between two of them reaches the second.
type Keys struct {
	FeedFailure
	next chan executor.Process // the one that gets them from now on
	over chan struct{}         // closed at the end of the run
}

// TypeKeys begins to read keys. They reach the process that [Keys.Reach] named last. Close must be called;
// a Read that is blocked then is not waited for.
func TypeKeys(input io.Reader) *Keys {
	k := &Keys{next: make(chan executor.Process, 1), over: make(chan struct{})}
	go k.copy(input)
	return k
}

// Reach has what is typed reach p from now on.
func (k *Keys) Reach(p executor.Process) { k.next <- p }

// Close ends it. The nil Keys has ended.
func (k *Keys) Close() {
	if k != nil {
		close(k.over)
	}
}

// copy types what is read, until the end of the run or when a blocked Read returns after it.
func (k *Keys) copy(input io.Reader) {
	var buf [4 << 10]byte
	p := k.process()
	for p != nil {
		n, err := read(input, buf[:])
		for rest := buf[:n]; p != nil && len(rest) > 0; {
			done, failed := writeOnly{p}.Write(rest)
			if rest = rest[done:]; failed != nil {
				// EIO: no process has the terminal open any more.
				if !errors.Is(failed, syscall.EIO) && k.note(failed) {
					_ = p.CloseInput() // else it waits for what does not come
				}
				p = k.process()
			}
		}
		k.unread(err)
		for err != nil && p != nil {
			_ = p.CloseInput()
			p = k.process()
		}
	}
}

// process waits for the next process to type to; nil is the end.
func (k *Keys) process() executor.Process {
	select {
	case p := <-k.next:
		return p
	case <-k.over:
		return nil
	}
}
