// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// MaxLine is the longest line in bytes.
const MaxLine = 64 << 20

// ErrTooLong is the error for a line that is longer than MaxLine, and a WebSocket message that is
// longer than MaxFrame. What comes behind that line can be read, behind that message nothing.
var ErrTooLong = errors.New("a message is too long")

// lines is a Stream of one message a line.
type lines struct {
	in    *bufio.Reader
	most  int  // bytes of a line
	long  bool // the rest of a line that is too long comes next
	out   io.Writer
	close func() error
	buf   []byte // of Write
}

// Lines returns a Stream that reads one message a line from in, which ends with LF or CRLF, and
// writes one a line to out. Empty lines are skipped. Its Close closes both.
func Lines(in io.ReadCloser, out io.WriteCloser) Stream {
	return newLines(in, out, func() error { return errors.Join(in.Close(), out.Close()) })
}

// ShortLines is Lines for lines of at most so many bytes. Its Close closes in only.
func ShortLines(in io.ReadCloser, out io.Writer, most int) Stream {
	l := newLines(in, out, in.Close)
	l.most = most
	return l
}

// LinesOn is Lines for a connection, which is closed once.
func LinesOn(c io.ReadWriteCloser) Stream { return newLines(c, c, c.Close) }

func newLines(in io.Reader, out io.Writer, end func() error) *lines {
	return &lines{in: bufio.NewReaderSize(in, 64<<10), most: MaxLine, out: out, close: sync.OnceValue(end)}
}

func (l *lines) Read() ([]byte, error) {
	for {
		line, err := l.line()
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")); len(line) > 0 {
			return line, nil
		}
	}
}

// line reads a line of at most l.most bytes. The last one may have no end.
func (l *lines) line() ([]byte, error) {
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		switch {
		case l.long:
			l.long, part = errors.Is(err, bufio.ErrBufferFull), nil
			if err == nil {
				continue
			}
		case len(line)+len(part) > l.most:
			l.long = errors.Is(err, bufio.ErrBufferFull)
			return nil, ErrTooLong
		}
		line = append(line, part...)
		switch {
		case err == nil, errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		case errors.Is(err, io.EOF):
			return nil, io.EOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("cannot read the next message: %w", err)
		}
	}
}

func (l *lines) Write(message []byte) error {
	l.buf = append(append(l.buf[:0], message...), '\n')
	if _, err := l.out.Write(l.buf); err != nil {
		return fmt.Errorf("cannot write a message: %w", err)
	}
	if cap(l.buf) > 1<<20 { // one large message does not keep its memory
		l.buf = nil
	}
	return nil
}

func (l *lines) Close() error { return l.close() }
