// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestPlayer: the player of asciinema plays both versions.
func TestPlayer(t *testing.T) {
	const player = "asciinema-player"
	node, dir := testenv.NeedPeer(t, "node"), filepath.Join(testenv.NeedNodeModule(t, player), player)
	for _, format := range []Format{V3, V2} {
		t.Run(format.String(), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.cast")
			r := New(Options{Format: format, Open: func() (*os.File, error) { return os.Create(path) }})
			r.Begin(spec())
			r.Output([]byte("\x1b[1mé\"\\\r\n\x00\xff"), nil)
			r.Input([]byte("ls\r"), executor.EchoOn)
			r.Mark("denied: write /x")
			r.Resize(executor.Size{Cols: 100, Rows: 50})
			r.Output([]byte("b"), nil)
			if made := r.End(3); made.Error != "" {
				t.Fatal(made.Error)
			}
			out, err := exec.CommandContext(t.Context(), node, "testdata/play.mjs", dir, path).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var got struct {
				Output, Input string
				Marker        []string
			}
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			want := got
			want.Output, want.Input, want.Marker = "\x1b[1mé\"\\\r\n\x00\ufffdb", "ls\r", []string{"denied: write /x"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
