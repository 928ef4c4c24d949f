// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package netproxy

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
)

// Bounds of what stands between the chunks of a body.
const (
	maxChunkLine = 1 << 10 // bytes of a size with its extensions
	maxTrailers  = 8 << 10 // bytes in all
)

// The ways in which the length of a body is known.
type bodyKind uint8

const (
	emptyBody bodyKind = iota
	sized
	chunked
	untilClose
)

// framing says where a body ends.
type framing struct {
	kind   bodyKind
	length int64 // of sized
}

// parseFraming reads Content-Length and Transfer-Encoding. Whatever two readers could understand
// differently is refused: both, one of them twice, an encoding other than chunked, a length that
// is not only digits.
func parseFraming(h *head, minor int) (framing, error) {
	lengths, encodings := h.values("Content-Length"), h.values("Transfer-Encoding")
	switch {
	case len(lengths)+len(encodings) > 1:
		return framing{}, malformed("more than one of Content-Length and Transfer-Encoding")
	case len(encodings) == 1:
		if minor == 0 || !strings.EqualFold(encodings[0], "chunked") {
			return framing{}, malformed("unsupported Transfer-Encoding")
		}
		return framing{kind: chunked}, nil
	case len(lengths) == 1:
		n, ok := parseSize(lengths[0], 10)
		if !ok {
			return framing{}, malformed("malformed Content-Length")
		}
		if n == 0 {
			return framing{kind: sized}, nil
		}
		return framing{kind: sized, length: n}, nil
	}
	return framing{kind: untilClose}, nil
}

// parseSize reads digits only: no sign, no blank, no prefix.
func parseSize(text string, base int) (int64, bool) {
	for i := range len(text) {
		if !isAlphanumeric(text[i]) {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(text, base, 63)
	return n, err == nil
}

// A body reads the data of a body, and nothing behind it. A body that is cut gives
// io.ErrUnexpectedEOF.
type body struct {
	r       *bufio.Reader
	kind    bodyKind
	left    int64 // of the body, or of the chunk
	between bool  // a chunk was read, the end of its line was not
	err     error
}

func newBody(r *bufio.Reader, f framing) *body {
	return &body{r: r, kind: f.kind, left: f.length}
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.read(p)
	if err != nil {
		b.err = err
	}
	return n, err
}

func (b *body) read(p []byte) (int, error) {
	switch b.kind {
	case untilClose:
		return b.r.Read(p)
	case chunked:
		if b.left == 0 {
			if err := b.nextChunk(); err != nil {
				return 0, whole(err)
			}
			if b.left == 0 {
				return 0, io.EOF
			}
		}
	}
	if b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	if b.left -= int64(n); b.left == 0 {
		b.between = b.kind == chunked
		err = nil
	}
	return n, whole(err)
}

// whole makes an end that came too early an error.
func whole(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// nextChunk reads a size, and behind the last chunk the trailers, which are dropped. Extensions
// are dropped too.
func (b *body) nextChunk() error {
	left := maxChunkLine
	if b.between {
		line, err := readLine(b.r, &left)
		if err != nil {
			return err
		}
		if line != "" {
			return malformed("a chunk is longer than its size")
		}
		b.between = false
	}
	line, err := readLine(b.r, &left)
	if err != nil {
		return err
	}
	size, _, _ := strings.Cut(line, ";")
	var ok bool
	if b.left, ok = parseSize(strings.TrimRight(size, " \t"), 16); !ok {
		return malformed("malformed size of a chunk")
	}
	if b.left > 0 {
		return nil
	}
	for left = maxTrailers; ; {
		line, err := readLine(b.r, &left)
		if err != nil || line == "" {
			return err
		}
		if _, err := parseField(line); err != nil {
			return err
		}
	}
}

// chunks writes each piece as a chunk.
type chunks struct{ w io.Writer }

// Write implements io.Writer.
func (c chunks) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil // that would be the end
	}
	out := strconv.AppendInt(make([]byte, 0, len(p)+20), int64(len(p)), 16)
	out = append(out, "\r\n"...)
	out = append(append(out, p...), "\r\n"...)
	if _, err := c.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// end writes the last chunk.
func (c chunks) end() error {
	_, err := io.WriteString(c.w, "0\r\n\r\n")
	return err
}

// copyBody copies a body with a new framing: in chunks, or its data alone.
func copyBody(w io.Writer, b io.Reader, inChunks bool) error {
	if !inChunks {
		_, err := io.Copy(writerOnly{w}, b)
		return err
	}
	if _, err := io.Copy(chunks{w}, b); err != nil {
		return err
	}
	return chunks{w}.end()
}

// writerOnly has no other method than Write: a copy that knows more would write past it.
type writerOnly struct{ io.Writer }
