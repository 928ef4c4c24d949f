// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// echoing is a session that prints a line and then each line that it reads.
const echoing = `echo ready; while read -r line; do echo "got <$line>"; done`

// detached starts a session on a terminal and returns its ID.
func (s *seat) detached(script string) string {
	s.t.Helper()
	return s.must("run", "--detach", "-t", "--", "sh", "-c", script)
}

// screen is the expression for what the terminal shows, read from its rows in the document.
const screen = `([...document.querySelectorAll("[data-testid=terminal] .xterm-rows > *")]
	.map((row) => row.textContent.replaceAll("\u00a0", " ").trimEnd()).join("\n"))`

// shows waits until the terminal shows a text.
func (p *tab) shows(text string) {
	p.t.Helper()
	p.until(screen + `.includes(` + js(text) + `)`)
}

// openSession opens the terminal of a session whose line has a text.
func (p *tab) openSession(text string) {
	p.t.Helper()
	p.view("sessions")
	p.click("session~"+text, "session-open")
	p.wait("terminal")
}

// takeControl lets keys go to the session, and waits for that.
func (p *tab) takeControl() {
	p.t.Helper()
	p.click("take-control")
	p.until(`sp.all(["take-control"])[0]?.getAttribute("aria-pressed") === "true"`)
}

// TestSessionList: running and ended sessions with their state, and new ones without a reload.
func TestSessionList(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	p := open(t, s.console())
	p.view("sessions")
	s.detached(`echo last-line-of-it; read -r x; exit 3`)
	p.wait("session~last-line-of-it")
	p.until(`sp.all(["session~last-line-of-it"]).some((el) => /input/i.test(el.textContent))`)
	s.must("send", "1", "go")
	p.until(`sp.all(["session~last-line-of-it"]).some((el) => /exit(ed)?\b.*3/i.test(el.textContent))`)
}

// TestTerminal: opened, read, typed into after take-control, left by its key.
func TestTerminal(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	id := s.detached(echoing)
	p := open(t, s.console())
	p.openSession("ready")
	p.shows("ready")
	p.click("terminal")
	p.keys("ignored\r")
	p.takeControl()
	p.click("terminal")
	p.keys("typed here\r")
	p.shows("got <typed here>")
	if out := s.must("logs", id); strings.Contains(out, "ignored") {
		t.Errorf("it was typed before control was taken: %q", out)
	}
	p.do(chromedp.KeyEvent("\\", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	p.gone("terminal")
	p.wait("view-sessions")
	p.wait("session~ready")
}

// TestTerminalIsInert: titles, links and queries of a command do nothing to the page.
func TestTerminalIsInert(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	id := s.detached(`printf '\033]0;own title\007\033]2;own title\007\033]8;;https://example.com/\033\\` +
		`a link\033]8;;\033\\ https://example.net/ ` +
		`\033]52;c;cHduZWQ=\007\033[6n\033[c\033[>c<img src=x onerror=window.pwned=1>\342\200\256abc\n'; echo done; cat`)
	p := open(t, s.console())
	before := eval[string](p, `document.title`)
	p.openSession("done")
	p.shows("done")
	p.shows("<img src=x onerror=window.pwned=1>")
	p.takeControl()
	if after := eval[string](p, `document.title`); strings.Contains(after, "own title") {
		t.Errorf("the title was %q and is %q", before, after)
	}
	if n := eval[int](p, `document.querySelectorAll("[data-testid=terminal] :is(a, img)").length`); n != 0 {
		t.Errorf("%d links and images in the terminal", n)
	}
	p.click("terminal")
	p.keys("x\r")
	p.shows("x\nx")
	// The session itself has told the command once where its cursor is.
	if out := s.must("logs", id); len(regexp.MustCompile(`\^\[\[\d+;\d+R`).FindAllString(out, -1)) != 1 {
		t.Errorf("the page has answered the command: %q", out)
	}
	if eval[bool](p, `window.pwned !== undefined`) {
		t.Error("a script of the command ran")
	}
}

// TestTerminalSize: the session gets the size of the terminal in the page, and a new one with the window.
func TestTerminalSize(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	s.detached(`echo ready; while read -r x; do stty size; done`)
	p := open(t, s.console())
	p.openSession("ready")
	p.takeControl()
	marks := 0
	size := func() string {
		marks++
		p.click("terminal")
		p.keys(fmt.Sprintf("mark %d\r", marks))
		return eval[string](p, fmt.Sprintf(`sp.until(() => %s.match(/mark %d\n(\d+ \d+)/)?.[1])`, screen, marks))
	}
	wide := size()
	p.size(700, 500)
	if narrow := size(); narrow == wide {
		t.Errorf("%s and then %s", wide, narrow)
	}
}

// TestSessionSignals: a signal and the end of a session from the page.
func TestSessionSignals(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	s.detached(`trap 'echo caught USR1' USR1; echo ready; while :; do read -r x; done`)
	p := open(t, s.console())
	p.openSession("ready")
	p.shows("ready")
	p.takeControl()
	p.choose("signal-name", "USR1")
	p.click("signal")
	p.shows("caught USR1")
	p.click("stop")
	p.click("confirm")
	if code, out := s.says("wait", "--timeout", "60s", "1"); code <= 128 {
		t.Errorf("exit code %d, %s", code, out)
	}
	p.view("sessions")
	p.until(`sp.all(["session~caught"]).some((el) => !/running/i.test(el.textContent))`)
}

// choose selects an option by a part of its text.
func (p *tab) choose(id, text string) {
	p.t.Helper()
	p.wait(id)
	p.until(`[...sp.all([` + js(id) + `])[0].options].some((o) => o.textContent.includes(` + js(text) + `))`)
	eval[bool](p, `(() => { const el = sp.all([`+js(id)+`])[0]; el.value = [...el.options]
		.find((o) => o.textContent.includes(`+js(text)+
		`)).value; el.dispatchEvent(new Event("input", {bubbles: true}));
		el.dispatchEvent(new Event("change", {bubbles: true})); return true; })()`)
}

// TestTerminalSearch: what is found in the output is shown, also far up.
func TestTerminalSearch(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	s.detached(`echo needle in front; i=0; while [ $i -lt 500 ]; do echo "line $i of many"; i=$((i+1)); done
		echo ready; cat`)
	p := open(t, s.console())
	p.openSession("ready")
	p.shows("ready")
	p.click("search")
	p.keys("needle" + kb.Enter)
	p.shows("needle in front")
}

// TestReconnect: after the end of the console and of the daemon the page says so, and goes on without a
// reload: nothing is missing and nothing is doubled.
func TestReconnect(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	id := s.detached(echoing)
	c := s.console()
	p := open(t, c)
	p.openSession("ready")
	p.shows("ready")
	c.end()
	p.connected("reconnecting")
	s.must("send", id, "meanwhile")
	s.must("wait", "--for", "match=got <meanwhile>", "--timeout", "60s", id)
	s.again(c)
	p.connected("connected")
	p.shows("got <meanwhile>")
	if n := eval[int](p, screen+`.split("ready").length - 1`); n != 1 {
		t.Errorf("the first line is there %d times", n)
	}
	p.view("questions")
	s.endDaemon()
	p.connected("connected")
	a := s.asks("--", "touch", "made")
	p.wait("question~touch")
	p.click("question", "answer-denied")
	a.wantDecided("denied", 123)
}

// TestEcho measures how long it takes from a key to its echo in the document.
func TestEcho(t *testing.T) {
	s := newSeat(t)
	s.detached(`stty -icanon; echo ready; cat >/dev/null`)
	p := open(t, s.console())
	p.openSession("ready")
	p.shows("ready")
	p.takeControl()
	p.click("terminal")
	var all []time.Duration
	for i := range 40 {
		key := string(rune('a' + i%26))
		eval[bool](p, `(() => { sp.seen.echo = 0; const before = `+screen+`;
			window.addEventListener("keydown", () => { const from = performance.now();
				sp.until(() => `+screen+` !== before).then(() => {
					sp.seen.echo = performance.now() - from; document.body.dataset.echo = "" + Math.random(); });
			}, {once: true, capture: true}); return true; })()`)
		p.keys(key)
		p.until(`sp.seen.echo > 0`)
		all = append(all, time.Duration(eval[float64](p, `sp.seen.echo`)*float64(time.Millisecond)))
	}
	report(t, "echo in the terminal", 30*time.Millisecond, all)
}
