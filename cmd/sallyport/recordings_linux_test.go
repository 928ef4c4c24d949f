// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// slowReader reads the lines of --jsonl with pauses, and prints what checksum the output has.
const slowReader = `import base64, hashlib, json, sys, time
total = hashlib.sha256()
for n, line in enumerate(sys.stdin.buffer):
    event = json.loads(line)
    if n % 8 == 0:
        time.sleep(0.01)
    if event["type"] == "output":
        total.update(base64.b64decode(event["data"]) if "data" in event else event["text"].encode())
print(total.hexdigest(), " large" if event["type"] == "result" else " cut")
`

// recordings are what a person sees in a shell that runs sallyport. docs/reference.md shows
// them.
var recordings = []struct {
	name  string
	needs []string
	turns []turn
}{
	{
		"jobs", []string{"vim"},
		[]turn{
			{prompt, "sallyport run -- vim -u NONE -i NONE -N note\r"},
			{`begin`, "ifirst "},
			{`first `, "\x1b\x1a"}, // Escape, Control-Z
			{stoppedJob, "jobs\r"},
			{stoppedJob, "fg\r"},
			{`first `, ":wq\r"},
			{prompt, "cat note\r"},
			{`first begin\r\n` + prompt, "sallyport run -- sh -c 'echo go; sleep 600 | cat'\r"},
			{`\ngo\r\n$`, "\x1a"},
			{stoppedJob, "bg\r"},
			{prompt, "jobs\r"},
			{`Running(?s:.*)` + prompt, "kill %1; wait %1\r"},
		},
	},
	{
		"process-substitution", []string{"diff"},
		[]turn{
			{prompt, "sallyport run -- diff <(printf 'a\\nb\\n') <(printf 'a\\nc\\n')\r"},
			{`< b(?s:.*)> c\r\n` + prompt, "sallyport run -- cat /dev/fd/3 3<<<'a here string'\r"},
			{`a here string\r\n`, ""},
		},
	},
	{
		"slow-reader", []string{"python3", "sha256sum"},
		[]turn{
			{prompt, "sha256sum large\r"},
			{`([0-9a-f]{64})  large\r\n` + prompt, "sallyport run --jsonl -- cat large | python3 slow.py\r"},
			{`([0-9a-f]{64})  large\r\n`, ""},
		},
	},
	{
		"network-line", []string{"getent"},
		[]turn{
			{prompt, "sallyport run -- sh -c 'getent hosts proxy.golang.org; read goes_on'\r"},
			{`sallyport: network is off \(proxy\.golang\.org\); allow with --grant net:go\r\n`, "\r"}, // it still runs
		},
	},
}

// TestRecordings plays what docs/recordings shows: files of asciicast v2, which
// SALLYPORT_TEST_UPDATE=1 writes again.
func TestRecordings(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedProgram(t, "bash")
	for _, tt := range recordings {
		t.Run(tt.name, func(t *testing.T) {
			for _, program := range tt.needs {
				testenv.NeedProgram(t, program)
			}
			s := newSeat(t)
			for name, text := range map[string]string{"note": "begin\n", "slow.py": slowReader,
				"large": strings.Repeat("a line of the large file\n", 80_000)} {
				if err := os.WriteFile(filepath.Join(s.work, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			x := testenv.StartTerminal(t, s.command(t, append(plainBash, "-i")...), 80, 24)
			found := map[string]bool{}
			for _, turn := range tt.turns {
				if groups := x.Expect(turn.see); len(groups) > 1 {
					found[groups[1]] = true
				}
				x.Send(turn.keys)
			}
			if tt.name == "slow-reader" && len(found) != 1 {
				t.Errorf("not the same bytes: %v", found)
			}
			x.Expect(prompt)
			x.Send("exit 0\r")
			x.Wait()
			if os.Getenv("SALLYPORT_TEST_UPDATE") != "" && os.Geteuid() == 0 {
				if err := os.WriteFile(filepath.Join("..", "..", "docs", "recordings", tt.name+".cast"),
					x.Asciicast(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
