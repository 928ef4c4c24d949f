// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"errors"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
)

// TestTurns: a write of much output has a turn, as long as it does not wait for the disk. A small one
// waits for none.
func TestTurns(t *testing.T) {
	big := make([]byte, 2*freeWrite)
	noFile := errors.New("no file")
	during := -1
	l := NewTail(freeWrite, func() (*File, error) {
		during = len(turns)
		return nil, noFile
	})
	l.Write(executor.Stdout, big)
	if during != 1 || len(turns) != 0 {
		t.Errorf("%d turns are taken during a write, and %d after it, want 1 and 0", during, len(turns))
	}

	answer := make(chan struct{})
	var held sync.WaitGroup
	for range cap(turns) {
		begun := make(chan struct{})
		hangs := NewTail(freeWrite, func() (*File, error) {
			close(begun)
			<-answer
			return nil, noFile
		})
		held.Go(func() { hangs.Write(executor.Stdout, big) })
		<-begun
	}
	l.Write(executor.Stdout, big[:1])
	l.Write(executor.Stdout, big) // the others hold it up for maxTurn only
	close(answer)
	held.Wait()
	if total, _ := l.Size(); total != uint64(2*len(big)+1) || len(turns) != 0 {
		t.Errorf("%d bytes, %d turns are taken", total, len(turns))
	}
}
