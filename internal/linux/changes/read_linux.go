// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"context"
	"io"
	"time"
)

// Read lists what the stage changed, by root and path (bytes), a directory before what is in it, with the
// entries that are [Entry.Way]; it never is partial. A nil base has no records. It is safe while others change
// both trees, follows no link, and blocks for the file system only. A change that the host has as well by now
// is none.
func Read(ctx context.Context, layers []Layer, base *Base) ([]Entry, error) { return nil, nil }

// Select returns the entries at and below absolute paths, with the directories on the way to them; all for no
// paths. A path with no change is an error that matches executor.ErrNoChange.
func Select(entries []Entry, paths []string) ([]Entry, error) { return entries, nil }

// Diff writes entries, which [Read] returned for the layers, as a unified diff that git apply and patch -p1
// take. Paths are relative to the workspace, those outside of it absolute without the first slash. What is not
// text, or larger than 32 MiB, is named in a line outside of any patch.
func Diff(ctx context.Context, w io.Writer, entries []Entry, layers []Layer, workspace string) error {
	return nil
}

// Open opens a file or directory of a layer, relative to its Root or Upper that root is, for reading, without
// following a link anywhere below root, however deep it is. It does not block on what is no file.
// (Shape to come: see safefile.)

// A Base is the record of what the host's files were when a stage first met them. It is not safe for
// concurrent use, and the stage's lock must be held for Update, Forget and Save.
type Base struct{}

// OpenBase reads the record in a file; a missing file is the empty record. A file that was truncated or edited
// is a [*BaseError].
func OpenBase(path string) (*Base, error) { return nil, nil }

// Update records every path that is in the uppers and has no record yet, and saves the record in one step.
// Call it at the end of each run, before a snapshot is read while a run goes on, and after a run that was
// killed; for a file (Layer.Name) also when its copy was made. RunStart is [Now] before the run's overlays
// were mounted.
func (b *Base) Update(ctx context.Context, layers []Layer, runStart time.Time) error { return nil }

// Forget removes the records of entries that were applied or discarded, and of all below them, and saves the
// record in one step. Call it when their files are gone from the upper.
func (b *Base) Forget(layers []Layer, entries []Entry) error { return nil }

// Now is the time as the kernel stamps files with it, a few milliseconds behind the clock.
func Now() time.Time { return time.Time{} }
