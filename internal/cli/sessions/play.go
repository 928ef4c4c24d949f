// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/run/tty"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/recording"
)

const playHelp = `Play a recording of a terminal session (run -t --record), also one of another
program: asciicast, version 2 or 3.

  sallyport play [--speed X] [--idle-limit DUR] FILE
  sallyport play --text FILE

FILE is a path, or a name that sallyport recordings lists. Space pauses, a full
stop shows the next output while it is paused, ] goes to the next mark, q ends.
Where standard output is no terminal, all output is printed at once, as it is.
With --text it is printed as the lines that the terminal showed.
`

func (o *Options) playFlags() []syntax.Flag {
	return []syntax.Flag{
		{Long: "speed", Value: "X", Set: o.setSpeed, Help: "how many times as fast, such as 2 or 0.5 (default 1)"},
		{Long: "idle-limit", Value: "DUR", Set: func(v string) error {
			d, err := config.ParseDuration(v)
			o.idleLimit = &d
			return err
		}, Help: "the longest pause that is played (default: that of the\nrecording, if it has one)"},
		{Long: "text", Set: syntax.SetOn(&o.text), Help: "print the lines that the terminal showed"},
	}
}

// setSpeed takes the value of --speed.
func (o *Options) setSpeed(v string) error {
	const most = 1e6
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsNaN(x) || x <= 1/most || x > most {
		return errors.New("it must be a number above 0, such as 2 or 0.5")
	}
	o.speed = x
	return nil
}

// play plays a recording.
func play(ctx context.Context, env *Env, o *Options, words []string) error {
	if len(words) == 0 {
		return explain.NewError("the file of a recording is missing; sallyport recordings lists them")
	}
	f, err := o.openRecording(env, words[0])
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := recording.NewReader(f)
	if err != nil {
		return unreadable(words[0], err)
	}
	switch {
	case o.text:
		err = playText(env, r)
	case !tty.Is(env.Stdout):
		err = playAll(env, r)
	default:
		err = o.playTimed(ctx, env, r)
	}
	return unreadable(words[0], err)
}

// openRecording opens the file that a word names.
func (o *Options) openRecording(env *Env, word string) (*os.File, error) {
	path := word
	if !filepath.IsAbs(path) {
		path = filepath.Join(env.Dir, path)
	}
	f, err := safefile.Open(path)
	switch {
	case err == nil:
		return f, nil
	case !errors.Is(err, fs.ErrNotExist) || strings.Contains(word, "/"):
		return nil, explain.NewError("cannot open the recording %s: %v", syntax.QuoteFlag(word),
			explain.SystemCause(err))
	}
	dir, derr := o.store(env).Path()
	if derr == nil {
		f, derr = safefile.Open(filepath.Join(dir, word))
	}
	if derr != nil {
		return nil, explain.NewError("no recording %s; sallyport recordings lists them", syntax.QuoteFlag(word))
	}
	return f, nil
}

// unreadable is the error about a recording; nil for nil.
func unreadable(name string, err error) error {
	if of := new(recording.FormatError); errors.As(err, &of) {
		return explain.NewError("cannot play %s: %s", syntax.QuoteFlag(name),
			strings.TrimPrefix(of.Error(), "recording: "))
	}
	return err
}

// each calls f with each event.
func each(r *recording.Reader, f func(e recording.Event) error) error {
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = f(e)
		}
		if err != nil {
			return err
		}
	}
}

// playAll prints all output.
func playAll(env *Env, r *recording.Reader) error {
	return each(r, func(e recording.Event) error {
		if e.Code != 'o' {
			return nil
		}
		if _, err := io.WriteString(env.Stdout, e.Data); err != nil {
			return cannotWrite(err)
		}
		return nil
	})
}

// playText prints the lines that the terminal showed: those that left it at the top, and the last screen.
func playText(env *Env, r *recording.Reader) error {
	size := r.Header().Size
	screen := text.NewScreen(int(size.Cols), int(size.Rows))
	var lines strings.Builder
	screen.OnScroll = func(line string) { lines.WriteString(line + "\n") }
	err := each(r, func(e recording.Event) error {
		switch e.Code {
		case 'o':
			_, _ = screen.Write([]byte(e.Data)) // it does not fail
		case 'r':
			if s, ok := sizeOf(e.Data); ok {
				screen.Resize(int(s.Cols), int(s.Rows))
			}
		}
		if lines.Len() < 1<<20 {
			return nil
		}
		defer lines.Reset()
		return env.Print(lines.String())
	})
	if err != nil {
		return err
	}
	if last := screen.Snapshot().String(); last != "" {
		lines.WriteString(last + "\n")
	}
	return env.Print(lines.String())
}

// sizeOf reads "80x24".
func sizeOf(s string) (executor.Size, bool) {
	cols, rows, _ := strings.Cut(s, "x")
	c, err := strconv.ParseUint(cols, 10, 16)
	r, err2 := strconv.ParseUint(rows, 10, 16)
	return executor.Size{Cols: uint16(c), Rows: uint16(r)}, err == nil && err2 == nil
}

// errQuit ends a player at the wish of its user.
var errQuit = errors.New("the player was ended by a key")

// A player plays a recording on a terminal.
type player struct {
	printer
	term   *tty.Terminal // nil without keys
	keys   chan byte
	speed  float64
	limit  time.Duration // of a pause; negative for none
	at     time.Duration // of the last event
	due    time.Time     // when that was to be shown
	paused bool
	skip   bool // to the next mark
}

// playTimed plays a recording as it was.
func (o *Options) playTimed(ctx context.Context, env *Env, r *recording.Reader) error {
	p := &player{printer: printer{env: env}, speed: cmp.Or(o.speed, 1), limit: -1, due: time.Now(),
		keys: make(chan byte)}
	if o.idleLimit != nil {
		p.limit = *o.idleLimit
	} else if d := r.Header().IdleLimit; d > 0 {
		p.limit = d
	}
	p.filtered()
	ctx, end := context.WithCancel(ctx)
	defer end()
	if tty.Is(env.Stdin) && tty.Foreground(env.Stdin) {
		term, err := tty.Open(env.Stdin)
		if err != nil {
			return err
		}
		done := make(chan struct{})
		defer func() {
			end()
			_ = term.Close() // nothing could fix it
			<-done
		}()
		if err := term.Raw(false); err != nil {
			close(done)
			return err
		}
		p.term = term
		go func() {
			defer close(done)
			p.read(ctx)
		}()
	}
	err := each(r, func(e recording.Event) error { return p.event(ctx, e) })
	if p.modes.Left() && !tty.Plain() {
		away, _, _ := p.modes.Away()
		_, _ = io.WriteString(env.Stdout, away) // the terminal may be gone
	}
	if errors.Is(err, errQuit) {
		_, _ = io.WriteString(env.Stdout, "\r\n")
		return nil
	}
	return err
}

// read passes keys on until the terminal is closed.
func (p *player) read(ctx context.Context) {
	var b [16]byte
	for {
		n, err := p.term.Read(b[:])
		for _, key := range b[:n] {
			select {
			case p.keys <- key:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// event shows an event when it is due.
func (p *player) event(ctx context.Context, e recording.Event) error {
	pause := e.At - p.at
	p.at = e.At
	if p.limit >= 0 {
		pause = min(pause, p.limit)
	}
	pause = time.Duration(min(float64(pause)/p.speed, math.MaxInt64/2))
	if p.skip {
		p.due, pause = time.Now(), 0
	}
	p.due = p.due.Add(pause)
	switch e.Code {
	case 'm':
		if !p.paused { // a step goes to the next output
			if err := p.await(ctx); err != nil {
				return err
			}
		}
		if p.skip {
			p.skip, p.paused = false, true
		}
	case 'o':
		if err := p.await(ctx); err != nil {
			return err
		}
		shown := p.filters[0].pass([]byte(e.Data))
		p.modes.Follow(shown)
		if _, err := p.env.Stdout.Write(shown); err != nil {
			return cannotWrite(err)
		}
	}
	return nil
}

// await waits until the next output is due, and obeys keys meanwhile.
func (p *player) await(ctx context.Context) error {
	if p.skip {
		return ctx.Err()
	}
	left := time.Until(p.due)
	for {
		var timer <-chan time.Time
		if !p.paused {
			timer = time.After(left)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer:
			return nil
		case key := <-p.keys:
			if !p.paused {
				left = time.Until(p.due)
			}
			switch key {
			case 'q', 'Q', 3: // also control-C
				return errQuit
			case ' ':
				p.paused = !p.paused
			case ']':
				p.skip, p.paused = true, false
				return nil
			case '.':
				if p.paused {
					p.due = time.Now()
					return nil
				}
			}
			p.due = time.Now().Add(left)
		}
	}
}
