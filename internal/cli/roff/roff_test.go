// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package roff

import "testing"

func TestEscape(t *testing.T) {
	if got, want := Escape(".x\n'y\n\\fB -z\na.b"), "\\&.x\n\\(aqy\n\\efB \\-z\na.b"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestPage(t *testing.T) {
	var p Page
	p.Title("a-b", "a (devel)")
	p.Section("DESCRIPTION")
	p.Body("First\nline.\n\n  verbatim\n    more\n\n.Last.\n")
	p.Entry([]string{"-x", "--xx"}, "N", "sets 'x'")
	p.See("a")
	want := `.TH A\-B 1 "" "a (devel)" "User Commands"
.SH "DESCRIPTION"
First
line.
.PP
.nf
verbatim
  more
.fi
.PP
\&.Last.
.TP
\fB\-x\fR, \fB\-\-xx\fR \fIN\fR
sets \(aqx\(aq
\fBa\fR(1)
`
	if p.String() != want {
		t.Errorf("%s\nwant\n%s", p.String(), want)
	}
}
