// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// command returns a step that runs a command.
func command(text string, tty bool) func([]string) (string, map[string]any) {
	return func([]string) (string, map[string]any) {
		return "exec_command", map[string]any{"cmd": text, "tty": tty, "yield_time_ms": 1000}
	}
}

// typed returns a step that types for the command of the newest session.
func typed(text string) func([]string) (string, map[string]any) {
	return func(outputs []string) (string, map[string]any) {
		id := 0
		for _, output := range outputs {
			if found := regexp.MustCompile(`session ID (\d+)`).FindStringSubmatch(output); found != nil {
				_, _ = fmt.Sscan(found[1], &id)
			}
		}
		return "write_stdin", map[string]any{"session_id": id, "chars": text, "yield_time_ms": 1000}
	}
}

// steps are what the client is to do. Outside is a file that a sandbox does not let it write.
// Cut cuts the connection.
func steps(outside string, cut func()) []func([]string) (string, map[string]any) {
	patch := func(path, line string) func([]string) (string, map[string]any) {
		return command("apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: "+path+"\n+"+line+
			"\n*** End Patch\nEOF", false)
	}
	return []func([]string) (string, map[string]any){
		command("echo hello from here; pwd; echo oops >&2; exit 7", false),
		patch("new.txt", "patched"),
		command("cat new.txt", false),
		command("stty size; cat", true),
		typed("ping\n"),
		func(outputs []string) (string, map[string]any) {
			cut() // the client notices, and resumes its session
			return typed("pong\n")(outputs)
		},
		typed("\x04"),
		patch(".git/hooks/pre-commit", "evil"),
		command("echo over 2>/dev/null > "+outside+" || echo no", false),
		func([]string) (string, map[string]any) { return "view_image", map[string]any{"path": "dot.png"} },
	}
}

// TestPeerClient has the real client of the protocol run commands, a terminal and patches here and
// on the real server, and compares what the model is told.
func TestPeerClient(t *testing.T) {
	codex := testenv.NeedPeer(t, "codex")
	testenv.NeedUserNS(t)
	for _, mode := range []string{"danger-full-access", "workspace-write"} {
		t.Run(mode, func(t *testing.T) {
			home := t.TempDir() // without settings of shells
			o := options()
			o.Server.Environ = append(o.Server.Environ, "HOME="+home)
			ours := converse(t, codex, mode, run(t, o))
			wants := []string{"hello from here\\nWS\\noops", "Success", "patched", "24 80", "ping", "pong",
				"code 0", "", "", "data:image/png;base64,"}
			if mode == "workspace-write" {
				wants[7], wants[8] = "rejected", "no\\n"
			}
			for i, want := range wants {
				if i >= len(ours) || !strings.Contains(ours[i], want) {
					t.Errorf("call %d: no %q in %q", i, want, ours)
				}
			}
			theirs := converse(t, codex, mode, peerServer(t, codex, home))
			if !slices.Equal(sortLines(ours), sortLines(theirs)) {
				t.Errorf("here:  %q\nthere: %q", ours, theirs)
			}
		})
	}
}

// sortLines sorts the lines of the first answer, the only one with both streams: here they keep the
// order in which they were written, which is compared above; the real server reads the streams apart.
func sortLines(answers []string) []string {
	answers = slices.Clone(answers)
	if len(answers) > 0 {
		lines := strings.Split(answers[0], `\n`)
		slices.Sort(lines)
		answers[0] = strings.Join(lines, `\n`)
	}
	return answers
}

// converse has the client do all steps on the server at url, and returns what it told the model,
// without what differs each time.
func converse(t *testing.T, codex, mode, url string) []string {
	t.Helper()
	home, ws := t.TempDir(), t.TempDir()
	outside, err := os.MkdirTemp(".", "outside-") //nolint:usetesting // not in /tmp, which the sandbox has writable
	check(t, err)
	defer os.RemoveAll(outside)
	outside, err = filepath.Abs(outside)
	check(t, err)
	r := newRelay(t, strings.TrimPrefix(url, "ws://"))
	m := &testenv.Model{Script: steps(filepath.Join(outside, "o"), r.cut)}
	api := httptest.NewServer(m)
	defer api.Close()
	config := fmt.Sprintf("model = \"scripted\"\nmodel_provider = \"scripted\"\n[model_providers.scripted]\nname = \"scripted\"\nbase_url = %q\nwire_api = \"responses\"\n[features]\nunified_exec = true\n", api.URL+"/v1")
	check(t, errors.Join(os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600),
		os.MkdirAll(filepath.Join(ws, ".git", "hooks"), 0o755),
		os.WriteFile(filepath.Join(ws, "dot.png"), dot(t), 0o644)))
	cmd := exec.CommandContext(t.Context(), codex, "exec", "--skip-git-repo-check", "-C", ws, "-s",
		mode, "go on")
	cmd.Env = append(os.Environ(), "CODEX_HOME="+home, "CODEX_EXEC_SERVER_URL=ws://"+r.Addr().String())
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if mode == "workspace-write" && (exists(ws+"/.git/hooks/pre-commit") || exists(outside+"/o")) {
		t.Error("the sandbox was left")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.total < 2 {
		t.Error("the connection was never cut")
	}
	said := m.Said()
	told := make([]string, len(said))
	for i, s := range said {
		s = strings.ReplaceAll(s, ws, "WS")
		told[i] = regexp.MustCompile(`Chunk ID: \w+|Wall time: [\d.]+|session ID \d+`).ReplaceAllString(s, "...")
	}
	return told
}

// dot returns an image.
func dot(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	check(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))))
	return b.Bytes()
}

// A relay passes connections on to a server, until they are cut.
type relay struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
	total int // connections that clients made
}

func newRelay(t *testing.T, address string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	r := &relay{Listener: l}
	var work sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		r.cut()
		work.Wait()
	})
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_, _ = to.Close(), from.Close()
	}
	work.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", address)
			if err != nil {
				_ = client.Close()
				continue
			}
			r.mu.Lock()
			r.conns = append(r.conns, client, server)
			r.total++
			r.mu.Unlock()
			work.Go(func() { pass(client, server) })
			work.Go(func() { pass(server, client) })
		}
	})
	return r
}

// cut cuts every connection that there is.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
}

// peerServer runs the real server until the test ends, and returns its URL.
func peerServer(t *testing.T, codex, home string) string {
	t.Helper()
	own, err := os.MkdirTemp(".", "peer-") //nolint:usetesting // its sandbox does not work from a directory in /tmp
	check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(own) })
	own, err = filepath.Abs(own)
	check(t, err)
	cmd := exec.Command(codex, "exec-server", "--listen", "ws://127.0.0.1:0")
	cmd.Env = append(os.Environ(), "HOME="+home, "CODEX_HOME="+own)
	out, err := cmd.StdoutPipe()
	check(t, errors.Join(err, cmd.Start()))
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	url, err := bufio.NewReader(out).ReadString('\n')
	check(t, err)
	return strings.TrimSpace(url)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
