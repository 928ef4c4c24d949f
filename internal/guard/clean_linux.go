// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"

	"golang.org/x/sys/unix"
)

func clean(state string) (Report, error) {
	r, err := cleanJournal(state)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		err = holdError(state, "clean the journal of placeholders", err)
	} else {
		err = nil
	}
	q, e := openQuarantine(state, false)
	if e == nil {
		e = q.bound(&r)
		q.close()
	} else if errors.Is(e, unix.ENOENT) {
		e = nil
	}
	return r, errors.Join(err, e)
}

// cleanJournal is Clean without the quarantine.
func cleanJournal(state string) (Report, error) {
	j, err := openJournal(state, false, nil)
	if err != nil {
		return Report{}, err
	}
	defer j.close()
	if err := j.lock(); err != nil {
		return Report{}, err
	}
	defer j.unlock()
	return j.sweep(true)
}
