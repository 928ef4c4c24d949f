// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/runargs"
	"github.com/sallyport-dev/sallyport/internal/wire"
)

// TestComplete: output that did not arrive is an error that counts it, but what a limit of the run has cut
// off at its end.
func TestComplete(t *testing.T) {
	data := []byte("x")
	for _, test := range []struct {
		name   string
		chunks []wire.RunChunk
		end    string
		want   string // the beginning of the error
	}{
		{"nothing", nil, "exited", ""},
		{"all", []wire.RunChunk{{Chunk: data}}, "exited", ""},
		{"inside", []wire.RunChunk{{Chunk: data}, {Missing: 3, Chunk: data}}, "exited", "3 bytes"},
		{"at the end", []wire.RunChunk{{Chunk: data}, {Missing: 4}}, "exited", "4 bytes"},
		{"beyond the limit", []wire.RunChunk{{Chunk: data}, {Missing: 4}}, "output", ""},
		{"inside and beyond the limit", []wire.RunChunk{{Missing: 3, Chunk: data}, {Missing: 4}}, "output", "3 bytes"},
		{"inside, and nothing beyond the limit", []wire.RunChunk{{Chunk: data}, {Missing: 3, Chunk: data}}, "output", "3 bytes"},
		{"two without content", []wire.RunChunk{{Missing: 3}, {Missing: 4}}, "output", "3 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var r reading
			p := printer{own: &r, env: &Env{Env: new(runargs.Env)}}
			r.gone = [2]bool{true, true} // nothing is printed
			if err := p.show(test.chunks); err != nil {
				t.Fatal(err)
			}
			err := r.complete(json.RawMessage(`{"end":"` + test.end + `"}`))
			if (err != nil) != (test.want != "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// A parted is a client of a server that has a result in parts of 3 bytes; an older one has it whole.
type parted struct {
	text string
	old  bool
	hole bool // a part is empty
}

func (p parted) Call(context.Context, string, any, any) error { return errors.ErrUnsupported }
func (p parted) Close() error                                 { return nil }

func (p parted) Repeat(_ context.Context, _ string, params, result any) error {
	text, _ := json.Marshal(params)
	var asked wire.RunResultOf
	if err := json.Unmarshal(text, &asked); err != nil {
		return err
	}
	answer := map[string]any{"result": json.RawMessage(p.text)}
	if !p.old && asked.From != nil {
		rest := p.text[*asked.From:]
		part := rest[:min(3, len(rest))]
		if p.hole {
			part = ""
		}
		answer = map[string]any{"part": []byte(part), "complete": !p.hole && len(part) == len(rest)}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, result)
}

// TestResultOf: a result comes whole, in parts, and from servers that know none.
func TestResultOf(t *testing.T) {
	const text = `{"exit_code":3}`
	for _, old := range []bool{false, true} {
		for _, output := range []bool{false, true} {
			got, err := resultOf(t.Context(), parted{text: text, old: old}, "1", output)
			if string(got) != text || err != nil {
				t.Errorf("old %v, output %v: %s, %v", old, output, got, err)
			}
		}
	}
	if got, err := resultOf(t.Context(), parted{text: text, hole: true}, "1", true); err == nil {
		t.Errorf("%s", got)
	}
}
