// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/names/git"
)

func clean(state string) (Report, error) {
	var r Report
	err := cleanJournal(state, &r)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		err = holdError(state, "clean the journal", err)
	} else {
		err = nil
	}
	if e := cleanMemories(state, &r); e != nil {
		err = errors.Join(err, e)
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
func cleanJournal(state string, r *Report) error {
	j, err := openJournal(state, false, nil)
	if err != nil {
		return err
	}
	defer j.close()
	if err := j.lock(); err != nil {
		return err
	}
	defer j.unlock()
	return j.sweep(r)
}

// cleanMemories checks the repositories in which commands ran whose sallyport was killed.
func cleanMemories(state string, r *Report) error {
	k := &Protector{State: state}
	if k.Remains() == nil {
		return nil
	}
	k.mu.Lock()
	err := k.journalError(k.join())
	if err == nil {
		found, notes := k.settleDead()
		for _, f := range found {
			r.Planted = append(r.Planted, Left{f.Path, f.Why})
		}
		for _, note := range notes {
			r.Failed = append(r.Failed, Left{state, note})
		}
		k.journal.dropBroken(r)
	}
	k.mu.Unlock()
	return errors.Join(err, k.Close())
}

// dropBroken removes the memories that cannot be read, which no start can check.
func (j *journal) dropBroken(r *Report) {
	if j.lock() != nil {
		return
	}
	defer j.unlock()
	names, _ := listRoot(j.dir)
	for _, name := range names {
		if !strings.HasPrefix(name, memoryPrefix) {
			continue
		}
		_, text, err := j.readMemory(name)
		if err == nil {
			_, err = git.Recall(text, git.Outside{})
		}
		if err != nil && j.forget(name) == nil {
			r.Unknown = append(r.Unknown, Left{name, err.Error() + "; it was removed"})
		}
	}
}
