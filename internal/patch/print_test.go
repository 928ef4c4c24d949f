// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import "strings"

// String returns the text of a patch, from which [Parse] makes the same patch.
func (p *Patch) String() string {
	var b strings.Builder
	line := func(parts ...string) {
		for _, part := range parts {
			b.WriteString(part)
		}
		if strings.HasSuffix(parts[len(parts)-1], "\r") {
			b.WriteByte('\r') // the reader drops one
		}
		b.WriteByte('\n')
	}
	line(beginMark)
	if p.Environment != "" {
		line(envMark, " ", p.Environment)
	}
	for _, h := range p.Hunks {
		switch h.Kind {
		case Add:
			line(addMark, h.Path)
			for _, text := range h.Lines {
				line("+", text)
			}
		case Delete:
			line(deleteMark, h.Path)
		case Update:
			line(updateMark, h.Path)
			if h.To != "" {
				line(moveMark, h.To)
			}
			for _, c := range h.Chunks {
				c.print(line)
			}
		}
	}
	b.WriteString(endMark + "\n")
	return b.String()
}

func (c *Chunk) print(line func(...string)) {
	if c.HasContext {
		line("@@ ", c.Context)
	} else {
		line("@@")
	}
	for _, l := range c.Lines {
		line(string(rune(l.Op)), l.Text)
	}
	if c.End {
		line(eofMark)
	}
}
