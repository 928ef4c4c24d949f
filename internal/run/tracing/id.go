// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"encoding/hex"

	"github.com/sallyport-dev/sallyport/event"
)

// An ID is a span in its trace.
type ID struct {
	Trace   [16]byte
	Span    [8]byte
	Sampled bool // the caller records it
}

// Parse reads the traceparent of a context, and reports whether it is valid.
func Parse(t event.TraceContext) (id ID, ok bool) {
	p := t.Valid().Parent
	if p == "" {
		return ID{}, false
	}
	var flags [1]byte
	for _, part := range []struct {
		to   []byte
		from string
	}{{id.Trace[:], p[3:35]}, {id.Span[:], p[36:52]}, {flags[:], p[53:]}} {
		if _, err := hex.Decode(part.to, []byte(part.from)); err != nil {
			return ID{}, false
		}
	}
	id.Sampled = flags[0]&1 == 1
	return id, true
}

// String returns the traceparent.
func (id ID) String() string {
	flags := "-00"
	if id.Sampled {
		flags = "-01"
	}
	return "00-" + hex.EncodeToString(id.Trace[:]) + "-" + hex.EncodeToString(id.Span[:]) + flags
}
