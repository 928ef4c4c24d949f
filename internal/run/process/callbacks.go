// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Calls are the functions of a Spec that panic or end their goroutine when they are called, which must not
// end what has called them.
type Calls struct {
	mu     sync.Mutex
	failed []string // each function once
	output error    // of OnOutput, which is called no more
}

// Guard returns a Spec with the functions of spec as they are called, and what is known of them.
func Guard(spec *executor.Spec) (*executor.Spec, *Calls) {
	own, c := *spec, new(Calls)
	if f := spec.OnOutput; f != nil {
		own.OnOutput = func(s executor.Stream, p []byte) {
			if c.output == nil { // one call at a time
				c.output = c.call("OnOutput", func() { f(s, p) })
			}
		}
	}
	if f := spec.OnTyped; f != nil {
		own.OnTyped = func(p []byte, echo executor.Echo) { _ = c.call("OnTyped", func() { f(p, echo) }) }
	}
	if f := spec.OnDenied; f != nil {
		own.OnDenied = func(d sandbox.Denial) { _ = c.call("OnDenied", func() { f(d) }) }
	}
	if f := spec.OnListen; f != nil {
		own.OnListen = func(port uint16) { _ = c.call("OnListen", func() { f(port) }) }
	}
	if f := spec.OnRecord; f != nil {
		own.OnRecord = func(r network.Record) { _ = c.call("OnRecord", func() { f(r) }) }
	}
	if f := spec.OnStop; f != nil {
		own.OnStop = func() { _ = c.call("OnStop", f) }
	}
	if f := spec.OnExit; f != nil {
		own.OnExit = func(code, signal int) { _ = c.call("OnExit", func() { f(code, signal) }) }
	}
	if f := spec.AskHost; f != nil {
		own.AskHost = func(ctx context.Context, r network.Request) (d network.Decision) {
			d = network.Decision{Ruling: network.Deny, Reason: network.NotAllowed, Source: network.Decider}
			_ = c.call("AskHost", func() { d = f(ctx, r) })
			return d
		}
	}
	if f := spec.AskAccess; f != nil {
		own.AskAccess = func(ctx context.Context, q executor.AccessQuestion) (granted bool) {
			err := c.call("AskAccess", func() { granted = f(ctx, q) })
			return err == nil && granted
		}
	}
	return &own, c
}

// call calls f and notes if it does not return.
func (c *Calls) call(name string, f func()) error {
	err := strict.Call(name, func() error { f(); return nil })
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if text := err.Error(); !slices.Contains(c.failed, text) {
			c.failed = append(c.failed, text)
		}
	}
	return err
}

// Tell adds to the end of a process what the functions did: a warning for each, and an error for output that
// OnOutput did not take.
func (c *Calls) Tell(x *executor.Exit, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	x.Sandbox.Warnings = slices.Concat(x.Sandbox.Warnings, c.failed)
	if c.output == nil {
		return err
	}
	return errors.Join(err, c.output)
}
