// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/fleet/link"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// pump passes on what the node of the session sends, until the link is over.
func (c *connection) pump(l *link.Link) {
	for {
		batch, err := l.ReadBatch()
		if err != nil {
			c.over(err)
			return
		}
		for i := range batch {
			c.note(&batch[i])
		}
		if c.write(batch...) != nil {
			_ = c.stream.Close() // the reader sees it
			return
		}
	}
}

// over handles the end of the link to the node. A client whose node is there, or may be, resumes its session
// by another connection.
func (c *connection) over(err error) {
	lost := new(executor.LostError)
	switch {
	case errors.As(err, &lost):
		c.becomeLost(lost)
	case errors.Is(err, io.EOF):
		c.leave()
	default:
		_ = c.stream.Close() // it may have ended already
	}
}

// The begin of a notification of output, as exec-servers of ours write it.
var outputMark = []byte(`{"method":"` + wire.MethodOutput + `","params":{"processId":"`)

// note notes what a message of the node says of processes and requests.
func (c *connection) note(m *wire.Outgoing) {
	if m.Binary {
		if o, err := wire.DecodeFrame(m.Data); err == nil {
			c.saw(o.ProcessID, o.Seq, false)
		}
		return
	}
	if rest, ok := bytes.CutPrefix(m.Data, outputMark); ok {
		if id, seq, ok := readOutput(rest); ok {
			c.saw(id, seq, false)
			return
		}
	}
	const whole = 1 << 20
	if len(m.Data) > whole {
		if id, ok := readID(m.Data); ok {
			c.answered(id, true)
		}
		return
	}
	of, err := wire.DecodeMessage(m.Data)
	switch {
	case err != nil:
	case of.Kind == wire.KindResponse || of.Kind == wire.KindError:
		c.answered(of.ID, of.Kind == wire.KindResponse)
	case of.Kind == wire.KindNotification:
		var p struct {
			ProcessID string
			Seq       uint64
		}
		if json.Unmarshal(of.Params, &p) == nil && p.ProcessID != "" {
			c.saw(p.ProcessID, p.Seq, of.Method == wire.MethodClosed)
		}
	}
}

// readOutput reads the process and the number of a notification of output, behind outputMark.
func readOutput(text []byte) (id string, seq uint64, ok bool) {
	end := bytes.IndexByte(text, '"')
	if end < 0 || bytes.IndexByte(text[:end], '\\') >= 0 {
		return "", 0, false
	}
	rest, ok := bytes.CutPrefix(text[end:], []byte(`","seq":`))
	if !ok {
		return "", 0, false
	}
	digits := rest[:min(len(rest), len("18446744073709551615"))]
	if n := bytes.IndexByte(digits, ','); n >= 0 {
		digits = digits[:n]
	}
	seq, err := strconv.ParseUint(string(digits), 10, 64)
	return string(text[:end]), seq, err == nil
}

// readID reads the ID of a long answer, which exec-servers of ours write first.
func readID(text []byte) (id wire.ID, ok bool) {
	rest, ok := bytes.CutPrefix(text, []byte(`{"id":`))
	if !ok {
		return id, false
	}
	d := json.NewDecoder(bytes.NewReader(rest))
	return id, d.Decode(&id) == nil
}

// saw notes an event of a process; closed is the last one.
func (c *connection) saw(id string, seq uint64, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if closed {
		delete(c.known, id)
	} else if _, ok := c.known[id]; ok || len(c.known) < maxKnown {
		c.known[id] = max(c.known[id], seq)
	}
}

// answered notes the answer to a request.
func (c *connection) answered(id wire.ID, good bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending[id]
	delete(c.pending, id)
	if good && p.method == "process/start" {
		c.known[p.of.ProcessID] = max(c.known[p.of.ProcessID], 0)
	}
}

// becomeLost tells the client that the node of its session was lost: what waits is answered, and processes
// end.
func (c *connection) becomeLost(lost *executor.LostError) {
	c.mu.Lock()
	c.lost = lost
	waiting, known := c.pending, c.known
	c.pending, c.known = make(map[wire.ID]pending), make(map[string]uint64)
	c.mu.Unlock()
	for id, seq := range known {
		c.send(wire.Notification(wire.MethodExited, &wire.Exited{ProcessID: id, Seq: seq + 1, ExitCode: wire.LostCode,
			Lost: true}))
		c.send(wire.Notification(wire.MethodClosed, &wire.Closed{ProcessID: id, Seq: seq + 2}))
	}
	for id, p := range waiting {
		c.answerLost(id, lost, p)
	}
}

// lostResult is the result of a run whose node was lost.
func lostResult(lost *executor.LostError) any {
	return runs.Encode(sallyport.ResultOf(nil, lost))
}

// answerLost answers a request to a node that was lost.
func (c *connection) answerLost(id wire.ID, lost *executor.LostError, p pending) {
	if result := lostAnswer(lost, &p); result != nil {
		c.answer(id, result)
		return
	}
	c.fail(id, lostFailure(lost))
}

func lostFailure(lost *executor.LostError) *wire.Error {
	data, _ := json.Marshal(wire.Refusal{Reason: wire.ReasonLost}) // it always encodes
	return &wire.Error{Code: wire.CodeInternal, Message: lost.Error(), Data: data}
}

// lostAnswer returns the result of a request to a node that was lost; nil where there is none but an error.
func lostAnswer(lost *executor.LostError, p *pending) any {
	switch p.method {
	case "process/read":
		code := wire.LostCode
		return &wire.ReadResult{Chunks: []wire.Chunk{}, NextSeq: p.of.AfterSeq + 1, Exited: true, ExitCode: &code,
			Closed: true, Failure: text(lost.Error()), Lost: true}
	case "process/write":
		return wire.WriteResult{Status: wire.WriteUnknown}
	case "process/terminate", "run/terminate":
		return map[string]bool{"running": false}
	case "process/list":
		return map[string]any{"processes": []any{}}
	case "process/signal", "process/resize", "process/closeStdin", "process/awaitInput", "run/remove", "run/signal":
		return struct{}{}
	case "run/start":
		return wire.RunStartResult{RunID: p.of.RunID, Result: lostResult(lost)}
	case "run/wait":
		return map[string]any{"reason": "exited", "next": 0, "after": 0, "elapsedMs": 0, "result": lostResult(lost)}
	case "run/result":
		return map[string]any{"result": lostResult(lost)}
	case "run/read":
		return map[string]any{"chunks": []any{}, "next": p.of.After, "complete": true, "result": lostResult(lost)}
	}
	return nil
}

func text(s string) *string { return &s }
