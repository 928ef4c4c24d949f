// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// A Record is a line of a log.
type Record struct {
	N    uint64    // its number in the log; 0 where it cannot be read
	File string    // the path of its file
	Line int       // its number in the file, from 1
	Time time.Time // when it happened; zero where it cannot be read
	// Kind is "event" for events, or that of Log.Append, or a word of the log itself: segment, checkpoint,
	// recovered, lost. It is empty where it cannot be read.
	Kind string
	Body json.RawMessage // a JSON object; nil where it cannot be read. It is valid during the call only
	Bad  string          // why the line is none of this log; empty for a good one. Signatures do not count
}

// A Filter selects records. Each member that is not zero must fit; those about events fit no line of the
// log itself.
type Filter struct {
	Since, Until time.Time // from Since on, before Until
	Run          string    // the identity of a run, or what it begins with
	Kind         string    // of the record, or the type of the event
	// Program is the first word of a command, whole or its last component. It selects all of the run.
	Program string
	Host    string // that something was decided about
	Path    string // of a file that something was decided about, or a directory above it
	// Decision is the word of a decision, such as "approved" or "forbidden", and ApprovedBy who took one
	// that approves, such as "user".
	Decision   string
	ApprovedBy string
	Denied     bool // something was denied
}

// Files returns the paths of the files of a log, the oldest first, for those who want to [Read] the last ones
// only. An empty dir means [DefaultDir].
func Files(dir string) ([]string, error) {
	s, err := openLog(dir)
	if err != nil {
		return nil, err
	}
	s.close()
	var all []string
	for _, name := range s.names {
		all = append(all, filepath.Join(s.dir, name))
	}
	return all, nil
}

// Read calls yield with the records of a log, or of one file of it, that a filter selects, the oldest
// first. An empty dir means [DefaultDir]. Lines that do not verify are not hidden: Record.Bad says why, and
// every filter selects them. An error of yield ends it and is returned; [io.EOF] ends it without one.
func Read(dir string, f Filter, yield func(Record) error) error {
	s, err := openLog(dir)
	if err != nil {
		return err
	}
	defer s.close()
	r := reader{filter: f, runs: map[string]bool{}, chain: chain{plain: true}}
	for i, file := range s.files {
		n := 0
		name := filepath.Join(s.dir, s.names[i])
		_, half, err := scanLines(io.NewSectionReader(file, 0, s.sizes[i]), 0, func(text []byte) error {
			n++
			l, err := r.next(text, n == 1)
			r.count(&l, text)
			rec := Record{N: l.n, File: name, Line: n, Time: l.time, Kind: l.kind, Body: l.body}
			if err != nil {
				rec.Bad = err.Error()
			}
			if !r.selects(&rec) {
				return nil
			}
			return yield(rec)
		})
		if err == nil && half > 0 {
			err = yield(Record{File: name, Line: n + 1, Bad: fmt.Sprintf("it is half a line of %d bytes", half)})
		}
		if err == io.EOF { //nolint:errorlint // it is not wrapped where it means the end
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A reader is one call of Read.
type reader struct {
	chain
	filter Filter
	runs   map[string]bool // whose program was selected
}

// facts are the members of the bodies of events, and of the records of runs, that filters look at.
type facts struct {
	Type     string   `json:"type"`
	Run      string   `json:"run"`
	Args     []string `json:"argv"`
	Host     string   `json:"host"`
	Path     string   `json:"path"`
	Addr     string   `json:"addr"`
	Decision string   `json:"decision"`
	Source   string   `json:"source"`
	By       string   `json:"by"`

	Denials        []facts `json:"denials"`
	NetworkDenials []facts `json:"network_denials"`
}

func (r *reader) selects(rec *Record) bool {
	f := &r.filter
	if rec.Bad != "" {
		return true
	}
	if !f.Since.IsZero() && rec.Time.Before(f.Since) || !f.Until.IsZero() && !rec.Time.Before(f.Until) {
		return false
	}
	var b facts
	if f.asksBody() {
		_ = json.Unmarshal(rec.Body, &b) // what is of another shape is not selected by it
	}
	if f.Program != "" && len(b.Args) > 0 && (b.Args[0] == f.Program || path.Base(b.Args[0]) == f.Program) {
		r.runs[b.Run] = true
	}
	return (f.Kind == "" || rec.Kind == f.Kind || b.Type == f.Kind) &&
		(f.Run == "" || b.Run != "" && strings.HasPrefix(b.Run, f.Run)) &&
		(f.Program == "" || r.runs[b.Run]) && f.fits(&b)
}

// asksBody reports whether more has to be known than the line.
func (f *Filter) asksBody() bool {
	g := *f
	g.Since, g.Until = time.Time{}, time.Time{}
	return g != Filter{}
}

// fits reports whether what an event is about is selected.
func (f *Filter) fits(b *facts) bool {
	return (f.Host == "" || b.any(func(b *facts) bool { return b.Host == f.Host })) &&
		(f.Path == "" || b.any(func(b *facts) bool { return within(b.Path, f.Path) })) &&
		(f.Decision == "" || b.Decision == f.Decision) &&
		(f.ApprovedBy == "" || b.approvedBy() == f.ApprovedBy) &&
		(!f.Denied || b.denied())
}

// any reports whether something is true of an event, or of one that a record of a run lists.
func (b *facts) any(f func(*facts) bool) bool {
	if f(b) {
		return true
	}
	for _, list := range [][]facts{b.Denials, b.NetworkDenials} {
		for i := range list {
			if f(&list[i]) {
				return true
			}
		}
	}
	return false
}

func within(name, dir string) bool {
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(dir, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

func (b *facts) approvedBy() string {
	switch {
	case b.Type == "approval_decided" && b.approves():
		return b.Source
	case b.Type == "granted":
		return b.By
	}
	return ""
}

func (b *facts) approves() bool {
	return strings.HasPrefix(b.Decision, "approved") || b.Decision == "network_policy_amendment"
}

// denied reports whether something was denied.
func (b *facts) denied() bool {
	switch b.Type {
	case "denied", "quarantined":
		return true
	case "judged":
		return b.Decision == "forbidden"
	case "approval_decided":
		return !b.approves()
	case "network_decided":
		return b.Decision != "allow"
	}
	return len(b.Denials) > 0 || len(b.NetworkDenials) > 0
}
