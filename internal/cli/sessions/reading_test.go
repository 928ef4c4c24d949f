// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
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
			p := printer{own: &r, env: &Env{Env: new(args.Env)}}
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
