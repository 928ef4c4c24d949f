// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// The reasons why a session takes no input, for errors.Is.
var (
	// ErrInputClosed says that the command has no input that can be written to.
	ErrInputClosed = errors.New("sallyport: the session's input is closed; start it with a TTY or with OpenStdin to write to it")
	// ErrInputFull says that the command does not read: earlier input fills the
	// terminal or the pipe.
	ErrInputFull = errors.New("sallyport: input buffer full: the command is not reading")
)

// inputPatience is how long a write waits for a command that does not read.
const inputPatience = 2 * time.Second

// Write writes to the command's input, or types on its terminal. It returns how many
// bytes were taken: all of them, or an error, which is ErrInputClosed, os.ErrProcessDone,
// or ErrInputFull when the command has read nothing for 2 seconds.
func (s *Session) Write(p []byte) (int, error) {
	s.use()
	return s.write(context.Background(), p)
}

// write is Write that ends with ctx.
func (s *Session) write(ctx context.Context, p []byte) (int, error) {
	if s.over() {
		return 0, os.ErrProcessDone
	}
	s.mu.Lock()
	closed := s.inputEnded || !s.execution.pipe && s.execution.cmd.TTY == nil
	s.mu.Unlock()
	if closed {
		return 0, ErrInputClosed
	}
	sum := 0
	err := s.put(ctx, func() error {
		n, err := s.attempt.Load().process.Write(p[sum:])
		sum += n
		return err
	})
	return sum, err
}

// put calls f, which writes, as long as it makes progress, that is returns io.ErrShortWrite.
// Calls of put take turns: they share one deadline, and input must not be interleaved.
func (s *Session) put(ctx context.Context, f func() error) error {
	select {
	case s.writeTurn <- struct{}{}:
	case <-s.done:
		return os.ErrProcessDone
	case <-ctx.Done():
		return writeCanceled(ctx)
	}
	defer func() { <-s.writeTurn }()
	process := s.attempt.Load().process
	cut := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(cut)
		_ = process.SetInputDeadline(time.Unix(1, 0))
	})
	defer func() {
		if !stop() {
			<-cut // otherwise the deadline could hit the next write
		}
	}()
	for {
		err := process.SetInputDeadline(time.Now().Add(inputPatience))
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return s.noInput()
		}
		// The check follows the new deadline, which would hide the end of ctx.
		if ctx.Err() != nil {
			return writeCanceled(ctx)
		}
		switch err := f(); {
		case err == nil:
			return nil
		case errors.Is(err, io.ErrShortWrite):
			continue // the command has read, and may go on
		case errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil:
			return writeCanceled(ctx)
		case errors.Is(err, os.ErrDeadlineExceeded):
			return ErrInputFull
		case errors.Is(err, io.ErrClosedPipe):
			return fmt.Errorf("%w: no process reads from it any more: %w", ErrInputClosed, io.ErrClosedPipe)
		case errors.Is(err, os.ErrClosed):
			return s.noInput()
		default:
			return fmt.Errorf("sallyport: cannot write to the session: %w", err)
		}
	}
}

func writeCanceled(ctx context.Context) error {
	return fmt.Errorf("sallyport: the write was canceled: %w", context.Cause(ctx))
}

// noInput returns why there is no input any more.
func (s *Session) noInput() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inputEnded {
		return ErrInputClosed
	}
	return os.ErrProcessDone
}

// CloseInput ends the command's input. A terminal gets its end-of-file character and
// takes input afterwards; the error is ErrInputFull when the character cannot be typed
// because the command has read nothing for 2 seconds. It does nothing when the command has
// ended.
func (s *Session) CloseInput() error {
	s.use()
	if s.execution.cmd.TTY != nil {
		err := s.put(context.Background(), s.attempt.Load().process.CloseInput)
		if errors.Is(err, os.ErrProcessDone) {
			return nil
		}
		return err
	}
	s.mu.Lock()
	s.inputEnded = true
	s.mu.Unlock()
	if err := s.attempt.Load().process.CloseInput(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("sallyport: cannot end the session's input: %w", err)
	}
	return nil
}

// Signal sends a signal by number to the command's process group; on a terminal SIGINT,
// SIGQUIT and SIGTSTP go to the foreground process group, as the keys do. It returns
// os.ErrProcessDone when the command has ended.
func (s *Session) Signal(sig int) error {
	s.use()
	return s.attempt.Load().process.Signal(sig)
}

// Interrupt sends SIGINT, which has the same number everywhere.
func (s *Session) Interrupt() error {
	const sigint = 2
	return s.Signal(sigint)
}

// Resize changes the size of the terminal. It returns os.ErrProcessDone when the command
// has ended, and an error that is errors.ErrUnsupported without a terminal.
func (s *Session) Resize(size Size) error {
	s.use()
	if s.execution.cmd.TTY == nil {
		return fmt.Errorf("sallyport: the session has no terminal: %w", errors.ErrUnsupported)
	}
	if err := s.attempt.Load().process.Resize(size); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.screen != nil {
		size = size.OrUsual()
		s.screen.Resize(int(size.Cols), int(size.Rows))
	}
	return nil
}
