// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"io"
	"os"
	"sync"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/tty"
)

// A console connects a program that has a terminal of its own with the terminal of this
// process. A nil console is that of a program without one; all methods do nothing then.
type console struct {
	env *Env
	// term is the terminal in front of this process: for its size, and for keys if it
	// is standard input. Nil when no standard stream is one.
	term   *tty.Terminal
	size   sallyport.Size
	keys   bool     // standard input is term
	shown  bool     // the program's output goes to term
	stderr *os.File // the program's standard error, when it is redirected; else nil

	signals *forwarder
	resizes chan sallyport.Size
	over    chan struct{}
	passing sync.WaitGroup
}

// ownTerminal reports whether the program gets a terminal of its own.
func (o *runOptions) ownTerminal(env *Env) bool {
	switch {
	case o.hasTTY:
		return o.tty
	case o.captures():
		return false
	}
	// A program in the background must not take keys.
	return terminals && tty.Is(env.Stdin) && tty.Is(env.Stdout) && tty.Foreground(env.Stdin)
}

// console returns the console of a program that gets a terminal, and nil for others.
// It must be closed. It changes nothing yet.
func (o *runOptions) console(env *Env) (*console, error) {
	if !o.ownTerminal(env) {
		return nil, nil //nolint:nilnil // a nil console is one that does nothing
	}
	captured := o.captures()
	c := &console{
		env: env, keys: tty.Is(env.Stdin), shown: !captured && tty.Is(env.Stdout),
		resizes: make(chan sallyport.Size), over: make(chan struct{}),
	}
	// What is redirected stays so. One file for both streams is one stream on a terminal.
	if !captured && !tty.Is(env.Stderr) && !sameFile(env.Stdout, env.Stderr) {
		c.stderr = env.Stderr
	}
	for _, f := range []*os.File{env.Stdin, env.Stdout, env.Stderr} {
		if !tty.Is(f) {
			continue
		}
		var err error
		if c.term, err = tty.Open(f); err != nil {
			return nil, err
		}
		c.size = tty.SizeOf(f)
		break
	}
	return c, nil
}

// sameFile reports whether the same thing is open in both.
func sameFile(f, g *os.File) bool {
	a, err := f.Stat()
	b, err2 := g.Stat()
	return err == nil && err2 == nil && os.SameFile(a, b)
}

// kept hides that output goes to a file, so that its end is retained on the way: it may tell
// why the program failed.
type kept struct{ io.Writer }

// attach gives cmd, which has its streams, its terminal.
func (c *console) attach(cmd *sallyport.Cmd, signals *forwarder) {
	if c == nil {
		return
	}
	c.signals = signals
	cmd.TTY = &c.size
	if f, ok := cmd.Stdout.(*os.File); ok {
		cmd.Stdout = kept{f}
	}
	if c.keys {
		cmd.Stdin = c
	}
	if cmd.Stderr = nil; c.stderr != nil {
		cmd.Stderr = c.stderr
	}
	if c.term == nil {
		return
	}
	cmd.Resizes = c.resizes
	c.passing.Go(func() {
		for s := range c.term.Sizes() {
			select {
			case c.resizes <- s:
			case <-c.over:
				return
			}
		}
	})
}

// begin passes every key on from now on, until close. It comes shortly before the program
// runs, so that what is typed meanwhile is not shown twice, and the terminal's answers to the
// program are not echoed.
func (c *console) begin() error {
	if c == nil || !c.keys {
		return nil
	}
	err := c.term.Raw(!c.shown)
	if errors.Is(err, tty.ErrGone) {
		return nil // the program gets to know
	}
	return err
}

// lineEnd ends a line on standard error while the program runs.
func (c *console) lineEnd() string {
	if c != nil && c.keys && c.shown && tty.Is(c.env.Stderr) {
		return "\r\n"
	}
	return "\n"
}

// Read reads keys for the program. When the terminal is gone, the program gets SIGHUP
// before the end of its input.
func (c *console) Read(p []byte) (int, error) {
	n, err := c.term.Read(p)
	if errors.Is(err, tty.ErrGone) {
		c.signals.hangUp()
	}
	return n, err
}

// suspend leaves the terminal to the shell while this process is stopped.
func (c *console) suspend() {
	if c != nil && c.term != nil {
		_ = c.term.Suspend() // nothing could fix it
	}
}

// close leaves the terminal as it was found. It may be called more than once.
func (c *console) close() {
	if c == nil || c.term == nil {
		return
	}
	select {
	case <-c.over:
		return
	default:
	}
	close(c.over)
	_ = c.term.Close() // nothing could fix it
	c.passing.Wait()
}
