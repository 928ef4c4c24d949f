// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/front"
	"github.com/sallyport-dev/sallyport/internal/tty"
)

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

// console returns the console of a run. It must be closed.
func (o *runOptions) console(env *Env) (*front.Console, error) {
	return front.Open(env.Stdin, env.Stdout, env.Stderr, o.ownTerminal(env), o.captures())
}

// connect gives cmd, which has its streams, its signals and its terminal.
func (r *report) connect(cmd *sallyport.Cmd, c *front.Console, signals *front.Signals) {
	cmd.Signals, cmd.Ready, cmd.OnStop = signals.Numbers, signals.Ready, signals.Stopped
	if !c.Own {
		return
	}
	cmd.TTY, cmd.Resizes = &c.Size, c.Resizes()
	if f, ok := cmd.Stdout.(*os.File); ok {
		cmd.Stdout = kept{f}
	}
	if c.Keys {
		cmd.Stdin = c.Reader(signals)
	}
	cmd.Stderr = nil
	// What is redirected stays so. One file for both streams is one stream on a terminal.
	if !r.o.captures() && !tty.Is(r.env.Stderr) && !sameFile(r.env.Stdout, r.env.Stderr) {
		cmd.Stderr = r.env.Stderr
	}
}

// sameFile reports whether the same thing is open in both.
func sameFile(f, g *os.File) bool {
	a, err := f.Stat()
	b, err2 := g.Stat()
	return err == nil && err2 == nil && os.SameFile(a, b)
}

// kept hides that output goes to a file, so that its end is retained on the way: it may tell
// why the program failed.
type kept struct{ *os.File }
