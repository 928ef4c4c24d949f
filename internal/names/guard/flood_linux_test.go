// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"os"
	"strconv"
	"testing"
)

// TestEventsWithoutEnd: handling events ends with those that were there when it began. Here
// each one that is handled makes another.
func TestEventsWithoutEnd(t *testing.T) {
	p := quickPlace(t)
	k := p.protector()
	const most = 100
	var claims []Claim
	for i := range most {
		claims = append(claims, p.watch(strconv.Itoa(i))...)
	}
	h := p.hold(k, claims...)
	if weaker := h.Weaker(); len(weaker) > 0 {
		// such as where this user's other processes have all of inotify
		t.Fatalf("nothing is watched: %q", weaker)
	}
	handled := 0
	appear := func() {
		check(t, os.Mkdir(p.path(strconv.Itoa(handled)), 0o700))
	}
	k.mu.Lock()
	k.fail = func(call string) error {
		if handled++; call == "rename" && handled < most {
			appear()
		}
		return nil
	}
	appear()
	k.readEvents()
	got := handled
	k.fail = nil
	k.mu.Unlock()
	if got != 1 {
		t.Errorf("%d events were handled at once, want 1", got)
	}
	p.finish(h)
	h.Release()
}
