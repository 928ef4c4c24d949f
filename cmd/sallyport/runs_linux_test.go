// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestRunAnsweredElsewhere: the question about a run of a client that is not asked itself waits for
// an answer from elsewhere, if its flags say so. Who has the event of it can answer.
func TestRunAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"approve", "deny"} {
		t.Run(verb, func(t *testing.T) {
			s := newSeat(t)
			cmd := s.command(t, "sallyport", "exec-server", "--listen", "stdio")
			in, err := cmd.StdinPipe()
			check(err)
			out, err := cmd.StdoutPipe()
			check(err)
			check(cmd.Start())
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			type message struct {
				ID     int
				Method string
				Params struct {
					Event struct{ Type, ID string }
				}
				Result struct {
					Started bool
					Result  struct{ End string }
				}
			}
			from := json.NewDecoder(bufio.NewReader(out))
			until := func(match func(*message) bool) message {
				t.Helper()
				for {
					var m message
					if err := from.Decode(&m); err != nil {
						t.Fatal(err)
					}
					if match(&m) {
						return m
					}
				}
			}
			post := func(format string, args ...any) {
				t.Helper()
				if _, err := fmt.Fprintf(in, format+"\n", args...); err != nil {
					t.Fatal(err)
				}
			}
			post(`{"id":1,"method":"initialize","params":{"clientName":"test","extensionMethods":true}}`)
			until(func(m *message) bool { return m.ID == 1 })
			post(`{"method":"initialized"}`)
			post(`{"id":2,"method":"run/start","params":{"args":["-s","full-access","-a","untrusted","--approval-wait","1h","--","touch","ran"],"cwd":%q,"events":true}}`, s.work)
			asked := until(func(m *message) bool { return m.Params.Event.Type == "approval_requested" })
			s.must(t, verb, asked.Params.Event.ID)
			ended := false // which may come first
			m := until(func(m *message) bool {
				ended = ended || m.Params.Event.Type == "ended"
				return m.ID == 2
			})
			approved := verb == "approve"
			if m.Result.Started != approved || !approved && m.Result.Result.End != "refused" {
				t.Errorf("%+v", m)
			}
			if approved && !ended {
				until(func(m *message) bool { return m.Params.Event.Type == "ended" })
			}
			if _, err := os.Stat(filepath.Join(s.work, "ran")); (err == nil) != approved {
				t.Error(err)
			}
			check(in.Close())
			_, _ = io.Copy(io.Discard, out)
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}
