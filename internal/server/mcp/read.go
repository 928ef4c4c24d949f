// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A reading is what the arguments of read ask for.
type reading struct {
	stream            string
	start, most       int // lines; 0 for those that the budget has room for
	from              uint64
	ranged            bool // start or cursor was given
	search            *regexp.Regexp
	context, matches  int
	tokens            int
	to                uint64
	total, missing    uint64
	lines, last, room int // lines there are, the last one that was shown, bytes of JSON that are left
	end               uint64
	full              bool
	out               strings.Builder
}

// read returns parts of the output of a run.
func (s *Server) read(c *call) (*answer, error) {
	r, err := s.find(c)
	if err != nil {
		return nil, err
	}
	q := c.args.reading(r)
	if c.args.err != nil {
		return nil, c.args.err
	}
	res, _ := r.Result() // an error says that there is none yet
	a, err := newAnswer(r.ID(), res)
	if err != nil {
		return nil, err
	}
	if q.to, _ = r.Size(); res == nil {
		a.facts["cwd"] = r.Info().Dir
		a.say("running; session_id %s", r.ID())
	}
	switch {
	case q.search != nil:
		q.find(a, r)
	case !q.ranged && q.stream == everyStream && q.most == 0:
		q.count(r)
		a.show(r, 0, q.tokens)
		q.start, q.last = min(q.lines, 1), q.lines
	default:
		q.inRange(a, r)
	}
	a.facts["start_line"], a.facts["end_line"] = q.start, q.last
	a.facts["lines_total"], a.facts["bytes_total"] = q.lines, q.total
	return a, nil
}

// reading reads the arguments of read.
func (a *arguments) reading(r *runs.Run) *reading {
	q := &reading{stream: a.text("stream"), start: a.whole("start_line", 1), most: a.within("max_lines", 0,
		0, 1<<30),
		context: a.within("context", 2, 0, 100), matches: a.within("max_matches", 20, 0, 1000),
		tokens: a.tokens()}
	_, started := a.from["start_line"]
	_, goesOn := a.from["cursor"]
	if q.ranged = started || goesOn; goesOn {
		q.from = a.offset(r)
	}
	switch q.stream {
	case "":
		q.stream = everyStream
	case everyStream, "stdout", "stderr":
	default:
		a.fail("stream", "unknown stream %s; use output, stdout or stderr", syntax.QuoteFlag(q.stream))
	}
	if pattern := a.text("search"); pattern != "" {
		var err error
		if q.search, err = regexp.Compile(pattern); err != nil {
			a.fail("search", "%v; use RE2 syntax, and \\ before characters that mean themselves", err)
		}
	}
	q.room = bytesPerToken * q.tokens
	return q
}

// count counts the lines and bytes of the stream.
func (q *reading) count(r *runs.Run) {
	q.lines = 0
	q.total, q.missing = lines(r, q.stream, 0, q.to, func(line) bool {
		q.lines++
		return true
	})
}

// add adds a line, as far as there is room, and reports whether there was.
func (q *reading) add(s string) bool {
	if n := quoted(s) + 2; n > q.room { //nolint:mnd // its newline
		s, q.full = first(s, max(q.room-2, 0)), true
		if q.out.Len() > 0 || s == "" {
			return false
		}
	}
	q.room -= quoted(s) + 2
	q.out.WriteString(s + "\n")
	return true
}

// inRange shows lines from a line or an offset on, in their order.
func (q *reading) inRange(a *answer, r *runs.Run) {
	q.count(r)
	if q.start < 0 {
		q.start = max(q.lines+1+q.start, 1)
	}
	q.start = max(q.start, 1)
	begin, shown := 0, uint64(0)
	q.end = q.from
	lines(r, q.stream, 0, q.to, func(l line) bool {
		if l.number < q.start || l.end <= q.from && l.start < q.from {
			return true
		}
		if q.most > 0 && begin > 0 && l.number >= begin+q.most || !q.add(text.Decode(l.text)) {
			return false
		}
		if begin == 0 {
			begin = l.number
		}
		q.last, q.end, shown = l.number, l.end, shown+l.end-l.start
		return true
	})
	q.start = begin
	left := q.to - min(q.to, max(q.end, q.from))
	a.facts["output"], a.facts["cursor"] = q.out.String(), cursorOf(r, q.end)
	a.facts["truncated"], a.facts["original_token_count"] = q.full,
		text.TokenCount(int(shown+left)) //nolint:gosec // retained
	a.shown = q.out.String()
	if q.full {
		a.facts["omitted_bytes"] = left
		a.say("%d bytes follow: go on with cursor %s", left, cursorOf(r, q.end))
		a.links = append(a.links, linkTo(r))
	}
	a.say("lines %d to %d of %d", q.start, q.last, q.lines)
}

// find shows the lines that match, and those around them.
func (q *reading) find(a *answer, r *runs.Run) {
	type match struct {
		Line int    `json:"line"`
		Text string `json:"text"`
	}
	found, total, after := []match{}, 0, 0
	q.room /= 2 // the matches are there twice
	room := q.room
	var before []string
	show := func(n int, mark, s string) {
		if q.last > 0 && n > q.last+1 {
			q.add("--")
		}
		if q.full = q.full || !q.add(fmt.Sprintf("%d%s%s", n, mark, s)); !q.full {
			if q.last = n; q.start == 0 {
				q.start = n
			}
		}
	}
	q.start = 0
	q.total, q.missing = lines(r, q.stream, 0, q.to, func(l line) bool {
		q.lines = l.number
		is := q.search.Match(l.text)
		if is {
			total++
		}
		shown := shortened(text.Decode(l.text), maxFacts)
		switch {
		case is && len(found) < q.matches && !q.full:
			for i, s := range before {
				show(l.number-len(before)+i, "- ", s)
			}
			show(l.number, ": ", shown)
			entry := match{l.number, first(shown, room)}
			const around = 30 // the names of its members
			if room -= quoted(entry.Text) + around; room > 0 {
				found = append(found, entry)
			}
			before, after = nil, q.context
			return true
		case after > 0 && !q.full:
			after--
			show(l.number, "- ", shown)
			return true
		}
		if before = append(before, shown); len(before) > q.context {
			before = before[1:]
		}
		return true
	})
	a.facts["matches"], a.facts["matches_total"] = found, total
	a.facts["output"], a.facts["truncated"] = q.out.String(), q.full
	a.facts["original_token_count"], a.facts["cursor"] = text.TokenCount(q.out.Len()), cursorOf(r, q.to)
	a.shown = q.out.String()
	a.say("%d of %d matching lines", len(found), total)
	if q.full {
		a.links = append(a.links, linkTo(r))
	}
}
