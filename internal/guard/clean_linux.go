// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"

	"golang.org/x/sys/unix"
)

func clean(state string) (Report, error) {
	r, err := cleanJournal(state)
	b, e := openBoxes(state, false, nil)
	if e == nil {
		var left bounded
		left, e = b.bound()
		b.shut()
		r.Discarded, r.Quarantine, r.QuarantineBytes = left.discarded, left.count, left.bytes
	}
	if errors.Is(e, unix.ENOENT) {
		e = nil
	}
	if err != nil {
		err = holdError(state, "clean the journal of placeholders", err)
	}
	return r, errors.Join(err, e)
}

// cleanJournal is Clean without the quarantine.
func cleanJournal(state string) (Report, error) {
	j, err := openJournal(state, false, nil)
	if errors.Is(err, unix.ENOENT) {
		return Report{}, nil
	}
	if err != nil {
		return Report{}, err
	}
	defer j.shut()
	if err := j.lock(); err != nil {
		return Report{}, err
	}
	defer j.unlock()
	j.dropSpares()
	return j.sweep(true)
}
