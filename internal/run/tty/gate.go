// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tty

import (
	"io"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// A gate is between a program and the terminal: while a question is on the terminal, what the program
// writes waits, so that it can neither hide the question nor change what it says. Then the program's
// screen and modes are put away, and brought back.
type gate struct {
	asks  bool             // the program may run while there is a question
	turn  sync.Mutex       // held while something is written, or a question is on the terminal
	modes text.ScreenModes // that the program has set
	// behind is called before a program shows a screen of its own, which may be in the background; nil is
	// not called.
	behind func()
}

// gated is a stream of the program that goes through a gate.
type gated struct {
	io.Writer
	gate *gate
}

// Write writes to the terminal, when no question is there.
func (g gated) Write(p []byte) (int, error) {
	g.gate.turn.Lock()
	defer g.gate.turn.Unlock()
	second := g.gate.modes.Second()
	g.gate.modes.Follow(p)
	if g.gate.behind != nil && !second && g.gate.modes.Second() {
		g.gate.behind()
	}
	return g.Writer.Write(p)
}

// Gate returns a writer to the terminal for a program that may run while there is a question. Nothing
// else of the program may write to the terminal.
func (c *Console) Gate(w io.Writer) io.Writer {
	c.gate.asks = true
	return gated{w, &c.gate}
}

// Follow returns a writer to the terminal for a program that does not run while there is a question. What
// it leaves on is reset by Close.
func (c *Console) Follow(w io.Writer) io.Writer { return gated{w, &c.gate} }
