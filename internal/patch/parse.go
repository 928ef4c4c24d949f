// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"fmt"
	"strings"
	"unicode"
)

// A Kind says what a hunk does with its file.
type Kind int

// The kinds of hunks.
const (
	Add Kind = iota + 1
	Delete
	Update
)

// A Patch is a text that was read.
type Patch struct {
	Environment string // the id of an environment; empty if the text names none
	Hunks       []Hunk
}

// A Hunk is what a patch says about one file.
type Hunk struct {
	Kind   Kind
	Path   string
	To     string   // of an Update: where the file is moved; empty if it stays
	Lines  []string // of an Add: the content
	Chunks []Chunk  // of an Update: at least one
}

// A Chunk is one place of a file and what becomes of it.
type Chunk struct {
	Context string // a line after which the place is looked for, if HasContext
	Lines   []Line // at least one
	End     bool   // the place is the end of the file

	HasContext bool
}

// A Line is one line of a chunk.
type Line struct {
	Op   byte // ' ' is kept, '-' is removed, '+' is added
	Text string
}

// A SyntaxError says why a text is no patch.
type SyntaxError struct {
	Line int // of the wrong line, from 1 in the text without a wrapper; 0 if the whole text is meant
	Why  string
}

// Error returns the sentence that the tool prints.
func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return "Invalid patch: " + e.Why
	}
	return fmt.Sprintf("Invalid patch hunk on line %d: %s", e.Line, e.Why)
}

const (
	beginMark  = "*** Begin Patch"
	endMark    = "*** End Patch"
	envMark    = "*** Environment ID:"
	addMark    = "*** Add File: "
	deleteMark = "*** Delete File: "
	updateMark = "*** Update File: "
	moveMark   = "*** Move to: "
	eofMark    = "*** End of File"

	fewestWrapped = 4 // lines of a text with a wrapper

	maxHunks = 10_000 // what is done for a hunk grows with their number
)

var (
	errFirst    = &SyntaxError{Why: "The first line of the patch must be '" + beginMark + "'"}
	errLast     = &SyntaxError{Why: "The last line of the patch must be '" + endMark + "'"}
	errEnvEmpty = &SyntaxError{Why: "apply_patch environment_id cannot be empty"}
	errHunks    = &SyntaxError{Why: fmt.Sprintf("it has more than %d hunks; split it", maxHunks)}
	errEnvTwice = &SyntaxError{Why: "apply_patch environment_id cannot be specified more than once"}
)

// Parse reads a patch. The error is a [*SyntaxError].
func Parse(text string) (*Patch, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, errLast
	}
	p := parser{lines: unwrap(strings.Split(text, "\n"))}
	for i, line := range p.lines {
		p.lines[i] = strings.TrimSuffix(line, "\r")
	}
	if strings.TrimSpace(p.lines[0]) != beginMark {
		return nil, errFirst
	}
	last := len(p.lines) - 1
	if strings.TrimSpace(p.lines[last]) != endMark || last == 0 {
		return nil, errLast
	}
	p.last, p.at = last, 1
	if err := p.environment(); err != nil {
		return nil, err
	}
	for !p.ended() {
		if err := p.hunk(); err != nil {
			return nil, err
		}
		if len(p.patch.Hunks) > maxHunks {
			return nil, errHunks
		}
	}
	if p.at < p.last-1 { // one end mark more, as the very last line, is accepted
		return nil, errLast
	}
	return &p.patch, nil
}

// unwrap peels a here-document off whose tag is EOF.
func unwrap(lines []string) []string {
	last := len(lines) - 1
	if len(lines) < fewestWrapped || !strings.HasSuffix(strings.TrimSpace(lines[last]), "EOF") {
		return lines
	}
	switch strings.TrimSuffix(lines[0], "\r") {
	case "<<EOF", "<<'EOF'", `<<"EOF"`:
		return lines[1:last]
	}
	return lines
}

// A parser reads the lines of a patch in their order.
type parser struct {
	lines []string
	at    int // the line that is next, from 0
	last  int // the line that ends the patch
	patch Patch
}

func (p *parser) fail(line int, format string, args ...any) error {
	return &SyntaxError{Line: line + 1, Why: fmt.Sprintf(format, args...)}
}

// ended reports whether the end mark is next. The very last line is one, however far it is indented.
func (p *parser) ended() bool {
	return p.at >= p.last || strings.TrimSpace(p.lines[p.at]) == endMark
}

func (p *parser) environment() error {
	for ; p.at < p.last; p.at++ {
		id, ok := strings.CutPrefix(strings.TrimSpace(p.lines[p.at]), envMark)
		if !ok {
			return nil
		}
		if p.patch.Environment != "" {
			return errEnvTwice
		}
		if p.patch.Environment = strings.TrimSpace(id); p.patch.Environment == "" {
			return errEnvEmpty
		}
	}
	return nil
}

// header reads a line that begins a hunk.
func header(line string) (h Hunk, ok bool) {
	for mark, kind := range map[string]Kind{addMark: Add, deleteMark: Delete, updateMark: Update} {
		if path, ok := strings.CutPrefix(line, mark); ok {
			return Hunk{Kind: kind, Path: path}, true
		}
	}
	return Hunk{}, false
}

func (p *parser) hunk() error {
	line := strings.TrimSpace(p.lines[p.at])
	h, ok := header(line)
	if !ok {
		return p.fail(p.at, "'%s' is not a valid hunk header. Valid hunk headers: "+
			"'%s{path}', '%s{path}', '%s{path}'", line, addMark, deleteMark, updateMark)
	}
	start := p.at
	p.at++
	switch h.Kind {
	case Add:
		for ; p.at < p.last && strings.HasPrefix(p.lines[p.at], "+"); p.at++ {
			h.Lines = append(h.Lines, p.lines[p.at][1:])
		}
	case Update:
		if err := p.update(&h, start); err != nil {
			return err
		}
	}
	p.patch.Hunks = append(p.patch.Hunks, h)
	return nil
}

// update reads the chunks of a hunk whose header is in the line start.
func (p *parser) update(h *Hunk, start int) error {
	if to, ok := strings.CutPrefix(trimRight(p.lines[p.at]), moveMark); ok && p.at < p.last {
		h.To = to
		p.at++
	}
	var c *Chunk // that is being read
	closed := false
	for ; !p.closes(); p.at++ {
		line := p.lines[p.at]
		mark := trimRight(line)
		isChunk := mark == "@@" || strings.HasPrefix(line, "@@ ")
		switch {
		case isChunk && (c == nil || len(c.Lines) > 0):
			h.Chunks = append(h.Chunks, Chunk{})
			c, closed = &h.Chunks[len(h.Chunks)-1], false
			if mark != "@@" {
				c.Context, c.HasContext = line[len("@@ "):], true
			}
			continue
		case closed && line == "":
			continue
		case closed:
			return p.unexpected(line, c)
		case mark == eofMark:
			if c == nil || len(c.Lines) == 0 {
				return p.fail(p.at, "Update hunk does not contain any lines")
			}
			c.End, closed = true, true
			continue
		case line != "" && !strings.ContainsRune(" +-", rune(line[0])):
			return p.unexpected(line, c)
		}
		if c == nil {
			h.Chunks = append(h.Chunks, Chunk{})
			c = &h.Chunks[0]
		}
		if line == "" {
			line = " "
		}
		c.Lines = append(c.Lines, Line{Op: line[0], Text: line[1:]})
	}
	switch {
	case c == nil:
		return p.fail(start, "Update file hunk for path '%s' is empty", h.Path)
	case len(c.Lines) == 0:
		return p.fail(p.at, "Update hunk does not contain any lines")
	}
	return nil
}

// closes reports whether the next line ends an update. One that is indented is a line of the file.
func (p *parser) closes() bool {
	if p.at >= p.last {
		return true
	}
	mark := trimRight(p.lines[p.at])
	_, ok := header(mark)
	return ok || mark == endMark
}

func (p *parser) unexpected(line string, c *Chunk) error {
	if c == nil || len(c.Lines) == 0 {
		return p.fail(p.at, "Unexpected line found in update hunk: '%s'. Every line should start with "+
			"' ' (context line), '+' (added line), or '-' (removed line)", line)
	}
	return p.fail(p.at, "Expected update hunk to start with a @@ context marker, got: '%s'", line)
}

func trimRight(s string) string { return strings.TrimRightFunc(s, unicode.IsSpace) }
