// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"slices"
	"sync"
)

// AsksToEnd reports whether a signal is one by which people and supervisors end a program: hang up,
// interrupt, quit and terminate.
func AsksToEnd(sig int) bool { return slices.Contains([]int{1, 2, 3, 15}, sig) }

// Forward calls f with each value until the command is over. Calling it too late is no error.
func Forward[T any](from <-chan T, over <-chan struct{}, f func(T)) {
	for {
		select {
		case v, ok := <-from:
			if !ok {
				return
			}
			f(v)
		case <-over:
			return
		}
	}
}

// Interruptible returns a context that ends with ctx and with a signal that asks for the end, which
// ends is told. Nil signals end nothing. Before it returns it waits until the signals are caught,
// which ready says; nil means that they are. Stop must be called.
func Interruptible(ctx context.Context, signals <-chan int, ready <-chan struct{},
	ends func(sig int) error) (_ context.Context, stop func()) {
	if signals == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	if ready != nil {
		select {
		case <-ready:
		case <-ctx.Done():
		}
	}
	over := make(chan struct{})
	var listening sync.WaitGroup
	listening.Go(func() {
		Forward(signals, over, func(sig int) {
			if AsksToEnd(sig) {
				cancel(ends(sig))
			}
		})
	})
	return ctx, func() {
		close(over)
		listening.Wait()
		cancel(nil)
	}
}
