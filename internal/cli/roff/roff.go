// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package roff writes manual pages in the macros of man(7), which every man program reads.
package roff

import (
	"fmt"
	"strings"
)

// A Page is a manual page that is being written. The zero Page is empty; begin with Title.
type Page struct{ text strings.Builder }

// String returns the page so far.
func (p *Page) String() string { return p.text.String() }

func (p *Page) line(text string) { p.text.WriteString(text + "\n") }

// Title begins a page of section 1. It has no date: the same program prints the same page.
func (p *Page) Title(name, version string) {
	p.line(fmt.Sprintf(`.TH %s 1 "" "%s" "User Commands"`, Escape(strings.ToUpper(name)),
		Escape(version)))
}

// Section begins a section, in capital letters.
func (p *Page) Section(name string) { p.line(`.SH "` + Escape(name) + `"`) }

// Subsection begins a part of a section.
func (p *Page) Subsection(name string) { p.line(`.SS "` + Escape(name) + `"`) }

// Text writes words that are filled like a paragraph.
func (p *Page) Text(text string) { p.line(Escape(text)) }

// Body writes a help text: blocks with an empty line between them. Indented ones stay as
// they are, others become paragraphs.
func (p *Page) Body(text string) {
	for i, part := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if i > 0 {
			p.line(".PP")
		}
		if !strings.HasPrefix(part, "  ") {
			p.Text(part)
			continue
		}
		p.line(".nf")
		for line := range strings.SplitSeq(part, "\n") {
			p.Text(strings.TrimPrefix(line, "  "))
		}
		p.line(".fi")
	}
}

// Entry writes a term and what it means. The value, unless it is empty, follows the names
// in italics.
func (p *Page) Entry(names []string, value, meaning string) {
	for i, n := range names {
		names[i] = `\fB` + Escape(n) + `\fR`
	}
	head := strings.Join(names, ", ")
	if value != "" {
		head += ` \fI` + Escape(value) + `\fR`
	}
	p.line(".TP")
	p.line(head)
	p.Text(meaning)
}

// See writes the name of another page of section 1.
func (p *Page) See(name string) { p.line(`\fB` + Escape(name) + `\fR(1)`) }

// Escape returns text in which nothing is a request or an escape, dashes can be copied out
// of the page, and quotation marks stay what they are.
func Escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`,
		`\(dq`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
