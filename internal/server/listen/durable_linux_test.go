// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// durableEnv names the directory in which a server keeps what it knows for the next one; empty for none.
const durableEnv = "SALLYPORT_TEST_DURABLE"

// again resumes a session, and reports whether there is one.
func (c *caller) again(session string) bool {
	c.t.Helper()
	m := c.call("initialize", map[string]any{"clientName": "test", "resumeSessionId": session,
		"extensionMethods": true})
	c.post(map[string]any{"method": "initialized"})
	return m.Error == nil
}

// page reads all of the output of a process.
func (c *caller) page(process string) (page wire.ReadResult, text string) {
	c.t.Helper()
	m := c.call("process/read", map[string]any{"processId": process})
	if m.Error != nil || json.Unmarshal(m.Result, &page) != nil {
		c.t.Fatalf("%s: %+v", process, m.Error)
	}
	for _, chunk := range page.Chunks {
		text += chunk.Stream + ":" + string(chunk.Chunk) + " "
	}
	return page, strings.ReplaceAll(strings.TrimSpace(text), "\n", "")
}

// TestDurable: a server that comes after one which was killed has its sessions: all output with its numbers,
// the ends that were known, and of what ran that it was lost. Nothing is started in them. Without the
// directory there is no such session.
func TestDurable(t *testing.T) {
	for _, test := range []struct {
		name string
		kept bool
	}{{"kept", true}, {"not kept", false}} {
		t.Run(test.name, func(t *testing.T) {
			if test.kept {
				t.Setenv(durableEnv, filepath.Join(t.TempDir(), "kept"))
			}
			server, url := serverProcess(t)
			c, session := meet(t, url, nil)
			for id, text := range map[string]string{"ended": "echo a; echo b >&2; exit 3",
				"runs": "echo c; sleep 300"} {
				m := c.call("process/start", map[string]any{"processId": id,
					"argv": []string{"/bin/sh", "-c", text}, "cwd": "file:///", "tty": false,
					"env": map[string]string{"PATH": "/usr/bin:/bin"}})
				if m.Error != nil {
					t.Fatalf("%+v", m.Error)
				}
			}
			before := map[string]wire.ReadResult{}
			for id, chunks := range map[string]int{"ended": 2, "runs": 1} {
				for page, _ := c.page(id); len(page.Chunks) < chunks || id == "ended" && !page.Closed; {
					c.call("process/read", map[string]any{"processId": id, "afterSeq": page.NextSeq - 1,
						"waitMs": 10000})
					page, _ = c.page(id)
				}
				before[id], _ = c.page(id)
			}
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			_, _ = server.Wait()
			_, url = serverProcess(t)
			w := connect(t, url, nil)
			deadline(t, w)
			c = &caller{t: t, speaker: w}
			if known := c.again(session); known != test.kept {
				t.Fatalf("the session is known: %t", known)
			}
			if !test.kept {
				return
			}
			page, text := c.page("runs")
			if text != "stdout:c" || !page.Exited || *page.ExitCode != wire.LostCode ||
				!page.Lost || !page.Closed ||
				page.NextSeq != before["runs"].NextSeq+2 {
				t.Errorf("%q, %+v", text, page)
			}
			page, text = c.page("ended")
			was := before["ended"]
			_, want := was, ""
			for _, chunk := range was.Chunks {
				want += chunk.Stream + ":" + strings.TrimSpace(string(chunk.Chunk)) + " "
			}
			if text != strings.TrimSpace(want) || !page.Exited || *page.ExitCode != 3 || page.Lost ||
				!page.Closed || page.NextSeq != was.NextSeq {
				t.Errorf("%q, want %q; %+v", text, want, page)
			}
			if m := c.call("process/start", map[string]any{"processId": "new", "argv": []string{"/bin/true"},
				"cwd": "file:///", "env": map[string]string{}, "tty": false}); m.Error == nil ||
				!strings.Contains(m.Error.Message, "lost") {
				t.Errorf("a start in it: %+v", m.Error)
			}
			if m := c.call("process/write", map[string]any{"processId": "runs", "chunk": "",
				"writeId": "1"}); m.Error != nil || string(m.Result) != `{"status":"stdinClosed"}` {
				t.Errorf("%s, %+v", m.Result, m.Error)
			}
		})
	}
}
