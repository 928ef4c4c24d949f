// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// isLost reports whether an error says that the machine was lost, and with it the end of the process.
func isLost(err error) bool {
	var failure *Error
	return errors.As(err, &failure) && failure.Class == ClassTransport &&
		errors.Is(err, executor.ErrEndUnknown) && errors.As(err, new(*executor.LostError)) &&
		err.Error() == new(executor.LostError).Error()
}

// TestLost: the exit of a process whose machine was lost is no exit code, also when it was stopped, or its
// outcome is missing.
func TestLost(t *testing.T) {
	code := wire.LostCode
	ended := wire.ReadResult{Chunks: []wire.Chunk{{Seq: 1, Stream: "stdout", Chunk: []byte("x")}}, NextSeq: 4,
		Exited: true, ExitCode: &code, Closed: true, Lost: true}
	for _, stops := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			can := map[string]bool{"processPrivateTmp": true, "processConfine": true}
			_, p, end := startTold(t, can, ended)
			defer end()
			if stops {
				p.Stop()
			}
			exit, err := p.Wait()
			if !isLost(err) || exit.Code != -1 || exit.Stopped {
				t.Errorf("%+v, %v", exit, err)
			}
			own := p.(*process) //nolint:errcheck // it is one
			if own.events.total != 1 {
				t.Errorf("%d bytes of output, want what was printed before", own.events.total)
			}
		})
	}
}

// TestLostNotified: so is the notification.
func TestLostNotified(t *testing.T) {
	e := New(Options{})
	spec := shellSpec("true")
	client := new(wire.Client)
	p := e.newProcess(client, spec)
	e.processes[p.id] = p
	said := map[string]any{"processId": p.id, "seq": 1, "exitCode": wire.LostCode, "lost": true}
	text, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	e.notify(wire.MethodExited, text)
	if got := p.take1(); got.kind != kindExit || !got.gone || got.code != -1 {
		t.Errorf("%+v", got)
	}
}

// TestLostStart: a start that may have been performed by a machine which was lost has an end that is not
// known.
func TestLostStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{t: t, reply: func(_ int, m *wire.Message) any {
			if m.Method == "initialize" {
				return map[string]any{"sessionId": "s", "environmentInfo": map[string]any{}}
			}
			return &wire.Error{Code: wire.CodeInternal, Message: "m",
				Data: json.RawMessage(`{"reason":"lost"}`)}
		}}
		e := New(Options{Dial: s.dial})
		spec := shellSpec("true")
		spec.Policy = sandbox.FullAccess()
		if _, err := e.Start(t.Context(), spec); !isLost(err) {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		s.work.Wait()
	})
}
