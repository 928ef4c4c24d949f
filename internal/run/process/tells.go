// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"sync"

	"github.com/sallyport-dev/sallyport/executor"
)

// Ask calls f in a goroutine of the group, and sends what it returns unless that is an error. The channel is
// never closed.
func Ask[T any](group *sync.WaitGroup, f func() (T, error)) chan T {
	answer := make(chan T, 1)
	group.Go(func() {
		if v, err := f(); err == nil {
			answer <- v
		}
	})
	return answer
}

// Tells asks whether the executor of a process can tell that it waits for input, or that it listens on a
// port. It returns the field of sallyport.Until that it cannot tell, and its error, which is
// [errors.ErrUnsupported]; nil if it can tell all that is asked for. It does not wait.
func Tells(p executor.Process, input, port bool) (field string, err error) {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	if input {
		if _, err := p.AwaitInput(now); errors.Is(err, errors.ErrUnsupported) {
			return "Input", err
		}
	}
	if port {
		if _, err := p.AwaitPort(now, nil); errors.Is(err, errors.ErrUnsupported) {
			return "Port", err
		}
	}
	return "", nil
}
