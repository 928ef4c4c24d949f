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

	inputs "github.com/sallyport-dev/sallyport/internal/input"
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
	n, err := s.input.Do(ctx, p, false)
	return n, s.inputError(ctx, err)
}

// inputError returns the error of a write.
func (s *Session) inputError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil:
		return fmt.Errorf("sallyport: the write was canceled: %w", context.Cause(ctx))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrInputFull
	case errors.Is(err, io.ErrClosedPipe):
		return fmt.Errorf("%w: no process reads from it any more: %w", ErrInputClosed, io.ErrClosedPipe)
	case errors.Is(err, inputs.ErrEnded), errors.Is(err, os.ErrClosed) && s.input.Ended():
		return ErrInputClosed
	case errors.Is(err, os.ErrClosed), errors.Is(err, os.ErrProcessDone):
		return os.ErrProcessDone // there is no input any more
	}
	return fmt.Errorf("sallyport: cannot write to the session: %w", err)
}

// CloseInput ends the command's input. A terminal gets its end-of-file character and
// takes input afterwards; the error is ErrInputFull when the character cannot be typed
// because the command has read nothing for 2 seconds. It does nothing when the command has
// ended.
func (s *Session) CloseInput() error {
	s.use()
	if s.execution.cmd.TTY != nil {
		_, err := s.input.Do(context.Background(), nil, true)
		if err = s.inputError(context.Background(), err); errors.Is(err, os.ErrProcessDone) {
			return nil
		}
		return err
	}
	s.input.End()
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
	s.mu.Lock()
	s.size = &size // of another attempt as well
	s.mu.Unlock()
	if err := s.attempt.Load().process.Resize(size); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.screen != nil {
		usual := size.OrUsual()
		s.screen.Resize(int(usual.Cols), int(usual.Rows))
	}
	return nil
}
