// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestRecordedClient: what the real client of the protocol sends is understood, and nothing in it
// is left out.
func TestRecordedClient(t *testing.T) {
	recordings, err := filepath.Glob("testdata/client/*.jsonl")
	if err != nil || len(recordings) == 0 {
		t.Fatalf("%d recordings, %v", len(recordings), err)
	}
	seen := map[string]int{}
	for _, name := range recordings {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for raw := range strings.Lines(string(text)) {
			var line struct {
				Dir string
				Msg json.RawMessage
			}
			if err := json.Unmarshal([]byte(raw), &line); err != nil {
				t.Fatal(err)
			}
			if line.Dir != "c2s" || line.Msg == nil {
				continue
			}
			m, err := wire.DecodeMessage(line.Msg)
			if err != nil {
				t.Fatalf("%s: %v", raw, err)
			}
			if m.Kind != wire.KindRequest {
				continue
			}
			seen[m.Method]++
			known, ok := methods[m.Method]
			if !ok {
				known, ok = fileMethod(m.Method)
			}
			if !ok {
				t.Errorf("%s is not served", m.Method)
				continue
			}
			if _, err := known.decode(m.Params); err != nil {
				t.Errorf("%s: %v", raw, err)
			}
			if start, err := wire.Decode[wire.Start](m.Params); m.Method == "process/start" && (err != nil || len(start.Unsupported) > 0 || start.Sandbox != nil && len(start.Sandbox.Unsupported) > 0) {
				t.Errorf("%s: %+v, %v", raw, start, err)
			}
			if file, err := wire.Decode[wire.File](m.Params); strings.HasPrefix(m.Method, "fs/") && m.Method != "fs/watchMissing" && (err != nil || file.Sandbox != nil && len(file.Sandbox.Unsupported) > 0) {
				t.Errorf("%s: %+v, %v", raw, file, err)
			}
		}
	}
	for _, method := range []string{"initialize", "process/start", "process/read", "process/write", "process/terminate", "fs/getMetadata", "fs/readFile", "fs/writeFile", "fs/watchMissing", "environmentConfig/read"} {
		if seen[method] == 0 {
			t.Errorf("no recording has %s", method)
		}
	}
}

// stopped is a process that notes that it was stopped.
type stopped struct {
	executor.Process
	yes bool
}

func (s *stopped) Stop() { s.yes = true }

// TestIdleHelpers: a helper ends when it was not used for a while, or makes room for another one,
// but not while a client has a file open in it.
func TestIdleHelpers(t *testing.T) {
	processes := map[string]*stopped{}
	l := &fileLane{owners: map[string]*fileProcess{}}
	use := func(name string) *fileProcess {
		r, w := io.Pipe()
		processes[name] = new(stopped)
		h := &fileProcess{key: name, process: processes[name], stream: wire.Lines(r, w), used: time.Now().Add(-helperIdle)}
		l.helpers = append(l.helpers, h)
		return h
	}
	ended := func() (names []string) {
		for name, p := range processes {
			if p.yes {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	use("old")
	l.owners["h"] = use("open")
	use("new").used = time.Now()
	l.stopIdle()
	if got := ended(); !slices.Equal(got, []string{"old"}) || len(l.helpers) != 2 {
		t.Errorf("%q ended, %d are left", got, len(l.helpers))
	}
	l.drop(l.owners["h"])
	if got := ended(); !slices.Equal(got, []string{"old", "open"}) || len(l.owners) != 0 {
		t.Errorf("%q ended, handles: %v", got, l.owners)
	}
	for _, name := range []string{"a", "b", "c"} {
		l.owners[name] = use(name)
	}
	l.owners["n"] = l.helpers[0]
	if _, err := l.startHelper("x", &executor.Spec{Policy: sandbox.ReadOnly()}, nil); err == nil || !strings.Contains(err.Error(), "limit of sandboxes for files (4)") {
		t.Errorf("%v", err)
	}
}
