// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// A deniedCase is one case of testdata/denials. Its keys: exit (the code, any when
// missing), flags (for run), needs (a program), shell (dash means /bin/sh), control
// (no: it cannot be done without a sandbox either, or not safely).
type deniedCase struct {
	name   string
	keys   map[string]string
	script string
	want   []string // "op target errno", sorted
}

func readCases(t *testing.T, name string) []deniedCase {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "denials", name))
	if err != nil {
		t.Fatal(err)
	}
	var out []deniedCase
	for _, block := range strings.Split("\n"+string(text), "\n== ")[1:] {
		head, rest, _ := strings.Cut(block, "\n")
		script, want, ok := strings.Cut(rest+"\n", "\n--\n")
		words := strings.Split(head, "; ")
		c := deniedCase{name: words[0], keys: make(map[string]string), script: script}
		for _, w := range words[1:] {
			key, value, _ := strings.Cut(w, "=")
			c.keys[key] = value
		}
		for line := range strings.Lines(want) {
			if line = strings.TrimSpace(line); line != "" {
				c.want = append(c.want, line)
			}
		}
		if !ok || script == "" {
			t.Fatalf("%s: the case %q is not whole", name, head)
		}
		slices.Sort(c.want)
		out = append(out, c)
	}
	return out
}

// A stage is where one case runs: a workspace, a directory outside of it with things
// that could be harmed, and a home.
type stage struct {
	root string
	bin  string // where the programs are
	// listener is the socket live.sock outside, of which nobody takes connections.
	listener net.Listener
	// packets are the datagram sockets live.d, outside and in the workspace. No program reads them.
	packets []net.PacketConn
}

func (s *stage) fill(text string) string {
	return strings.NewReplacer("@OUT@", s.root+"/out", "@W@", s.root+"/w", "@HOME@", s.root+
		"/home").Replace(text)
}

func newStage(t *testing.T, bin string) *stage {
	t.Helper()
	root, err := filepath.EvalSymlinks(workRoot(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"w/.git/hooks", "w/.git/objects", "w/.git/refs", "w/.codex", "w/sub",
		"w/denied", "out/dir", "out/empty", "home", "state"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"w/mine": "mine\n", "w/secret": "secret\n", "w/denied/x": "x\n", "w/.git/HEAD": "ref: refs/heads/main\n", "w/.git/config": "[core]\n",
		"out/file": "old\n", "out/other": "other\n", "out/dir/x": "x\n", "home/.profile": "\n", "out/data.db": "",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	err = errors.Join(testenv.WriteProgram(root+"/w/tool", "#!/bin/sh\necho tool\n"),
		os.Symlink(root+"/out/file", root+"/w/link"), os.Symlink(root+"/out/dir", root+"/w/dlink"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", root+"/out/live.sock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := &stage{root: root, bin: bin, listener: l}
	for _, dir := range []string{"/out", "/w"} {
		c, err := net.ListenPacket("unixgram", root+dir+"/live.d")
		must(t, err)
		t.Cleanup(func() { c.Close() })
		s.packets = append(s.packets, c)
	}
	return s
}

// guarded describes what no case may change: everything outside of the workspace,
// and the protected names in it.
func (s *stage) guarded(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range []string{"out", "home", "w/.git", "w/.codex", "w/secret", "w/denied"} {
		err := filepath.WalkDir(filepath.Join(s.root, dir),
			func(name string, d fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				var st syscall.Stat_t
				if err := syscall.Lstat(name, &st); err != nil {
					return err
				}
				var text []byte
				if d.Type().IsRegular() {
					text, _ = os.ReadFile(name)
				}
				fmt.Fprintf(&b, "%s %o %d %v %v %q\n", name, st.Mode, st.Nlink, st.Mtim, st.Ctim, text)
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// A deniedResult is what is read of a result.
type deniedResult struct {
	ExitCode int    `json:"exit_code"`
	End      string `json:"end"`
	Output   string `json:"output"`
	Error    string `json:"error"`
	Sandbox  struct {
		Observed bool `json:"observed"`
	} `json:"sandbox"`
	Denials []struct {
		Op, Path, Addr, Errno, Source string
	} `json:"denials"`
}

// list is the denials in the form of the cases. Guesses are left out where nothing
// has observed the command; where something has, there must be none.
func (r *deniedResult) list() []string {
	var out []string
	for _, d := range r.Denials {
		if target := d.Path + d.Addr; r.Sandbox.Observed || d.Source != "guessed" {
			out = append(out, d.Op+" "+target+" "+d.Errno)
		}
	}
	slices.Sort(out)
	return out
}

// play runs a case and returns the result.
func (s *stage) play(t *testing.T, c *deniedCase, flags ...string) *deniedResult {
	t.Helper()
	shell := "/bin/sh"
	if c.keys["shell"] == "bash" {
		shell = testenv.NeedProgram(t, "bash")
	}
	args := append([]string{"run", "--json"}, flags...)
	args = append(args, strings.Fields(s.fill(c.keys["flags"]))...)
	ctx, cancel := context.WithTimeout(t.Context(), attackBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sallyport", append(args, "--", shell, "-c", s.fill(c.script))...)
	cmd.Dir = s.root + "/w"
	cmd.Env = []string{
		"HOME=" + s.root + "/home", "XDG_STATE_HOME=" + s.root + "/state", "GORACE=" +
			noRaceSleep, "LC_ALL=C",
		"PATH=" + s.bin + ":/usr/local/bin:/usr/bin:/bin",
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var r deniedResult
	if jerr := json.Unmarshal(out, &r); jerr != nil || r.Error != "" {
		t.Fatalf("%v %v %s; output %q, stderr %q", err, jerr, r.Error, out, &stderr)
	}
	if code := c.keys["exit"]; code != "" && code != fmt.Sprint(r.ExitCode) {
		if len(flags) == 0 {
			t.Errorf("exit code %d, want %s; output %q", r.ExitCode, code, r.Output)
		}
	}
	return &r
}

// TestViolations: every access that is refused is refused with this errno, can be
// done without a sandbox, and stands in the result.
func TestViolations(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	playAll(t, "violations.txt", 60, func(t *testing.T, bin string, c *deniedCase) {
		s := newStage(t, bin)
		before := s.guarded(t)
		r := s.play(t, c)
		if s.guarded(t) != before {
			t.Errorf("something was changed; output %q", r.Output)
		}
		checkErrnos(t, c, r)
		checkDenials(t, r, s.fillAll(c.want))
		if c.keys["control"] == "no" {
			return
		}
		free := newStage(t, bin)
		before = free.guarded(t)
		if r := free.play(t, c, "-s", "full-access"); free.guarded(t) == before {
			t.Errorf("without a sandbox nothing is changed either; output %q", r.Output)
		}
	})
}

// TestHarmless: what fails for other reasons is no denial.
func TestHarmless(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	playAll(t, "harmless.txt", 100, func(t *testing.T, bin string, c *deniedCase) {
		checkDenials(t, newStage(t, bin).play(t, c), nil)
	})
}

// placeAct puts the program act where commands see it, and returns the directory.
func placeAct(t *testing.T) string {
	t.Helper()
	from, err := exec.LookPath("act")
	if err != nil {
		t.Fatal(err)
	}
	dir := workRoot(t)
	text, err := os.ReadFile(from)
	if err == nil {
		err = testenv.WriteProgram(dir+"/act", text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// playAll runs the cases of a file, which has at least so many; one of three where tests are to
// be quick.
func playAll(t *testing.T, name string, least int, play func(*testing.T, string, *deniedCase)) {
	t.Helper()
	bin := placeAct(t)
	step, played := sparse, 0
	if !testenv.IsLong() {
		step = max(step, 3)
	}
	for _, c := range readCases(t, name) {
		if played++; played%step != 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			if program := c.keys["needs"]; program != "" {
				testenv.NeedProgram(t, program)
			}
			play(t, bin, &c)
		})
	}
	if played < least {
		t.Errorf("%d cases ran, at least %d have to", played, least)
	}
}

func (s *stage) fillAll(lines []string) []string {
	var out []string
	for _, l := range lines {
		out = append(out, s.fill(l))
	}
	return out
}

// checkErrnos compares the errors that the program has printed by name with those
// that are expected.
func checkErrnos(t *testing.T, c *deniedCase, r *deniedResult) {
	t.Helper()
	for line := range strings.Lines(r.Output) {
		if errno, ok := strings.CutPrefix(strings.TrimSpace(line), "errno "); ok &&
			!slices.ContainsFunc(c.want, func(w string) bool { return strings.HasSuffix(w, " "+errno) }) {
			t.Errorf("the program got %s, want one of %q", errno, c.want)
		}
	}
	if strings.HasPrefix(c.script, "act ") && !strings.Contains(r.Output, "errno ") {
		t.Errorf("nothing was refused: %q", r.Output)
	}
}

// checkDenials compares the list of a result.
func checkDenials(t *testing.T, r *deniedResult, want []string) {
	t.Helper()
	if !r.Sandbox.Observed {
		t.Error("the command was not observed")
	}
	got := r.list()
	for i, g := range got {
		// A name that a program makes up is given as a pattern.
		for _, w := range want {
			if ok, err := path.Match(w, g); ok && err == nil {
				got[i] = w
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("denials (-want +got):\n%s", diff)
	}
}
