// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// The bounds of a Page.
const (
	// DefaultPage is how many bytes it has at most unless that is said, and MaxPage how many it
	// has whatever is said.
	DefaultPage = 1 << 20
	MaxPage     = 8 << 20
	// maxChunks bounds what it takes beside the bytes, where two streams take turns.
	maxChunks = 8192
)

// A Page is a part of the output.
type Page struct {
	Chunks   []sallyport.Delta
	Next     uint64 // the offset after them
	Complete bool   // the run has ended, and there is no output after Next
}

// AwaitOutput waits until there is output after an offset, the run has ended, or ctx has.
func (r *Run) AwaitOutput(ctx context.Context, after uint64) {
	for _, err := range r.session.Deltas(ctx, after) {
		if err == nil || ctx.Err() != nil {
			return
		}
	}
	select { // there is none any more
	case <-r.done:
	case <-ctx.Done():
	}
}

// lastLine returns the end of the output that a list shows.
func (r *Run) lastLine() string {
	const last, most = 4096, 200
	total, _ := r.session.Size()
	var tail strings.Builder
	for _, d := range r.Page(total-min(total, last), last).Chunks {
		tail.Write(d.Data)
	}
	lines := strings.Split(strings.TrimSpace(text.WithoutControls(tail.String())), "\n")
	line := strings.ToValidUTF8(strings.TrimSpace(lines[len(lines)-1]), "\ufffd")
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "")
	}
	return line
}

// Page returns what exists of the output after an offset, at most so many bytes, but one at
// least. It does not wait. Any number of callers get the same.
func (r *Run) Page(after, most uint64) Page {
	page := Page{Next: after}
	over := r.over()
	total, _ := r.session.Size()
	most = min(max(most, 1), MaxPage)
	size := uint64(0)
	if after < total { // else it would wait
		for d, err := range r.session.Deltas(context.Background(), after) {
			if err != nil {
				break
			}
			if left := most - size; uint64(len(d.Data)) > left {
				d.Data = d.Data[:left]
			}
			page.Chunks, page.Next = append(page.Chunks, d), d.End()
			if size += uint64(len(d.Data)); size >= most || page.Next >= total ||
				len(page.Chunks) >= maxChunks {
				break
			}
		}
	}
	page.Complete = over && page.Next >= total
	return page
}

// Size returns how many bytes there are of the output so far, and how many of them are not retained.
func (r *Run) Size() (total, missing uint64) { return r.session.Size() }

// Shown returns the offset after what was shown of the output to callers without an offset of their own.
func (r *Run) Shown() uint64 {
	r.cursors.Lock()
	defer r.cursors.Unlock()
	return r.shown
}

// Show says that the output before an offset was shown.
func (r *Run) Show(to uint64) {
	r.cursors.Lock()
	defer r.cursors.Unlock()
	r.shown = max(r.shown, to)
}
