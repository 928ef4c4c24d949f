// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/command/environ"
)

// The bounds of a record, in bytes.
const (
	maxLine  = 256 << 10
	maxArgs  = 64 << 10 // what is kept of all arguments together
	maxFlags = 8 << 10  // and of all flags
	maxWord  = 16 << 10 // and of one
	maxError = 4 << 10
)

// RecordKind is the kind of a record in the audit log.
const RecordKind = "run"

// RecordVersion is the member "v" of a record. It changes when a member changes its meaning.
const RecordVersion = 1

// Body returns the JSON form, at most 256 KiB, for the audit log. What the command printed and values that
// look like secrets are left out. The record must have a Run.
func (r Record) Body() (json.RawMessage, error) {
	if r.Run == "" {
		return nil, errors.New("a run without an identity")
	}
	res := r.Result
	res.Stdout, res.Stderr, res.Output = res.Stdout.WithoutText(), res.Stderr.WithoutText(),
		res.Output.WithoutText()
	if s := res.Stage; s != nil { // which has its changes
		res.Stage = &executor.Staged{ID: s.ID, Name: s.Name, Total: s.Total}
	}
	res.Args = shorten(environ.Mask(res.Args), maxArgs)
	res.Error = cut(res.Error, maxError)
	res.Survivors = slices.Clone(res.Survivors)
	for i := range res.Survivors {
		res.Survivors[i].Command = cut(environ.MaskText(res.Survivors[i].Command), maxError)
	}
	head, err := json.Marshal(header{RecordVersion, r.Start.UTC(),
		append([]string{}, shorten(environ.Mask(r.Flags), maxFlags)...)})
	if err != nil {
		return nil, err
	}
	for {
		body, err := res.MarshalJSON()
		if err != nil {
			return nil, err
		}
		if len(head)+len(body) <= maxLine {
			head[len(head)-1] = ','
			return slices.Concat(head, body[1:]), nil
		}
		if !shrink(&res, len(body)) {
			return nil, errors.New("the record is too long")
		}
	}
}

// shrink removes a part of a result whose form has size bytes. It reports false when
// nothing is left to remove.
func shrink(r *sallyport.Result, size int) bool {
	switch ds := r.Denials(); {
	case len(ds) > 0:
		// They are most of it as a rule: the share that fits, or one less.
		keep := min(len(ds)*maxLine/size*7/8, len(ds)-1)
		r.SetDenials(ds[:keep], r.DenialsOmitted+len(ds)-keep)
	case len(r.Warnings) > 0:
		r.Warnings = nil
	case len(r.Withheld) > 0:
		r.Withheld = nil
	case len(r.Quarantined) > 0:
		r.Quarantined = r.Quarantined[:len(r.Quarantined)/2]
	case len(r.HardLinks) > 0:
		keep := len(r.HardLinks) / 2
		r.HardLinks, r.HardLinksOmitted = r.HardLinks[:keep], r.HardLinksOmitted+len(r.HardLinks)-keep
	case len(r.New) > 0:
		r.New = r.New[:len(r.New)/2]
	case len(r.Args) > 1:
		// Control characters take six bytes each.
		r.Args = append(r.Args[:len(r.Args)/2:len(r.Args)/2], gap)
		if len(r.Args) == 2 {
			r.Args = r.Args[:1]
		}
	default:
		return false
	}
	return true
}

// shorten bounds words, each and all together.
func shorten(words []string, most int) []string {
	left, out := most, slices.Clone(words)
	for i, w := range out {
		out[i] = cut(w, min(maxWord, left))
		if left -= len(out[i]); left <= 0 {
			return append(out[:i+1], gap)
		}
	}
	return out
}

// gap marks what was omitted.
const gap = "..."

// cut bounds a text, and marks where it did.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + gap
}
