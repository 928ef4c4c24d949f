// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/approval"
)

// LeadsElsewhere returns a requirement of a question with its path as it is without links on this machine,
// where local says that the path is one of it. What is approved is what was shown, wherever a link leads
// later.
func LeadsElsewhere(local bool, word string) string {
	what, path, _ := strings.Cut(word, ":")
	if !local || what != "write" && what != "read" {
		return word
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return word // it is not there
	}
	return what + ":" + real
}

var errOther = errors.New("a file that it runs has changed")

// Reopen returns what was approved for the session after a command was denied it, but for paths that lead
// elsewhere now: those are asked about again. The Look is the one on which that rests; it is old, which
// may be nil, where old opens something already or there is nothing. The error says why what was approved
// does not count now.
func Reopen(m *approval.Memory, c *ApprovedCommand, old *Look, opens bool) (granted []string, l *Look, err error) {
	key := IdentityOf(c).Key()
	granted = slices.DeleteFunc(m.Granted(key),
		func(word string) bool { return LeadsElsewhere(c.Local, word) != word })
	if len(granted) == 0 || opens {
		return granted, old, nil
	}
	l = TakeLook(c, true)
	if err = cmp.Or(l.Err, l.Writer()); err == nil && (l.Key() != key || old != nil && old.Key() != key) {
		err = errOther
	}
	if err != nil {
		l.Close()
		return nil, old, err
	}
	old.Close()
	return granted, l, nil
}
