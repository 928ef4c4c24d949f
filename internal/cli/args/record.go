// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"cmp"
	"os"
	"time"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/cli/recordings"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/recording"
)

// The defaults of the directory of recordings.
const (
	recordingsAge   = 30 * 24 * time.Hour
	recordingsTotal = 16 << 30
)

// Recordings returns the directory of recordings that settings describe.
func Recordings(r *config.Recordings, home string) *recordings.Store {
	dir := r.Dir
	if dir != "" {
		dir = Absolute(dir, "/", home)
	}
	return &recordings.Store{Dir: dir, MaxAge: cmp.Or(r.MaxAge, recordingsAge),
		MaxTotal: cmp.Or(r.MaxTotal, recordingsTotal)}
}

// recorder returns what records the terminal of a command, if it gets one; nil for nothing. A file that was
// named is made here, so that one that cannot be made is known before the command runs.
func (o *Options) recorder(dir, home string) (event.Recorder, error) {
	if !o.Record {
		return nil, nil
	}
	to := recording.Options{Open: Recordings(&o.Recordings, home).Create, MaxSize: o.Recordings.MaxSize}
	if o.Recordings.Format == recording.V2.String() {
		to.Format = recording.V2
	}
	if o.RecordFile != "" {
		path := Absolute(o.RecordFile, dir, home)
		f, err := recordings.New(path)
		if err != nil {
			return nil, explain.NewError("cannot record to %s: %s; name a file that does not exist in a "+
				"directory that does", syntax.QuoteFlag(path), explain.SystemCause(err))
		}
		o.recordTo = f
		to.Open = func() (*os.File, error) {
			o.recordTo = nil
			return f, nil
		}
	}
	return recording.New(to), nil
}

// CheckRecord refuses --record for a command without a terminal of its own.
func (o *Options) CheckRecord(terminal bool) error {
	if terminal || !o.Record || len(o.Given["recordings.enabled"]) == 0 {
		return nil
	}
	return explain.NewError("--record records a terminal, and the command has none of its own; add -t")
}

// dropRecording removes the file of a recording that did not begin.
func (o *Options) dropRecording() {
	if f := o.recordTo; f != nil {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
}
