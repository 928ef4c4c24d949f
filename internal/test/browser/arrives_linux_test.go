// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// screenRows is the expression for how many rows the terminal has.
const screenRows = `document.querySelectorAll("[data-testid=terminal] .xterm-rows > *").length`

// configure writes settings of the user.
func (s *seat) configure(text string) { s.write(s.home+"/.config/sallyport/config.toml", text) }

// TestArrives: stages, recordings and settings that change are shown without a reload or a focus.
func TestArrives(t *testing.T) {
	t.Parallel()
	testenv.NeedInotify(t)
	s := newSeat(t)
	p := open(t, s.console())
	p.view("changes")
	p.until(`document.body.innerText.includes("No staged changes")`)
	id := s.stageID(`echo a > a.txt`)
	p.wait("stage~" + id[:4])
	s.must("discard", id)
	p.gone("stage")
	p.view("recordings")
	p.until(`document.body.innerText.includes("No recordings")`)
	s.record("echo recorded")
	p.wait("recording~echo recorded")
	p.view("machine")
	p.until(`sp.all(["view-machine"])[0]?.innerText.includes("audit.retention")`)
	s.configure("[audit]\nretention = \"777h\"\n")
	p.until(`sp.all(["view-machine"])[0].innerText.includes("777h")`)
}

// TestOutputKept: the output of a run that has ended is shown, in pages, as text.
func TestOutputKept(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	s.configure("history = { output = \"1MiB\", runs = 2 }\n")
	s.must("run", "--", "echo", "not shown any more")
	s.must("run", "--", "sh", "-c", `i=0; echo 'first <img src=x onerror=window.pwned=1>'
		while [ $i -lt 20000 ]; do i=$((i+1)); echo $i; done; echo last`)
	s.must("run", "--", "true")
	p := open(t, s.console())
	p.view("runs")
	p.until(`sp.all(["run"]).length === 2`)
	p.click("run~first")
	p.wait("output~first <img")
	p.click("output-older")
	p.wait("output~last")
	p.click("output-newer")
	p.wait("output~first <img")
	if eval[bool](p, `window.pwned !== undefined || document.images.length > 0`) {
		t.Error("output became HTML")
	}
	p.view("runs")
	p.click("run~true")
	p.wait("run-detail")
	if n := p.count("output"); n != 0 {
		t.Error("output of a run without any")
	}
}

// TestTerminalFollows: the terminal of the page gets the size that another terminal gives the session.
func TestTerminalFollows(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	id := s.detached(echoing)
	p := open(t, s.console())
	p.openSession("ready")
	p.shows("ready")
	for _, rows := range []uint16{11, 17} {
		x := testenv.StartTerminal(t, s.command("attach", id), 50, rows)
		p.until(fmt.Sprintf(screenRows+` === %d`, rows))
		x.Send("\x1c")
		if code := x.Wait(); code != 0 {
			t.Errorf("exit code %d, %s", code, x.Transcript())
		}
	}
}

// TestRecordingFormats: a recording of each version plays, with its sizes.
func TestRecordingFormats(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"asciicast-v2", "asciicast-v3"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			s := newSeat(t)
			s.configure("recordings.format = '" + format + "'\n")
			x := testenv.StartTerminal(t, s.command("run", "-t", "--record", "--", "sh", "-c",
				`echo begin-of-it; until [ "$(stty size)" = "9 60" ]; do :; done; echo end-of-it`), 60, 12)
			x.Expect("begin-of-it")
			x.Resize(60, 9)
			if code := x.Wait(); code != 0 {
				t.Fatalf("exit code %d, %s", code, x.Transcript())
			}
			p := open(t, s.console())
			p.view("recordings")
			p.click("recording")
			p.wait("clock")
			p.seek(1)
			p.shows("end-of-it")
			p.until(screenRows + ` === 9`)
			p.seek(0)
			p.until(`!` + screen + `.includes("end-of-it")`)
			p.choose("speed", "16")
			p.click("play")
			p.shows("end-of-it")
		})
	}
}

// longRecording makes a recording of 70 seconds that is longer than a part.
func (s *seat) longRecording(version int) {
	s.t.Helper()
	dir := s.home + "/.state/sallyport/recordings"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "20260102T030405Z-0000abcd.cast"),
		os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	const n = 35_000
	at := func(i int) string { return fmt.Sprintf("%.6f", 70*float64(i)/n) }
	step := at(1)
	if version == 2 {
		fmt.Fprintln(w, `{"version":2,"width":60,"height":12,"timestamp":1767323045,"title":"long"}`)
	} else {
		fmt.Fprintln(w, `{"version":3,"term":{"cols":60,"rows":12},"timestamp":1767323045,"title":"long"}`)
	}
	text := strings.Repeat(`\u001b[0m`, 110)
	for i := range n {
		if version == 2 {
			step = at(i)
		}
		fmt.Fprintf(w, "[%s, \"o\", \"%sline-%05d\\r\\n\"]\n", step, text, i)
	}
	if err := w.Flush(); err != nil {
		s.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// TestLongRecording: a recording that does not fit into the memory of a page is played to its end, part by
// part.
func TestLongRecording(t *testing.T) {
	t.Parallel()
	for _, version := range []int{2, 3} {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			s := newSeat(t)
			s.longRecording(version)
			p := open(t, s.console())
			p.view("recordings")
			p.click("recording~long")
			p.wait("clock~1:0") // about a minute is in the first part
			p.click("older")
			p.until(`sp.all(["older"])[0]?.disabled`)
			p.seek(1)
			p.shows("line-34999")
			p.click("newer")
			p.until(`sp.all(["newer"])[0]?.disabled`)
			p.seek(0.0001)
			p.shows("line-00000")
			p.seek(0.999)
			p.choose("speed", "16")
			p.click("play")
			p.shows("line-34999")
			p.until(`sp.all(["play"])[0]?.textContent.includes("Play")`)
		})
	}
}
