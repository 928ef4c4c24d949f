// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/gif"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// Where the recording of the walk is, and how large its picture may be, in bytes.
const (
	walkCast = "../../../docs/console/walk.cast"
	walkGIF  = "../../../docs/console/walk.gif"
	maxWalk  = 1500 << 10
)

// release is what the agent of the walk runs: it also writes beside the project.
const release = `set -e
cp CHANGELOG.md ../site/news.md
sed -i 's/^## Next/## 1.2.0/' CHANGELOG.md
echo released 1.2.0
`

// agentRun is how the agent's shell tool runs it.
var agentRun = []string{"run", "--ask-in-console", "--stage", "-a", "untrusted", "--", "sh", "release.sh"}

// A tape keeps what an agent's shell tool types and sees, as an asciicast.
type tape struct {
	mu   sync.Mutex
	last time.Time
	text bytes.Buffer // the lines of the cast
	seen strings.Builder
}

func newTape() *tape {
	t := &tape{last: time.Now()}
	t.text.WriteString(`{"version":3,"term":{"cols":100,"rows":24},"title":"What the agent sees"}` + "\n")
	return t
}

// Write adds what is seen now.
func (t *tape) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	line, err := json.Marshal([]any{float64(now.Sub(t.last).Milliseconds()) / 1000, "o",
		strings.ReplaceAll(string(p), "\n", "\r\n")})
	t.last = now
	t.text.Write(append(line, '\n'))
	t.seen.Write(p)
	return len(p), err
}

// agent starts the product as an agent's shell tool does, without a terminal. The end returns its exit code.
func (s *seat) agent(to *tape, words ...string) (end func() int) {
	s.t.Helper()
	fmt.Fprintf(to, "$ sallyport %s\n", strings.Join(words, " "))
	cmd := s.command(words...)
	cmd.Stdout, cmd.Stderr = to, to
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return func() int {
		_ = cmd.Wait() // the exit code says it
		return testenv.Code(cmd.ProcessState)
	}
}

// frames are pictures of a page, for a GIF.
type frames struct{ gif.GIF }

// add takes a picture, which is shown for some time.
func (f *frames) add(p *tab, shown time.Duration) {
	p.t.Helper()
	if !*update {
		return
	}
	eval[bool](p, drawn)
	eval[bool](p, `document.fonts.ready.then(() => true)`)
	full, err := png.Decode(bytes.NewReader(p.shot()))
	if err != nil {
		p.t.Fatal(err)
	}
	f.Image = append(f.Image, full.(*image.Paletted))
	f.Delay = append(f.Delay, int(shown/(10*time.Millisecond)))
}

// TestWalk is the way of a new user: an agent's run asks, the person answers in the page, sees what was
// denied, allows it for the project, looks at what the next run changed, and applies it. With -update it
// writes the recording of that into docs.
func TestWalk(t *testing.T) {
	s := newSeat(t)
	s.work = filepath.Join(s.home, "shop")
	s.write("CHANGELOG.md", "# Changes\n\n## Next\n\n- Carts keep their items for a week.\n")
	s.write("release.sh", release)
	s.write(s.home+"/site/index.md", "# The shop\n")
	p := open(t, s.console())
	p.size(1000, 720)
	p.view("questions")
	terminal, page := newTape(), new(frames)
	page.add(p, 2*time.Second)

	end := s.agent(terminal, agentRun...)
	p.wait("question~release.sh")
	page.add(p, 3*time.Second)
	p.click("question", "answer-approved")
	p.wait("question~site/news.md") // it was denied that: may it be given more?
	page.add(p, 3*time.Second)
	p.click("question", "answer-denied")
	if code := end(); code != 1 {
		t.Errorf("exit code %d; seen:\n%s", code, terminal.seen.String())
	}

	p.view("runs")
	p.click("run~release.sh")
	p.wait("run-detail", "run-denial~site/news.md")
	p.wait("run-detail", "run-denial~--rw "+s.home+"/site")
	page.add(p, 3*time.Second)
	p.click("run-detail", "config-allow")
	p.wait("confirm")
	page.add(p, 3*time.Second)
	p.click("confirm")
	p.wait("notice~Written")
	page.add(p, 2*time.Second)

	end = s.agent(terminal, agentRun...)
	p.view("questions")
	p.wait("question~release.sh")
	page.add(p, 2*time.Second)
	p.click("question", "answer-approved")
	if code := end(); code != 0 {
		t.Errorf("after it was allowed: exit code %d; seen:\n%s", code, terminal.seen.String())
	}
	if text := s.read("CHANGELOG.md"); !strings.Contains(text, "## Next") {
		t.Errorf("not staged: %q", text)
	}

	p.view("changes")
	p.click("stage")
	p.click("change~CHANGELOG.md")
	p.wait("diff~+## 1.2.0")
	page.add(p, 3*time.Second)
	p.click("change~" + s.home + "/site/news.md") // of another directory than the project
	p.wait("diff~+## Next")
	p.click("apply")
	p.gone("change")
	page.add(p, 3*time.Second)
	s.wantReleased()
	if *update {
		writeWalk(t, terminal, page)
	}
	checkWalk(t, s, terminal)
}

// wantReleased fails the test unless the files are what the agent made of them.
func (s *seat) wantReleased() {
	s.t.Helper()
	news, err := os.ReadFile(s.home + "/site/news.md")
	if text := s.read("CHANGELOG.md"); err != nil || !strings.Contains(text, "## 1.2.0") ||
		!strings.Contains(string(news), "## Next") {
		s.t.Errorf("after it was applied: %q, %q, %v", text, news, err)
	}
}

// writeWalk writes the recording.
func writeWalk(t *testing.T, terminal *tape, page *frames) {
	t.Helper()
	var text bytes.Buffer
	if err := gif.EncodeAll(&text, &page.GIF); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{walkCast: terminal.text.Bytes(), walkGIF: text.Bytes()} {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// differs is what two walks do not have in common.
var differs = regexp.MustCompile(`[0-9a-f]{32}-[0-9]+|[0-9a-f]{4,16}|/[^ ]*/(?:home|me)|[0-9]+ s left`)

// checkWalk fails the test unless docs have the recording, it plays, and the page about the console has the
// lines that the agent sees.
func checkWalk(t *testing.T, s *seat, terminal *tape) {
	t.Helper()
	text, err := os.ReadFile(walkGIF)
	if err != nil {
		t.Fatal(err)
	}
	all, err := gif.DecodeAll(bytes.NewReader(text))
	if err != nil || len(all.Image) < 8 || all.Config.Width > 1000 || len(text) > maxWalk {
		t.Fatalf("%s: %d bytes, %v", walkGIF, len(text), err)
	}
	cast, err := filepath.Abs(walkCast)
	if err != nil {
		t.Fatal(err)
	}
	if out := s.must("play", "--speed", "100", cast); !strings.Contains(out, "released 1.2.0") {
		t.Errorf("it plays %s", out)
	}
	about, err := os.ReadFile("../../../docs/console.md")
	if err != nil {
		t.Fatal(err)
	}
	plain := func(text string) string { return differs.ReplaceAllString(text, "*") }
	for line := range strings.Lines(terminal.seen.String()) {
		if !strings.Contains(plain(string(about)), plain(line)) {
			t.Errorf("docs/console.md lacks %s", line)
		}
	}
}
