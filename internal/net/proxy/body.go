// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

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

// A body reads the data of a body, and nothing behind it. One that is cut gives io.ErrUnexpectedEOF.
// Trailers and extensions are dropped.
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
func (b *body) Read(p []byte) (n int, err error) {
	if b.err == nil {
		n, b.err = b.read(p)
	}
	return n, b.err
}

func (b *body) read(p []byte) (int, error) {
	if b.kind == unframed {
		return b.r.Read(p)
	}
	if b.kind == chunked && b.left == 0 {
		if err := b.nextChunk(); err != nil {
			return 0, whole(err)
		}
	}
	if b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	if b.left -= int64(n); b.left == 0 {
		b.between, err = true, nil
	}
	return n, whole(err)
}

// nextChunk reads a size, and behind the last chunk the trailers.
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
	}
	line, err := readLine(b.r, &left)
	if err != nil {
		return err
	}
	size, _, _ := strings.Cut(line, ";")
	n, err := strconv.ParseUint(strings.TrimRight(size, " \t"), 16, 63) // digits only
	if err != nil {
		return malformed("malformed size of a chunk")
	}
	if b.left = int64(n); n == 0 {
		left = maxTrailers
		_, err = readHeader(b.r, &left)
	}
	return err
}

// whole makes an end that came too early an error.
func whole(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// chunks writes each piece as a chunk, at once.
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

// copyBody copies a body with a new framing: in chunks, or its data alone.
func copyBody(w io.Writer, b io.Reader, inChunks bool) error {
	if !inChunks {
		_, err := io.Copy(writerOnly{w}, b)
		return err
	}
	if _, err := io.Copy(chunks{w}, b); err != nil {
		return err
	}
	_, err := io.WriteString(w, "0\r\n\r\n")
	return err
}

// writerOnly has no other method than Write: a copy that knows more would write past it.
type writerOnly struct{ io.Writer }
