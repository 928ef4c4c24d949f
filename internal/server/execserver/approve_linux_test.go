// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// asking returns a connection and what it sends, which is read.
func asking(t *testing.T) (c *connection, sent <-chan string) {
	t.Helper()
	in, _ := io.Pipe()
	out, w := io.Pipe()
	s := New(Options{})
	c = newConnection(s, wire.Lines(in, w), "")
	lines := make(chan string, 100)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for r := bufio.NewScanner(out); r.Scan(); {
			lines <- r.Text()
		}
	}()
	t.Cleanup(func() {
		c.finish()
		<-read
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, lines
}

// TestApproveTime: a question that is not answered in time is denied, and one that comes after the
// end of the connection is left to others.
func TestApproveTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, sent := asking(t)
		r := &approval.Request{ID: "1", Available: []approval.Answer{approval.Approved}}
		d, err := approval.Ask(t.Context(), c.approver("7"), r)
		if err != nil || d.Answer.Approves() ||
			d.Message != "the client gave no answer: it took longer than 10m0s" {
			t.Errorf("%+v, %v", d, err)
		}
		if text := <-sent; !strings.Contains(text, `"method":"run/approve"`) ||
			!strings.Contains(text, `"runId":"7"`) {
			t.Error(text)
		}
		c.cut()
		if d, err := approval.Ask(t.Context(), c.approver("7"), r); !errors.Is(err, approval.ErrPass) {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// TestAskedMany: what a client does not answer is bounded, and the end of the run withdraws a question.
func TestAskedMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, sent := asking(t)
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		for range maxAsked {
			if _, err := c.ask(canceled, "m", nil); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			<-sent
			if text := <-sent; !strings.Contains(text, `"method":"request/cancel"`) {
				t.Fatal(text)
			}
		}
		if _, err := c.ask(t.Context(), "m", nil); !errors.Is(err, errAskedMany) {
			t.Error(err)
		}
		answer := &wire.Message{Kind: wire.KindResponse, ID: wire.Number(5)}
		if !c.asked.end(answer) || c.asked.end(answer) ||
			c.asked.end(&wire.Message{ID: wire.Number(maxAsked + 1)}) {
			t.Error("a late answer counts once")
		}
		if _, err := c.ask(canceled, "m", nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
