// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// deniedRun is a run that was denied a write beside the workspace.
func (s *seat) deniedRun() {
	s.t.Helper()
	if code, out := s.says("run", "--", "sh", "-c", "echo one > ../out/file || exit 7"); code != 7 {
		s.t.Fatalf("exit code %d, %s", code, out)
	}
}

// alive starts a command in the project, and returns when it runs. The end returns what it says of itself.
func (s *seat) alive() (end func() string) {
	s.t.Helper()
	cmd, said := s.command("run", "--", "sh", "-c", "echo up; read line"), new(safeBuffer)
	cmd.Stderr = said
	in, err := cmd.StdinPipe()
	out, failed := cmd.StdoutPipe()
	if err = errors.Join(err, failed); err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = bufio.NewReader(out).ReadString('\n')
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return func() string {
		_ = in.Close()
		_ = cmd.Wait() // read fails at the end of the input
		return said.String()
	}
}

// TestRuns: a run that was denied something, with the rule and the least grant, which is copied and allowed.
func TestRuns(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	p := open(t, s.console())
	p.view("runs")
	s.deniedRun()
	p.wait("run~../out/file")
	p.until(`sp.all(["run~../out/file"]).some((el) => /\b7\b/.test(el.textContent) &&
		/denial|denied|blocked/i.test(el.textContent))`)
	p.click("run~../out/file")
	out := s.beside("out")
	p.wait("run-detail", "run-denial~"+out+"/file")
	p.wait("run-detail", "run-denial~--rw "+out)
	p.click("run-detail", "copy-grant")
	if got := p.clipboard(); !strings.Contains(got, "--rw "+out) || !strings.HasPrefix(got, "sallyport run ") {
		t.Errorf("copied: %q", got)
	}
	end := s.alive() // a command of the project, which has no settings yet
	p.click("run-detail", "config-allow")
	p.wait("confirm")
	if files, _ := filepath.Glob(s.work + "/.sallyport/*"); len(files) != 0 {
		t.Errorf("written before it was confirmed: %v", files)
	}
	p.until(`document.body.innerText.includes("config.toml")`)
	p.click("confirm")
	p.wait("notice~Written")
	if said := end(); strings.Contains(said, "quarantined") {
		t.Errorf("the other command: %s", said)
	}
	if text := s.read(".sallyport/config.toml"); !strings.Contains(text, "out") {
		t.Errorf("the file: %q", text)
	}
	if code, text := s.says("run", "--", "sh", "-c", "echo one > ../out/file"); code != 0 {
		t.Errorf("after that: exit code %d, %s", code, text)
	}
}

// TestRunsCancel: without the confirmation nothing is written.
func TestRunsCancel(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	s.deniedRun()
	p := open(t, s.console())
	p.view("runs")
	p.click("run~../out/file")
	p.click("run-detail", "config-allow")
	p.click("cancel")
	p.gone("confirm")
	if files, _ := filepath.Glob(s.work + "/.sallyport/*"); len(files) != 0 {
		t.Errorf("written: %v", files)
	}
}

// TestRunsHostile: the words of commands, and names of files that were denied, are text.
func TestRunsHostile(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	for i, name := range testenv.Hostile() {
		s.says("run", "--", "sh", "-c", `echo x > "../out/$1<img src=x onerror=window.pwned=1>"`, "sh", name,
			strings.Repeat("y", i))
	}
	p := open(t, s.console())
	p.view("runs")
	n := len(testenv.Hostile())
	p.until(`sp.all(["run"]).length === ` + js(n))
	p.click("run")
	p.wait("run-detail", "run-denial~<img")
	wantPrintable(t, eval[string](p, `document.body.innerText`))
	wantPrintable(t, eval[string](p, `[...document.querySelectorAll("*")]
		.flatMap((el) => [...el.attributes].map((a) => a.value)).join("\n")`))
	if eval[bool](p, `window.pwned !== undefined || document.images.length > 0`) {
		t.Error("a name became HTML")
	}
}

// stageID starts a staged run and returns the ID of its stage.
func (s *seat) stageID(script string) string {
	s.t.Helper()
	code, out := s.says("run", "--stage", "--json", "--", "sh", "-c", script)
	var res struct{ Stage struct{ ID string } }
	if i := strings.Index(out, "{"); code != 0 || i < 0 || json.Unmarshal([]byte(out[i:]), &res) != nil ||
		res.Stage.ID == "" {
		s.t.Fatalf("exit code %d, %s", code, out)
	}
	return res.Stage.ID
}

// TestChanges: a stage, its diffs, a part of it applied, the rest discarded.
func TestChanges(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	s.write("note.txt", "first\n")
	s.write("old.txt", "old\n")
	id := s.stageID(`echo second >> note.txt; rm old.txt; echo '<b>done</b>' > log.txt`)
	p := open(t, s.console())
	p.view("changes")
	p.click("stage~" + id[:4])
	for _, name := range []string{"note.txt", "old.txt", "log.txt"} {
		p.wait("change~" + name)
	}
	p.click("change~log.txt")
	p.wait("diff~+<b>done</b>")
	p.click("change~note.txt")
	p.wait("diff~+second")
	p.click("change~note.txt", "change-select")
	p.click("apply")
	p.gone("change~note.txt")
	if got := s.read("note.txt") + s.read("old.txt") + s.read("log.txt"); got != "first\nsecond\nold\n" {
		t.Errorf("the files: %q", got)
	}
	p.click("discard")
	p.click("confirm")
	p.gone("change")
	if out := s.must("stages"); strings.Contains(out, id[:4]) {
		t.Errorf("it is still there: %s", out)
	}
	if got := s.read("old.txt") + s.read("log.txt"); got != "old\n" {
		t.Errorf("the files: %q", got)
	}
}

// TestChangesConflict: what was changed meanwhile is named, and nothing is applied.
func TestChangesConflict(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	s.write("note.txt", "first\n")
	id := s.stageID(`echo mine >> note.txt; echo new > other.txt`)
	s.write("note.txt", "first\ntheirs\n")
	p := open(t, s.console())
	p.view("changes")
	p.click("stage~" + id[:4])
	p.wait("change~other.txt")
	p.click("apply")
	p.wait("conflict~note.txt")
	if got := s.read("note.txt") + s.read("other.txt"); got != "first\ntheirs\n" {
		t.Errorf("the files: %q", got)
	}
}

// record makes a recording of a terminal session in the directory of recordings.
func (s *seat) record(script string) {
	s.t.Helper()
	x := testenv.StartTerminal(s.t, s.command("run", "-t", "--record", "--", "sh", "-c", script), 60, 12)
	if code := x.Wait(); code != 0 {
		s.t.Fatalf("exit code %d, %s", code, x.Transcript())
	}
}

// TestRecordings: a recording plays faster, and from another place.
func TestRecordings(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	s.record(`echo begin-of-it; sleep 2; echo end-of-it; printf '\033]0;own title\007'`)
	p := open(t, s.console())
	p.view("recordings")
	p.click("recording")
	p.choose("speed", "4")
	p.click("play")
	p.shows("begin-of-it")
	p.shows("end-of-it")
	p.seek(0)
	p.until(`!` + screen + `.includes("end-of-it")`)
	p.seek(1)
	p.shows("end-of-it")
	if title := eval[string](p, `document.title`); strings.Contains(title, "own title") {
		t.Errorf("the title is %q", title)
	}
}

// seek moves the player to a part of the recording, from 0 to 1.
func (p *tab) seek(part float64) {
	p.t.Helper()
	eval[bool](p, `sp.until(() => sp.all(["seek"])[0]).then((el) => { el.value = +el.min + (el.max - el.min) * `+js(part)+
		`; el.dispatchEvent(new Event("input", {bubbles: true}));
		el.dispatchEvent(new Event("change", {bubbles: true})); return true; })`)
}

// TestMachine: what this machine enforces, where a setting is from, and an approval that is revoked.
func TestMachine(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	s.write(s.home+"/.config/sallyport/config.toml", "[recordings]\nretention = \"100h\"\n")
	a := s.asks("--", "touch", "made")
	s.must("approve", "--rule", a.id)
	if _, code := a.decided(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	p := open(t, s.console())
	p.view("machine")
	p.until(`/native|bwrap/.test(sp.all(["view-machine"])[0].innerText)`)
	p.until(`sp.all(["view-machine"])[0].innerText.includes("recordings.retention")`)
	p.click("revoke")
	p.click("confirm")
	p.gone("revoke")
	rules, err := os.ReadFile(s.home + "/.config/sallyport/rules/default.rules")
	if err == nil && strings.Contains(string(rules), "touch") || err != nil && !os.IsNotExist(err) {
		t.Errorf("the rules: %s, %v", rules, err)
	}
}
