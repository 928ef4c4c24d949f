// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// AuditLine is a record of the audit log on one line: when, of which run, what.
func AuditLine(r audit.Record, home string) string {
	if r.Bad != "" {
		return fmt.Sprintf("%s:%d: %s\n", text.Word(filepath.Base(r.File)), r.Line, text.Line(r.Bad))
	}
	var e event.Event
	kind, run, what := r.Kind, "", compact(r.Body)
	switch r.Kind {
	case RecordKind:
		if made, ok := ParseRecord(r.Body); ok {
			run, what = made.Run, Summary(made)
		}
	case "event":
		if e.UnmarshalJSON(r.Body) == nil {
			kind, run = e.Body.Kind(), e.Run
			what = cmp.Or(eventText(e.Body, home), what)
		}
	}
	const shortID = 12
	return fmt.Sprintf("%s  %-12s  %-18s  %s\n", r.Time.Local().Format(time.DateTime),
		text.Word(cmp.Or(run[:min(len(run), shortID)], "-")), text.Word(kind), what)
}

// compact is JSON for people, shortened.
func compact(body json.RawMessage) string {
	return cut(text.Line(string(body)), 200)
}

// eventText is what an event says; empty for those that are shown as they are.
func eventText(b event.Body, home string) string {
	switch b := b.(type) {
	case event.Judged:
		return text.Word(b.Decision) + ": " + shortWords(b.Args)
	case event.ApprovalRequested:
		return text.Line(b.Request.Reason) + ": " + text.Line(b.Request.Action())
	case event.ApprovalDecided:
		return fmt.Sprintf("%s by %s after %s", b.Decision, b.Source,
			time.Duration(b.WaitMS)*time.Millisecond)
	case event.Started:
		s := b.Sandbox
		return fmt.Sprintf("%s, network %s, level %s", text.Word(s.Mode), s.Network, text.Word(s.Level))
	case event.Denied:
		return Operation(b.Denial, home)
	case event.Network:
		return fmt.Sprintf("%s %s:%d (%s)", b.Decision, text.Word(b.Host), b.Port, b.Reason)
	case event.Granted:
		return Granted(b)
	case event.Exited:
		return fmt.Sprintf("exit code %d after %s", b.Code, b.Duration)
	case event.SandboxOutcome:
		return text.Word(b.Outcome)
	case event.Ended:
		s := text.Word(b.End)
		if b.Error != "" {
			s += ": " + text.Line(b.Error)
		}
		return s
	}
	return ""
}
