// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"time"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// denials collects what was refused. It is not safe for concurrent use.
type denials struct {
	list    []sandbox.Denial
	at      map[target]int
	omitted int
}

// A target is what makes two denials the same.
type target struct {
	op         sandbox.Op
	path, addr string
}

// count counts a denial that needs no more words: one that is known, or one that there
// is no room for. It reports false for others.
func (d *denials) count(a sandbox.Access, errno string) bool {
	_, known := d.at[target{a.Op, a.Path, a.Addr}]
	if !known && len(d.list) < MaxDenials {
		return false
	}
	d.add(sandbox.Denial{Access: a, Errno: errno})
	return true
}

// add notes a denial, or counts one that is known. A link or rename that was only
// refused for lying on another mount tells less than the refusal itself, so it
// gives way to that.
func (d *denials) add(n sandbox.Denial) {
	key := target{n.Op, n.Path, n.Addr}
	if i, ok := d.at[key]; ok {
		old := &d.list[i]
		old.Count++
		if old.Errno == "EXDEV" {
			old.Errno = n.Errno
		}
		return
	}
	if len(d.list) >= MaxDenials {
		d.omitted++
		return
	}
	if d.at == nil {
		d.at = make(map[target]int)
	}
	d.at[key] = len(d.list)
	n.Count, n.Source = 1, sandbox.Notified
	if n.Time.IsZero() {
		n.Time = time.Now()
	}
	d.list = append(d.list, n)
}
