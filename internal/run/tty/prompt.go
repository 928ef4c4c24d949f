// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tty

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// ErrNoTerminal says that this process has no terminal on which it could ask, or is in the
// background of it.
var ErrNoTerminal = errors.New("there is no terminal to ask on")

// A Prompt is the controlling terminal of this process. One goroutine uses it, and must close
// it.
type Prompt struct {
	ctx  context.Context
	file *os.File
	term *Terminal
	stop func() bool // stops waiting for the end of ctx
	rows int         // shown since the last page
	over bool        // nothing more will be typed
}

// A Choice is one of the answers that [Prompt.Ask] offers.
type Choice struct {
	Key   string   // a letter, in lower case
	Words []string // that are the same answer
	Text  string   // what it means, such as "trust these files"
}

// controlling is the terminal of the session that a process belongs to, tty(4).
const controlling = "/dev/tty"

// OpenPrompt opens the controlling terminal, and makes it one for whole lines until Close. When ctx
// ends, so does a call that waits, with the error of ctx. The error is [ErrNoTerminal] without
// a terminal in the foreground.
func OpenPrompt(ctx context.Context) (*Prompt, error) {
	file, err := os.OpenFile(controlling, os.O_RDWR, 0)
	if err != nil {
		return nil, ErrNoTerminal
	}
	if !Foreground(file) {
		file.Close()
		return nil, fmt.Errorf("%w: this process is in the background", ErrNoTerminal)
	}
	term, err := Open(file)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("%w: %w", ErrNoTerminal, err)
	}
	t := &Prompt{ctx: ctx, file: file, term: term}
	t.stop = context.AfterFunc(ctx, func() {
		_ = file.SetWriteDeadline(time.Unix(1, 0)) // output that the user has stopped
		_ = term.Close()
	})
	if err := term.Lines(); err != nil {
		return nil, errors.Join(cmp.Or(ctx.Err(), err), t.Close())
	}
	return t, nil
}

// Close restores the terminal. A later call fails.
func (t *Prompt) Close() error {
	t.stop()
	return errors.Join(t.term.Close(), t.file.Close())
}

// Show shows a text of sallyport's own. A full screen waits for Enter.
func (t *Prompt) Show(text string) error { return t.show(text, "", "  ") }

// Quote shows words of others, with a mark on each line. A full screen waits for Enter.
func (t *Prompt) Quote(text string) error { return t.show(text, PromptMark, PromptMark) }

// PromptMark is what stands before each line of words of others.
const PromptMark = "| "

// Withdraw says, after the end of the context, why there is no question any more. A terminal that
// takes no output gets no word.
func (t *Prompt) Withdraw(why string) {
	const moment = 100 * time.Millisecond
	_ = t.file.SetWriteDeadline(time.Now().Add(moment))
	_, _ = io.WriteString(t.file, "\n"+why+"\n")
}

func (t *Prompt) show(s, first, next string) error {
	for line := range strings.Lines(text.Lines(s)) {
		line, begin := strings.TrimSuffix(line, "\n"), first
		for more := true; more && !t.over; begin = next {
			cols, rows := t.size()
			if t.rows >= rows-1 {
				if err := t.turn(); err != nil {
					return err
				}
			}
			fits := split(line, cols-len(begin))
			if err := t.write(begin + line[:fits] + "\n"); err != nil {
				return err
			}
			t.rows++
			line, more = line[fits:], fits < len(line)
		}
	}
	return nil
}

// split returns how many bytes of a line fit into that many columns, at least one character.
// Characters that are not ASCII count twice: some take two columns.
func split(line string, cols int) int {
	for i, r := range line {
		cols--
		if r > unicode.MaxASCII {
			cols--
		}
		if cols < 0 && i > 0 {
			return i
		}
	}
	return len(line)
}

// size returns the size of the terminal as it is now, with some size for one that does not know.
func (t *Prompt) size() (cols, rows int) {
	size := SizeOf(t.file)
	if size.Cols == 0 || size.Rows == 0 {
		return 80, 24
	}
	return max(int(size.Cols), 20), max(int(size.Rows), 3)
}

// turn waits for Enter.
func (t *Prompt) turn() error {
	_, err := t.question("-- press Enter to see more --")
	return err
}

// question shows a line and reads what is typed after it, up to Enter. It is empty when nothing
// more will be typed.
func (t *Prompt) question(line string) (string, error) {
	t.rows = 0
	if err := t.term.Discard(); err != nil {
		return "", t.ended(err)
	}
	if err := t.write(line); err != nil || t.over {
		return "", err
	}
	var answer []byte
	var buf [256]byte
	for {
		n, err := t.term.Read(buf[:])
		if err != nil {
			return "", t.ended(err)
		}
		text, _, whole := bytes.Cut(buf[:n], []byte("\n"))
		if bytes.IndexByte(text, endOfInput) >= 0 {
			t.over = true
			return "", t.write("\n")
		}
		if answer = append(answer, text...); whole {
			return string(answer), nil
		}
	}
}

// endOfInput is what [Terminal.Read] returns for an end of file.
const endOfInput = 4

// ended returns the error of a call that was waiting, nil for a terminal that is gone.
func (t *Prompt) ended(err error) error {
	if errors.Is(err, ErrGone) {
		t.over = true
		return nil
	}
	if over := t.ctx.Err(); over != nil {
		return over
	}
	return err
}

func (t *Prompt) write(text string) error {
	_, err := io.WriteString(t.file, text)
	if errors.Is(err, syscall.EIO) {
		err = ErrGone
	}
	return t.ended(err)
}

// attempts is how often Ask asks: once, and three times again.
const attempts = 4

// Ask shows the choices in one line and returns the Key of the one that is typed, by its letter
// or one of its words and Enter. It is empty, which must be taken for no, after four other
// answers, and where nothing more will be typed.
func (t *Prompt) Ask(choices ...Choice) (string, error) {
	line := ""
	for _, c := range choices {
		line += "[" + c.Key + "] " + c.Text + "  "
	}
	for range attempts {
		answer, err := t.question(line + "> ")
		if err != nil || t.over {
			return "", err
		}
		is := func(word string) bool { return strings.EqualFold(word, strings.TrimSpace(answer)) }
		for _, c := range choices {
			if is(c.Key) || slices.ContainsFunc(c.Words, is) {
				return c.Key, nil
			}
		}
	}
	return "", nil
}
