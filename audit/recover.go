// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// recover finds the end of a log whose files are not as the file of the checkpoint says, because a writer
// was killed or the disk was full, or because they were changed. It trusts what that file says (c; nil
// where it cannot be read), so that lines which were cut off are missed for good, and takes lines that
// follow as written. Cur is nil where there is no current file; used says that there was a checkpoint.
func (s *store) recover(c *cursor, cur *os.File, used bool) (*cursor, error) {
	if c == nil {
		var err error
		if c, err = s.rebuild(cur); err != nil {
			return nil, err
		}
		if used || c.N > 0 {
			c.found = append(c.found, "the checkpoint was missing or damaged")
		}
	} else if _, err := s.dir.Lstat(rotatedName(c.First)); err == nil {
		c.First, c.Offset = c.N+1, 0 // it was rotated
	} else if cur == nil {
		c.found = append(c.found, fmt.Sprintf("the file of lines %d to %d was missing", c.First, c.N))
		c.First, c.Offset = c.N+1, 0
	}
	if cur == nil {
		return c, nil
	}
	st, err := cur.Stat()
	if err != nil {
		return nil, err
	}
	if missing := c.Offset - st.Size(); missing > 0 {
		c.found = append(c.found, fmt.Sprintf("%d bytes were missing from the end", missing))
		err = s.behind(cur, &cursor{}, c)
	} else {
		err = s.behind(cur, c, c)
	}
	if c.Offset > 0 && c.First > c.N {
		c.First = c.N // so that it can be rotated; its first line is not one that follows
	}
	return c, err
}

// behind takes the lines of a file from an offset, and cuts off half a line at its end. What does not
// follow is left for those who verify.
func (s *store) behind(cur *os.File, from, c *cursor) error {
	next, foreign := from == c, 0
	end, half, err := scanLines(cur, from.Offset, func(text []byte) error {
		l, err := parseLine(text)
		if next = next && err == nil && l.n == c.N+1 && l.prev == c.Prev; !next {
			foreign++
			return nil
		}
		if c.N+1 == c.First {
			c.Began = l.time
		}
		c.Prev = l.hash
		c.grow(text)
		return nil
	})
	if err != nil {
		return err
	}
	if half > 0 {
		c.found = append(c.found, fmt.Sprintf("half a line of %d bytes was at the end", half))
		if err := s.file(cur).Truncate(end); err != nil {
			return err
		}
	}
	if from == c && foreign > 0 {
		c.found = append(c.found, fmt.Sprintf("%d lines at the end did not follow", foreign))
	}
	c.Offset = end
	return nil
}

// rebuild begins a cursor with the first line of the last file.
func (s *store) rebuild(cur *os.File) (*cursor, error) {
	c := &cursor{First: 1}
	if cur != nil && c.begin(cur) {
		return c, nil
	}
	all, err := s.rotated()
	if err != nil || len(all) == 0 {
		return c, err
	}
	last := all[len(all)-1]
	f, err := s.dir.OpenFile(last.name, os.O_RDONLY|safefile.NoWait, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c.begin(f)
	_, _, err = scanLines(f, 0, func(text []byte) error {
		if l, err := parseLine(text); err == nil && l.n == c.N+1 && l.prev == c.Prev {
			c.Prev = l.hash
			c.grow(text)
		}
		return nil
	})
	c.First = c.N + 1
	return c, err
}

// begin sets the cursor before the first line of a file, and reports whether it has a good one.
func (c *cursor) begin(f io.ReaderAt) bool {
	found := false
	_, _, _ = scanLines(f, 0, func(text []byte) error { // no good line is the answer
		l, err := parseLine(text)
		var first segment
		if err == nil && l.kind == kindSegment && json.Unmarshal(l.body, &first) == nil {
			c.First, c.N, c.Prev, c.Edge = l.n, l.n-1, l.prev, first.Edge
			found = (&tree{c.N, c.Edge}).fits()
		}
		return io.EOF
	})
	if !found {
		*c = cursor{First: 1}
	}
	return found
}

// recovered is the line that says what was found.
func (c *cursor) recovered(now time.Time) *entry {
	body, _ := json.Marshal(map[string][]string{"found": c.found}) // text can be encoded
	c.found = nil
	return &entry{now, kindRecovered, body}
}

// scanLines calls f with the lines of a file from an offset. It returns where the last whole line ends, and
// how many bytes follow. An error of f ends it.
func scanLines(r io.ReaderAt, from int64, f func(text []byte) error) (end, half int64, err error) {
	const large = 64 << 10
	in := bufio.NewReaderSize(io.NewSectionReader(r, from, 1<<62), large)
	var long []byte // a line that is larger than the buffer
	for end = from; ; {
		text, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if len(long) <= maxLine { // more is no line of ours, whatever it is
				long = append(long, text...)
			}
			half += int64(len(text))
			continue
		}
		size := half + int64(len(text))
		if errors.Is(err, io.EOF) {
			return end, size, nil
		}
		if err != nil {
			return end, size, err
		}
		if len(long) > 0 {
			text, long = append(long, text...), nil
		}
		end, half = end+size, 0
		if err := f(bytes.TrimSuffix(text, []byte("\n"))); err != nil {
			return end, 0, err
		}
	}
}
