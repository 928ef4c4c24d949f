// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// large is a file in a workspace with much more output than waits for a reader.
func large(t *testing.T) (dir string, text []byte) {
	t.Helper()
	size := 4 << 20
	if testenv.IsLong() {
		size = 50 << 20
	}
	dir, text = workRoot(t), make([]byte, size)
	_, _ = rand.Read(text) // it never fails
	if err := os.WriteFile(filepath.Join(dir, "large"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir, text
}

// outputLine is a line of --jsonl.
type outputLine struct {
	Type         string
	Stream       string
	Text         string
	Data         []byte
	DroppedBytes uint64 `json:"dropped_bytes"`
	StdoutBytes  uint64 `json:"stdout_bytes"`
}

// TestSlowReader: the program waits for the reader of --jsonl, who gets every byte. With
// --jsonl-drop the bytes that are missing are counted.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	dir, text := large(t)
	for _, flags := range []string{"", "--jsonl-drop"} {
		t.Run("run "+flags, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "sallyport",
				strings.Fields("run --jsonl "+flags+" -- cat large")...)
			cmd.Dir, cmd.Env = dir, append(testenv.Environ(), "XDG_STATE_HOME="+t.TempDir(),
				"GORACE="+noRaceSleep)
			var diagnosis strings.Builder
			cmd.Stderr = &diagnosis
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			sum, passed, dropped := sha256.New(), uint64(0), uint64(0)
			var last outputLine
			for lines := json.NewDecoder(bufio.NewReaderSize(out, 256)); lines.More(); { // slow
				last = outputLine{}
				if err := lines.Decode(&last); err != nil {
					t.Fatalf("%v after %d bytes; it ends with %v, %s", err, passed, cmd.Wait(), &diagnosis)
				}
				if last.Type == "output" {
					p := last.Data
					if p == nil { // it is text
						p = []byte(last.Text)
					}
					sum.Write(p)
					passed, dropped = passed+uint64(len(p)), dropped+last.DroppedBytes
				}
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			want := sha256.Sum256(text)
			same := bytes.Equal(sum.Sum(nil), want[:])
			if last.Type != "result" || last.StdoutBytes != uint64(len(text)) ||
				passed+dropped != uint64(len(text)) || same != (dropped == 0) || same != (flags == "") {
				t.Errorf("%d bytes of %d, %d dropped, the same: %v; the last line is %s, with %d bytes; %s",
					passed, len(text), dropped, same, last.Type, last.StdoutBytes, &diagnosis)
			}
		})
	}
}

// TestStuckReader: a reader that takes nothing does not keep a time limit from ending the
// program and sallyport, which counts what was not read.
func TestStuckReader(t *testing.T) {
	testenv.NeedUserNS(t)
	for name, script := range map[string]string{
		"the program writes on": "exec cat large",
		"it has ended":          "head -c 500000 large", // which waits in buffers
		"it ignores signals":    "trap '' TERM; cat large; sleep 600",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, _ := large(t) // of its own: state directories are, too
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			limit := "1"
			if name == "it has ended" {
				limit = "4" // it has to end before, also on a busy machine
			}
			cmd := exec.CommandContext(t.Context(), "sallyport", "run", "--jsonl", "--timeout", limit,
				"--kill-after", "0.1", "--", "sh", "-c", script)
			cmd.Dir, cmd.Env = dir, append(testenv.Environ(), "XDG_STATE_HOME="+t.TempDir(),
				"GORACE="+noRaceSleep)
			var errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = w, &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = w.Close()
			_ = cmd.Wait()
			want := 124
			if name == "it has ended" {
				want = 0
			}
			if code := testenv.Code(cmd.ProcessState); code != want ||
				!strings.Contains(errs.String(), "bytes of output, and the result, were not written") {
				t.Errorf("exit code %d, %q", code, errs.String())
			}
		})
	}
}
