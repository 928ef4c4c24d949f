// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// alternate returns a script that writes n lines, one to each stream in turn.
func alternate(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "echo %d >&%d; ", i, 1+i%2)
	}
	return b.String()
}

// startHeld starts a script that writes so many bytes to standard output alone, a line to
// standard error, "first", and then lines to both. The pump reads none of these lines
// before all were written.
func startHeld(t *testing.T, order *Order, alone, lines int) (p *Process, h *collected) {
	t.Helper()
	h = new(collected)
	more, first, goOn := make(chan struct{}, 2), make(chan struct{}), make(chan struct{})
	cfg := Config{PipeStdin: true, Order: order, Output: func(s executor.Stream, p []byte) {
		switch h.output(s, p); len(h.String()) {
		case alone + 1, alone + 2:
			more <- struct{}{}
		case alone + 2 + len("first\n"):
			close(first)
			<-goOn
		}
	}}
	p = start(t, cfg, sh(fmt.Sprintf("head -c %d /dev/zero; echo; read -r x; echo >&2; read -r x; echo first; read -r x; %s", alone, alternate(lines))))
	go func() {
		for range 2 {
			<-more
			_, _ = p.Write([]byte("\n"))
		}
		<-first
		_ = p.CloseInput()
		<-p.Ended()
		close(goOn)
	}()
	return p, h
}

// row40: TestOrderHeld checks the order of lines that were all written before the pump
// could read one, by several commands at once.
func TestOrderHeld(t *testing.T) {
	testenv.NeedInotify(t)
	checkFDs(t)
	const lines = 20
	var order Order
	defer order.Close()
	var running sync.WaitGroup
	for range 4 {
		p, h := startHeld(t, &order, 0, lines)
		running.Go(func() {
			wait(t, p)
			if got, want := h.String(), "\n\nfirst\n"+countTo(lines); got != want {
				t.Errorf("the output is %q, want %q", got, want)
			}
		})
	}
	running.Wait()
}

// row40: TestOrderBurst checks the order of lines that are written while the pump reads.
// It may be wrong now and then.
func TestOrderBurst(t *testing.T) {
	testenv.NeedInotify(t)
	checkFDs(t)
	var order Order
	defer order.Close()
	const rounds, lines = 100, 4
	right := 0
	for range rounds {
		var h collected
		wait(t, start(t, Config{Output: h.output, Order: &order}, sh(alternate(lines))))
		if h.String() == countTo(lines) {
			right++
		}
		if len(h.String()) != len(countTo(lines)) {
			t.Fatalf("the output is %q", h.String())
		}
	}
	if right < rounds*9/10 {
		t.Errorf("%d of %d bursts came in order, want nearly all", right, rounds)
	}
}

// TestOrderAlone checks that lines come in order after a stream has gone on alone, which
// is not noted.
func TestOrderAlone(t *testing.T) {
	testenv.NeedInotify(t)
	checkFDs(t)
	var order Order
	defer order.Close()
	const alone, lines = 8 * bulk, 4
	p, h := startHeld(t, &order, alone, lines)
	wait(t, p)
	if got, want := h.String()[alone+2:], "first\n"+countTo(lines); got != want {
		t.Errorf("the output ends with %q, want %q", got, want)
	}
	if len(order.writes) != 0 {
		t.Errorf("%d watches are left", len(order.writes))
	}
}

// TestOrderUnavailable checks that output comes without inotify, too.
func TestOrderUnavailable(t *testing.T) {
	checkFDs(t)
	var order Order
	order.Close()
	var h collected
	wait(t, start(t, Config{Output: h.output, Order: &order}, sh(alternate(4))))
	if len(h.String()) != len(countTo(4)) {
		t.Errorf("the output is %q", h.String())
	}
}
