// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strconv"
)

// ReadBack calls yield with the records of a log that are of a kind and have smaller numbers than before, the
// newest first; 0 is all of them. It reads no further than yield does: an error of yield ends it and is
// returned, and io.EOF ends it without one. Each line is checked by itself; that lines follow each other is
// for [Read]. Records have no Line. An empty dir means [DefaultDir].
func ReadBack(dir, kind string, before uint64, yield func(Record) error) error {
	s, err := openLog(dir)
	if err != nil {
		return err
	}
	defer s.close()
	mark := []byte(`","kind":"` + kind + `","body":`)
	for i, file := range slices.Backward(s.files) {
		name := filepath.Join(s.dir, s.names[i])
		err := scanBack(file, s.sizes[i], func(text []byte) error {
			const head = 256 // the members in front of the body are shorter
			if !bytes.Contains(text[:min(len(text), head)], mark) || before > 0 && numberOf(text) >= before {
				return nil
			}
			l, err := parseLine(text)
			r := Record{N: l.n, File: name, Time: l.time, Kind: l.kind, Body: l.body}
			if err != nil {
				r.Bad = err.Error()
			}
			return yield(r)
		})
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// numberOf returns the number of a line without looking at the rest of it.
func numberOf(text []byte) uint64 {
	digits, _, _ := bytes.Cut(bytes.TrimPrefix(text, []byte(`{"n":`)), []byte(","))
	n, _ := strconv.ParseUint(string(digits), 10, 64) // what is no line has the number 0
	return n
}

// scanBack calls f with the lines of a file of a size, without their ends and the last one first. What is
// behind the last end of a line is left out, and so are lines that are too long.
func scanBack(r io.ReaderAt, size int64, f func(text []byte) error) error {
	const block = 256 << 10
	var rest []byte // the begin of what was read: its line begins before it
	ended := false  // the end of the last line was seen
	for size > 0 {
		n := min(size, block)
		size -= n
		text := make([]byte, int(n), int(n)+len(rest))
		if _, err := r.ReadAt(text, size); err != nil {
			return err
		}
		text = append(text, rest...)
		for {
			at := bytes.LastIndexByte(text, '\n')
			if at < 0 {
				break
			}
			line := text[at+1:]
			text = text[:at]
			if ended && len(line) <= maxLine {
				if err := f(line); err != nil {
					return err
				}
			}
			ended = true
		}
		rest = text
		if !ended || len(rest) > maxLine {
			rest = rest[:min(len(rest), maxLine+1)] // no line of ours, whatever it is
		}
	}
	if ended && len(rest) <= maxLine {
		return f(rest)
	}
	return nil
}
