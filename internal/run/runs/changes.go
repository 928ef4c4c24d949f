// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"reflect"
	"sync"

	"github.com/sallyport-dev/sallyport"
)

// Changes tells those who wait that something has changed. The zero Changes is ready. Its methods may be
// called from several goroutines at once.
type Changes struct {
	mu   sync.Mutex
	next chan struct{} // closed at the next change; nil if nothing waits
}

// Next returns a channel that is closed at the next change. Take it before you look, so that none is missed.
func (c *Changes) Next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = make(chan struct{})
	}
	return c.next
}

// Tell says that something has changed.
func (c *Changes) Tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
}

// Await blocks until one of the channels is closed, and reports false if ctx has ended before.
func Await(ctx context.Context, changed []<-chan struct{}) bool {
	cases := make([]reflect.SelectCase, 0, len(changed)+1)
	for _, c := range append(changed, ctx.Done()) {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)})
	}
	at, _, _ := reflect.Select(cases)
	return at < len(changed)
}

// Changed returns channels of which one is closed when a run of an owner comes, begins, ends, goes or gets
// another size, or a question about one comes or goes. Other changes may close one, too. Take them before you
// look.
func (t *Table) Changed(owner string) []<-chan struct{} {
	all := []<-chan struct{}{t.changes.Next()}
	for _, q := range t.Questions(owner) {
		all = append(all, q.Changed()...)
	}
	return all
}

// Version identifies which runs an owner has, their states and sizes, and whether a question about each is
// open. It is not empty.
func (t *Table) Version(owner string) string {
	sum := sha256.New()
	for _, r := range t.sorted(owner) {
		size := cmp.Or(r.size.Load(), new(sallyport.Size))
		fmt.Fprintln(sum, r.id, r.hasBegun(), r.over(), r.asks(), *size)
	}
	return version(sum)
}

// Changed returns channels of which one is closed when one of the questions comes or goes, or its limit.
func (q *Questions) Changed() []<-chan struct{} {
	if q.Limits == nil {
		return []<-chan struct{}{q.Open.Changed()}
	}
	return []<-chan struct{}{q.Open.Changed(), q.Limits.changes.Next()}
}

// Version identifies which questions are open, and until when. It is not empty.
func Version(all []*Questions) string {
	sum := sha256.New()
	for _, q := range all {
		for _, r := range q.Open.Pending() {
			fmt.Fprintln(sum, q.RunID, r.ID, q.Limits.Of(r.ID))
		}
	}
	return version(sum)
}

func version(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)[:16]) }
