// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"sync"
	"testing"
)

// TestLive: each change counts at once, has a number, and is told to those who watch.
func TestLive(t *testing.T) {
	host, err := ParseHost("h.example")
	if err != nil {
		t.Fatal(err)
	}
	first, err := New(Config{Mode: Full})
	if err != nil {
		t.Fatal(err)
	}
	l := NewLive(first)
	var told []uint64
	stop := l.Watch(func() { told = append(told, l.Policy().Version()) })
	allows := func() bool {
		return l.Policy().Decide(Request{Protocol: HTTPSConnect, Host: host, Port: 443}).Ruling == Allow
	}
	amend := func(e Entry) error { return l.Update(func(p *Policy) (*Policy, error) { return p.Amend(e) }) }
	if allows() || l.Policy().Version() != 1 {
		t.Error("before")
	}
	if err := amend(Entry{Pattern: "h.example"}); err != nil || !allows() {
		t.Errorf("allowed: %v", err)
	}
	if err := amend(Entry{Pattern: "H.example.", Deny: true}); err != nil || allows() {
		t.Errorf("denied: %v", err)
	}
	if err := amend(Entry{Pattern: "h.example"}); err != nil || !allows() { // in the place of the denial
		t.Errorf("allowed again: %v", err)
	}
	if err := amend(Entry{Pattern: "*.com"}); err == nil || !allows() {
		t.Errorf("an entry that is not valid: %v", err)
	}
	if err := l.Update(func(*Policy) (*Policy, error) {
		return nil,
			errors.New("no")
	}); err == nil || !allows() {
		t.Errorf("a change that failed: %v", err)
	}
	stop()
	if err := l.Update(func(*Policy) (*Policy, error) { return nil, nil }); err != nil || allows() ||
		l.Policy().Version() != 0 {
		t.Errorf("no policy: %v", err)
	}
	if len(told) != 3 || told[0] != 2 || told[2] != 4 {
		t.Errorf("told %v", told)
	}
	if first.Version() != 1 {
		t.Error("the first policy has changed")
	}
	var none *Live
	none.Watch(func() {})()
	if none.Policy() != nil || none.Update(nil) != nil {
		t.Error("a nil Live")
	}
}

// TestLiveMany changes a policy from many sides: no change is lost.
func TestLiveMany(t *testing.T) {
	first, err := New(Config{Mode: Full})
	if err != nil {
		t.Fatal(err)
	}
	l := NewLive(first)
	var changing sync.WaitGroup
	for i := range 50 {
		changing.Go(func() {
			defer l.Watch(func() {})()
			_ = l.Update(func(p *Policy) (*Policy, error) { return p.With(Entry{Pattern: string(rune('a'+i%26)) + ".example"}) })
		})
	}
	changing.Wait()
	if l.Policy().Version() != 51 || len(l.Policy().config.Entries) != 50 {
		t.Errorf("version %d, %d entries", l.Policy().Version(), len(l.Policy().config.Entries))
	}
}
