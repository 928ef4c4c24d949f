// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// A frame is one line of the traffic between the real client of the protocol and another server.
type frame struct {
	Conn int
	Dir  string
	HTTP []string
	Msg  json.RawMessage
}

// pixel is the image that the client looks at in its workspace.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// otherwise are the recorded messages that are meant to be others here, and what becomes of them.
// What becomes empty is not waited for.
var otherwise = []struct{ record, recorded, here, why string }{
	{"", `"exitCode": 1, "sandboxDenied": false`, `"exitCode": 130, "sandboxDenied": false`, "a signal ended the command on its terminal"},
	{"reconnect", `"exitCode": 0, "closed": true`, `"exitCode": 0, "closed": false`, "the read ends with the exit"},
	{"sandboxed", `"method": "fs/missingChanged"`, "", "no .git appears: nothing is made in place of protected names"},
	{"sandboxed", `"stream": "stderr"`, "", "a message of the profile there; the words of system errors"},
	{"sandboxed", `"chunk": "L2Jpbi9iYXNoOiBzb2NrZXQ6`, "", "how a connection fails"},
}

// TestRecordedClient plays what the real client of the protocol sent, on connections as it had
// them, and compares what it gets with what another server answered.
func TestRecordedClient(t *testing.T) {
	testenv.NeedProgram(t, "bash")
	testenv.NeedUserNS(t)
	for _, name := range []string{"basic", "sandboxed", "reconnect"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := run(t, options())
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			work := filepath.Join(dir, "workspace")
			data, err := base64.StdEncoding.DecodeString(pixel)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(work, 0o755); err != nil {
				t.Fatal(err)
			}
			if name != "sandboxed" {
				if err := os.WriteFile(filepath.Join(work, "dot.png"), data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			text, err := os.ReadFile(filepath.Join("testdata", "client", name+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			s := &scenario{
				t: t, name: name, dir: dir, talks: map[string]*talk{},
				dial:   func() speaker { return connect(t, server) },
				expect: map[string]map[string][]byte{}, ids: map[string]string{},
			}
			s.record(string(text), work)
		})
	}
}

// sessionID is that of the recorded session.
var sessionID = regexp.MustCompile(`"(sessionId|resumeSessionId)": "[-0-9a-f]{36}"`)

// record plays a record in the directory work.
func (s *scenario) record(text, work string) {
	replace := strings.NewReplacer(
		"file:///workspace", "file://"+work, // and directories above it that have no .git
		"file:///client/.git", "file://"+s.dir+"/.git", "file:///srv/.git", "file://"+s.dir+"/.git",
		"file:///tmp/.git", "file://"+s.dir+"/.git", "file:///.git", "file://"+s.dir+"/.git",
		base64.StdEncoding.EncodeToString([]byte("/work\n")),
		base64.StdEncoding.EncodeToString([]byte(work+"\n")),
		`"waitMs": 0`, `"waitMs": 60000`, // the command may take longer to end here
	)
	for raw := range strings.Lines(text) {
		raw = replace.Replace(raw)
		for _, o := range otherwise {
			if (o.record == "" || o.record == s.name) && o.here == "" && strings.Contains(raw, o.recorded) {
				raw = ""
			} else if o.record == "" || o.record == s.name && o.here != "" {
				raw = strings.Replace(raw, o.recorded, o.here, 1)
			}
		}
		if raw == "" {
			continue
		}
		var f frame
		if err := json.Unmarshal([]byte(sessionID.ReplaceAllStringFunc(raw, s.session)), &f); err != nil {
			s.t.Fatalf("%s: %v", raw, err)
		}
		conn := string(rune('a' + f.Conn))
		switch {
		case f.HTTP != nil && f.Dir == "s2c":
		case f.HTTP != nil:
			for _, c := range s.talks {
				_ = c.close() // cut, as it was
			}
		case f.Dir == "c2s" && strings.Contains(string(f.Msg), `"initialize"`):
			s.attach(conn, &line{Dir: f.Dir, Conn: conn, Msg: f.Msg})
		default:
			s.step(&line{Dir: f.Dir, Conn: conn, Msg: f.Msg})
		}
	}
	for _, c := range s.talks {
		s.inOrder(c)
	}
}

// attach connects until the server has seen that the connection before was cut.
func (s *scenario) attach(conn string, initialize *line) {
	for {
		c := newTalk(s.dial())
		s.talks[conn] = c
		s.step(initialize)
		var got *message
		c.wait(s.t, "the session", func() bool { got, _ = c.answer("1", 0); return got != nil })
		if got.Error == nil || got.Error.Code != wire.CodeAttached {
			return
		}
		_ = c.close()
	}
}

// session puts the session of this server in the place of the recorded one.
func (s *scenario) session(member string) string {
	switch id := s.ids["a"]; {
	case strings.HasPrefix(member, `"resume`):
		return `"resumeSessionId": "` + id + `"`
	case id != "":
		return `"sessionId": "` + id + `"`
	}
	return `"sessionId": "$"`
}
