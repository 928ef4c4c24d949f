// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/sallyport-dev/sallyport/internal/dirs"
)

const (
	// consolesDir is the directory of the sockets of open consoles in the state directory.
	consolesDir = "consoles"
	// consoleWait is how long a question waits for a console by default.
	consoleWait = 10 * time.Minute
)

// OpenConsole says that a console of this user is open which can answer questions, until end is called: runs
// with --ask-in-console have their questions wait for it. End may be called more than once.
func OpenConsole() (end func(), err error) {
	l, err := listenIn(consolesDir)
	if err != nil {
		return nil, err
	}
	var work sync.WaitGroup
	life, stop := context.WithCancel(context.Background())
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			held := make(chan struct{})
			work.Go(func() { // until the run has its answer
				defer close(held)
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close() // nothing was written
			})
			work.Go(func() {
				select {
				case <-life.Done():
					_ = c.Close() // as above
				case <-held:
				}
			})
		}
	})
	return sync.OnceFunc(func() {
		_ = l.Close() // what is left is removed by the next run
		stop()
		work.Wait()
	}), nil
}

// An openedConsole is an open console, or the next one after that was closed.
type openedConsole struct {
	gone <-chan struct{} // closed when no console is open any more
	end  context.CancelFunc
	over <-chan struct{}
}

// findConsole returns an open console of this user, which must be closed; nil where there is none.
func findConsole(ctx context.Context) *openedConsole {
	c := dialConsole(ctx)
	if c == nil {
		return nil
	}
	life, end := context.WithCancel(ctx)
	gone, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for ; c != nil; c = dialConsole(life) {
			stop := context.AfterFunc(life, func() { _ = c.Close() }) // nothing was written
			_, _ = io.Copy(io.Discard, c)                             // until it is closed
			stop()
			_ = c.Close() // as above
		}
		if life.Err() == nil {
			close(gone)
		}
	}()
	return &openedConsole{gone, end, over}
}

func (o *openedConsole) close() {
	o.end()
	<-o.over
}

// dialConsole connects to the first console that is there; nil for none. It removes the sockets of dead ones.
func dialConsole(ctx context.Context) net.Conn {
	found, err := socketsIn(consolesDir)
	if err != nil {
		return nil // nor can one be opened there
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, d := range found {
		c, err := dirs.DialSocket(ctx, d.path, true)
		if errors.Is(err, syscall.ECONNREFUSED) && !dirs.SocketGone(d.path) {
			c, err = dirs.DialSocket(ctx, d.path, true) // it was being made
		}
		if err == nil {
			return c
		}
	}
	return nil
}
