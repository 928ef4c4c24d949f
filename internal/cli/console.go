// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"os"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
	"github.com/sallyport-dev/sallyport/internal/run/tty"
)

// openConsole returns the console of a run. It must be closed.
func openConsole(env *Env, o *args.Options) (*tty.Console, error) {
	c, err := tty.OpenConsole(env.Stdin, env.Stdout, env.Stderr, o.OwnTerminal(&env.Env), o.Captures())
	if c != nil {
		c.Reads = func() bool { return tasks.ReadsTerminal(tasks.Descendants()) }
	}
	return c, err
}

// connect gives cmd, which has its streams, its signals and its terminal.
func (r *report) connect(cmd *sallyport.Cmd, c *tty.Console, signals *tty.Signals) {
	cmd.Signals, cmd.Ready, cmd.OnStop = signals.Numbers, signals.Ready, signals.Stopped
	asks := r.o.AsksMeanwhile(r.config)
	if !c.Own {
		r.apart(cmd, c)
		if asks {
			r.withhold(cmd, c)
		}
		if r.o.Audit.Output > 0 {
			r.retain(cmd)
			signals.AddPipe()
		}
		return
	}
	cmd.TTY, cmd.Resizes = &c.Size, c.Resizes()
	if f, ok := cmd.Stdout.(*os.File); ok {
		cmd.Stdout = kept{f}
		switch {
		case asks:
			cmd.Stdout = c.Gate(f)
		case tty.Is(f):
			cmd.Stdout = c.Follow(f)
		}
	}
	if c.Keys {
		cmd.Stdin = c.Reader(signals)
	}
	cmd.Stderr = nil
	// What is redirected stays so. One file for both streams is one stream on a terminal.
	if !r.o.Captures() && !tty.Is(r.env.Stderr) && !sameFile(r.env.Stdout, r.env.Stderr) {
		cmd.Stderr = r.env.Stderr
	}
}

// apart keeps the terminal from a program that begins in the background: it has the keys only that are
// typed when it is in the foreground. The other streams of the terminal do not give them.
func (r *report) apart(cmd *sallyport.Cmd, c *tty.Console) {
	if f, ok := cmd.Stdin.(*os.File); ok && tty.Is(f) && !tty.Foreground(f) {
		cmd.Stdin = c.Apart(f)
	}
	for _, stream := range []*io.Writer{&cmd.Stdout, &cmd.Stderr} {
		if f, ok := (*stream).(*os.File); ok && tty.Is(f) && !tty.Foreground(f) {
			*stream = c.Written(f)
		}
	}
}

// withhold keeps the terminal from a program that may run while there is a question: it could write
// over the question, and take the answer. Its output goes through this process, and its input, if that
// is the terminal, is empty.
func (r *report) withhold(cmd *sallyport.Cmd, c *tty.Console) {
	if f, ok := cmd.Stdin.(*os.File); ok && tty.Is(f) {
		cmd.Stdin = nil
	}
	for _, stream := range []*io.Writer{&cmd.Stdout, &cmd.Stderr} {
		if f, ok := (*stream).(*os.File); ok && tty.Is(f) {
			*stream = c.Gate(f)
		}
	}
}

// retain has the output of a program go through this process, which keeps it, but for a terminal.
func (r *report) retain(cmd *sallyport.Cmd) {
	for _, stream := range []*io.Writer{&cmd.Stdout, &cmd.Stderr} {
		if f, ok := (*stream).(*os.File); ok && !tty.Is(f) {
			*stream = kept{f}
		}
	}
	if _, ok := cmd.Stdout.(kept); ok && sameFile(r.env.Stdout, r.env.Stderr) {
		cmd.Stderr = cmd.Stdout // in order
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
