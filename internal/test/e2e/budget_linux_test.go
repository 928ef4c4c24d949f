// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestOutputBudget: of a command with a limit on its output, no form of it holds more, and the rest is
// counted.
func TestOutputBudget(t *testing.T) {
	testenv.RunAsOrdinary(t)
	const most = 1000
	both := "i=0; while [ $i -lt 100 ]; do head -c 9000 /dev/zero | tr '\\0' x; head -c 1000 /dev/zero | tr '\\0' y >&2; i=$((i+1)); done"
	for _, test := range []struct {
		name, script string
		change       func(*sallyport.Cmd)
	}{
		{"one stream", "yes 12345678", func(*sallyport.Cmd) {}},
		{"both streams", both, func(*sallyport.Cmd) {}},
		{"everything is kept", "yes 12345678", func(c *sallyport.Cmd) { c.Retention.Unlimited = true }},
		{"the beginning is kept", "yes 12345678", func(c *sallyport.Cmd) { c.Retention.HeadOnly = true }},
		{"more is kept", "yes 12345678", func(c *sallyport.Cmd) { c.Retention.Bytes = 8 << 20 }},
		{"a terminal", "yes 12345678", func(c *sallyport.Cmd) { c.TTY = new(sallyport.Size) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRunner(t, sandbox.WorkspaceWrite())
			var mu sync.Mutex
			sunk := 0
			r.Events = event.SinkFunc(func(e event.Event) {
				mu.Lock()
				defer mu.Unlock()
				if out, ok := e.Body.(event.Output); ok {
					sunk += len(out.Data)
				}
			})
			var written bytes.Buffer
			c := sh(test.script)
			c.Resources.Output, c.Stdout, c.Stderr = most, &written, &written
			test.change(c)
			res := run(t, r, c)
			kept := len(res.Stdout.Bytes()) + len(res.Stderr.Bytes())
			if kept > most || len(res.Output.Bytes()) > most || written.Len() != most || kept < most {
				t.Errorf("a limit of %d: %d bytes of streams, %d of both, %d written", most, kept,
					len(res.Output.Bytes()), written.Len())
			}
			total, omitted := res.Stdout.Total+res.Stderr.Total, res.Stdout.Omitted+res.Stderr.Omitted
			if total <= most || total-omitted != most || res.Output.Total != total ||
				res.Output.Omitted != omitted {
				t.Errorf("%d of %d bytes are counted as omitted; of both %d of %d", omitted, total,
					res.Output.Omitted, res.Output.Total)
			}
			if strings.Contains(res.Output.String(), "omitted") {
				t.Errorf("a gap is shown where there is none: %q", res.Output)
			}
			var j struct{ Stdout, Stderr, Output string }
			text, err := res.MarshalJSON()
			if err == nil {
				err = json.Unmarshal(text, &j)
			}
			if err != nil || len(j.Stdout)+len(j.Stderr) > most || len(j.Output) > most {
				t.Errorf("%v; JSON has %d, %d and %d bytes", err, len(j.Stdout), len(j.Stderr), len(j.Output))
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if sunk != most {
				t.Errorf("events have %d bytes", sunk)
			}
			if res.End != sallyport.EndOutput || !limit(t, res, executor.LimitOutput).Hit {
				t.Errorf("end %s, %+v", res.End, res.Limits)
			}
		})
	}
}

// TestSessionBudget is TestOutputBudget for what sessions hold.
func TestSessionBudget(t *testing.T) {
	testenv.RunAsOrdinary(t)
	const most = 1000
	for _, tty := range []bool{true, false} {
		r := sessionRunner(t)
		c := &sallyport.Cmd{Args: []string{"sh", "-c", "yes 12345678"}, OpenStdin: !tty,
			Resources: executor.Resources{Output: most}}
		s := begin(t, r, c)
		replied, told := 0, uint64(0)
		for over := false; !over; {
			reply, err := s.Await(t.Context(), sallyport.Until{For: enough, ExitOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			replied += len(reply.Output.Bytes())
			told += reply.Output.Total
			over = reply.Result != nil
		}
		read, missing := 0, uint64(0)
		for d, err := range s.Deltas(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			read += len(d.Data)
			missing += d.Missing
		}
		total, lost := s.Size()
		if replied != most || read != most || total-lost != most || missing != lost || told != total {
			t.Errorf("terminal %t: replies have %d of %d bytes, readers %d, %d missing; the size is %d, %d missing", tty, replied, told, read, missing, total, lost)
		}
	}
}

// TestReplyRetention: a reply of a session holds no more than Cmd.Retention says, and counts the rest.
func TestReplyRetention(t *testing.T) {
	const all = 300_000
	for _, test := range []struct {
		name string
		keep sallyport.Retention
		want int
	}{
		{"less", sallyport.Retention{Bytes: 1000}, 1000},
		{"as usual", sallyport.Retention{}, all},
		{"nothing of the result", sallyport.Retention{Bytes: -1}, all},
		{"the beginning", sallyport.Retention{Bytes: 1000, HeadOnly: true}, 1000},
	} {
		r := sessionRunner(t)
		s := begin(t, r, &sallyport.Cmd{Args: []string{"head", "-c", "300000", "/dev/zero"}, OpenStdin: true,
			Retention: test.keep})
		reply, err := s.Await(t.Context(), sallyport.Until{For: enough, ExitOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := reply.Output; len(got.Bytes()) != test.want || got.Total != all ||
			got.Omitted != uint64(all-test.want) {
			t.Errorf("%s: %d bytes of %d, %d omitted", test.name, len(got.Bytes()), got.Total, got.Omitted)
		}
	}
}
