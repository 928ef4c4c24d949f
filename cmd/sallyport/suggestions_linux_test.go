// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// A failure is a command of daily work that the sandbox makes fail, and what must be said of it. It is a
// paragraph of testdata/suggestions: "# NAME", then lines of a word and its text.
type failure struct {
	name  string
	need  []string // programs
	user  string   // "root" or "user": whom it concerns; empty is both
	setup string   // a script, run in the workspace before each start
	run   string   // the words after "sallyport run", for a shell
	// flags are those that are suggested, with $W, $OUT, $HOME and so on; "none" is that there are none.
	flags string
	says  []string // patterns for lines of ours, one line each
	// prints is a pattern for what the program says itself, which is the truth: there are no lines of ours.
	prints string
	again  bool // the second denial shows only after the first one is gone
	wide   bool // a narrower flag would do, and the line says what else it opens
	far    bool // it needs the internet or a service, so that only the words are checked
	long   bool // belongs to the long form
}

// readFailures reads all files of the corpus.
func readFailures(t *testing.T) []*failure {
	t.Helper()
	files, err := filepath.Glob("testdata/suggestions/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []*failure
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			if word == "" || word == "//" {
				continue
			}
			if word == "#" {
				all = append(all, &failure{name: rest})
			} else if len(all) == 0 || !all[len(all)-1].set(word, rest) {
				t.Fatalf("%s: %q", file, line)
			}
		}
	}
	return all
}

// set takes one line of a paragraph.
func (f *failure) set(word, text string) bool {
	switch word {
	case "need":
		f.need = strings.Fields(text)
	case "user":
		f.user = text
	case "setup":
		f.setup += text + "\n"
	case "run":
		f.run = text
	case "flags":
		f.flags = text
	case "says":
		f.says = append(f.says, text)
	case "prints":
		f.prints = text
	case "again":
		f.again = true
	case "wide":
		f.wide = true
	case "far":
		f.far = true
	case "long":
		f.long = true
	default:
		return false
	}
	return true
}

// A scene is one row that is played.
type scene struct {
	*failure
	root string
	env  []string
	stop func()
}

// start sets everything up from the beginning, runs "sallyport VERB FLAGS WORDS", and returns its exit code
// and its lines. Variables are those of the shell.
func (f *scene) start(t *testing.T, line string) (code int, lines []string, said string) {
	t.Helper()
	f.reset(t)
	cmd := f.shell(t, "exec "+line)
	var stderr, stdout strings.Builder
	cmd.Stderr, cmd.Stdout = &stderr, &stdout
	_ = cmd.Run()
	return testenv.Code(cmd.ProcessState), ours(stderr.String()), stdout.String() + stderr.String()
}

func (f *scene) shell(t *testing.T, script string) *exec.Cmd {
	const compilers = 5 // some rows compile, on a machine that is busy
	ctx, cancel := context.WithTimeout(t.Context(), compilers*attackBound)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", script)
	cmd.Dir, cmd.Env = f.root+"/w", f.env
	return cmd
}

// reset makes the workspace, the home and the directory outside anew.
func (f *scene) reset(t *testing.T) {
	t.Helper()
	for _, dir := range []string{"w", "out", "home"} {
		if err := safefile.RemoveTreePath(filepath.Join(f.root, dir)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(f.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	f.listen(t)
	if f.setup != "" {
		if out, err := f.shell(t, "set -e\n"+f.setup).CombinedOutput(); err != nil {
			t.Fatalf("set-up: %v\n%s", err, out)
		}
	}
}

// listen has a socket listen outside, where a row is about it.
func (f *scene) listen(t *testing.T) {
	f.stop()
	const name = "/out/live.sock"
	if !strings.Contains(f.run, "live.sock") {
		return
	}
	l, err := net.Listen("unix", f.root+name)
	if err != nil {
		t.Fatal(err)
	}
	f.stop = func() { l.Close() }
}

// suggested finds flags in a line of ours.
var suggested = regexp.MustCompile(`(?:allow with|use|add) (-.*?)(?: \((?:warning|opens|\d+ more).*)?$`)

// allowing is the command line that why prints.
var allowing = regexp.MustCompile(`(?m)^Allow (?:all of it|what flags can allow):\n  (.*)$`)

// pairs returns the flags in a text as a shell reads it, each with its value, without repetitions.
func (f *scene) pairs(t *testing.T, text string) []string {
	t.Helper()
	if text == "" {
		return nil
	}
	out, err := f.shell(t, `printf '%s\n' `+text).Output()
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(words)%2 != 0 {
		t.Fatalf("%q are no flags with values", words)
	}
	var list []string
	for pair := range slices.Chunk(words, 2) {
		if p := pair[0] + " " + inQuotes(pair[1]); !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

// inQuotes is a word for a shell.
func inQuotes(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// play runs the command, takes what is suggested word by word, and runs it again: with all of it, without
// each part, and with something narrower in the place of each part.
func (f *scene) play(t *testing.T) {
	code, lines, said := f.start(t, "sallyport run "+f.run)
	if code == 0 {
		t.Fatalf("it succeeds: %s", said)
	}
	flags := f.suggestions(t, lines)
	f.whySame(t, lines, flags)
	if f.again {
		_, more, saidThen := f.start(t, "sallyport run "+strings.Join(flags, " ")+" "+f.run)
		next := f.suggestions(t, more)
		flags = slices.DeleteFunc(flags, func(p string) bool { // a directory takes the place of a file in it
			return slices.ContainsFunc(next, func(q string) bool {
				return strings.HasPrefix(p, strings.TrimSuffix(q, "'")+"/")
			})
		})
		flags, lines, said = append(flags, next...), append(lines, more...), said+saidThen
	}
	var want []string
	if f.flags != "none" {
		want = f.pairs(t, f.flags)
	}
	if !slices.Equal(sorted(flags), sorted(want)) {
		t.Errorf("suggested is %q, want %q", flags, want)
	}
	for _, p := range f.says {
		if !slices.ContainsFunc(lines, regexp.MustCompile(p).MatchString) {
			t.Errorf("no line says %q", p)
		}
	}
	if f.prints != "" && (len(lines) > 0 || !regexp.MustCompile(f.prints).MatchString(said)) {
		t.Errorf("want the words of the program alone, %q", f.prints)
	}
	if t.Failed() {
		t.Fatalf("exit code %d: %s", code, said)
	}
	if len(flags) > 0 && !f.far {
		f.enough(t, flags)
	}
}

// suggestions returns the flags that lines of ours suggest.
func (f *scene) suggestions(t *testing.T, lines []string) []string {
	t.Helper()
	var found []string
	for _, line := range lines {
		if m := suggested.FindStringSubmatch(line); m != nil {
			found = append(found, m[1])
		}
	}
	return f.pairs(t, strings.Join(found, " "))
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// named finds what a line of ours says that was denied.
var named = regexp.MustCompile(`^(?:(?:probably )?blocked: (?:read|write|execute|connect to|` +
	`listen on|make the system call) (\S+)|network is off \(([^,)]+)|probably not possible: (.*))`)

// explained finds flags in the answer of why.
var explained = regexp.MustCompile(`(?m)^ +allow with: (-.*?)(?: \((?:warning|opens).*)?$`)

// whySame checks that why names what the run's lines name, and the same flags: all of them in one command.
func (f *scene) whySame(t *testing.T, lines, flags []string) {
	t.Helper()
	out, _ := f.shell(t, "sallyport why").CombinedOutput() // exit code 1: nothing is recorded
	said := string(out)
	if strings.HasPrefix(said, "No run is recorded") || strings.Contains(said, "Did not run") {
		return
	}
	for _, line := range lines {
		m := named.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if what := strings.TrimRight(m[1]+m[2], ";:") + m[3]; what != "DNS" && !strings.Contains(said, what) {
			t.Errorf("why does not name %q: %s", what, said)
		}
	}
	var all []string
	for _, m := range explained.FindAllStringSubmatch(said, -1) {
		all = append(all, m[1])
	}
	all = f.pairs(t, strings.Join(all, " "))
	short := strings.Contains(strings.Join(lines, "\n"), "run `sallyport why`")
	want := slices.DeleteFunc(slices.Clone(flags), func(p string) bool { // of which only the run knows
		return strings.HasPrefix(p, "--tmp ")
	})
	if !short && !slices.Equal(sorted(all), sorted(want)) {
		t.Errorf("why suggests %q, and the run %q: %s", all, want, said)
	}
	m := allowing.FindStringSubmatch(said)
	for _, p := range want {
		flag, value, _ := strings.Cut(p, " ")
		plain := flag + " " + strings.Trim(value, "'")
		if plain != "-s full-access" &&
			(m == nil || !strings.Contains(m[1], plain) && !strings.Contains(m[1], p)) {
			t.Errorf("the command of why lacks %s: %s", p, said)
		}
	}
}

// enough runs with the flags, and with less.
func (f *scene) enough(t *testing.T, flags []string) {
	with := func(list []string) (int, string) {
		code, _, said := f.start(t, "sallyport run "+strings.Join(list, " ")+" "+f.run)
		return code, said
	}
	if code, said := with(flags); code != 0 {
		t.Fatalf("with %q: exit code %d: %s", flags, code, said)
	}
	for i, p := range flags {
		without := slices.Delete(slices.Clone(flags), i, i+1)
		less := [][]string{without}
		if narrow := narrower(p); narrow != nil {
			less = append(less, slices.Concat(without, narrow))
		}
		if len(flags) == 1 {
			less = less[1:] // the first run was that
		}
		for _, list := range less {
			if code, said := with(list); code == 0 && !f.wide {
				t.Errorf("it succeeds with %q in place of %q: %s", list, flags, said)
			}
		}
	}
}

// narrower returns flags that open less than one that opens a path for writing: what is in it now, or only
// reading.
func narrower(pair string) []string {
	flag, value, _ := strings.Cut(pair, " ")
	if flag != "--rw" {
		return nil
	}
	name := strings.Trim(value, "'")
	entries, _ := os.ReadDir(name)
	if len(entries) == 0 {
		return []string{"--ro " + value}
	}
	var list []string
	for _, e := range entries {
		list = append(list, "--rw "+inQuotes(filepath.Join(name, e.Name())))
	}
	return list
}

// TestSuggestionsSucceed plays the corpus of failures: with what is suggested the command succeeds, and with
// nothing less.
func TestSuggestionsSucceed(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedInotify(t)
	rows := readFailures(t)
	if least := 120; len(rows) < least {
		t.Errorf("%d rows, want %d", len(rows), least)
	}
	for _, row := range rows {
		if len(row.says) == 0 && row.prints == "" && (row.flags == "none" || row.far) {
			t.Errorf("%s: nothing is expected that could fail", row.name)
		}
	}
	bin, origin := placeAct(t), originOf(t, "hello")
	played := 0
	for _, row := range rows {
		here := map[string]bool{"": true, "root": os.Geteuid() == 0, "user": os.Geteuid() != 0}[row.user]
		if !here || row.long && !testenv.IsLong() || slices.ContainsFunc(row.need, notInstalled) {
			continue // which tools a machine has decides
		}
		played++
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			root, err := filepath.EvalSymlinks(workRoot(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = safefile.RemoveTreePath(root) }) // overlays close directories to users
			_, port, _ := strings.Cut(origin, ":")
			tmp, err := os.MkdirTemp("/tmp", "sallyport-corpus-") // the one that is private inside
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(tmp)
			f := &scene{failure: row, root: root, stop: func() {}, env: append(everydayEnv(root, bin),
				"ROOT="+root, "TMPD="+tmp, "OUT="+root+"/out", "W="+root+"/w", "PORT="+port,
				"XDG_RUNTIME_DIR="+root+"/run")}
			defer func() { f.stop() }()
			f.play(t)
		})
	}
	t.Logf("%d of %d rows", played, len(rows))
}

func notInstalled(program string) bool {
	_, err := exec.LookPath(program)
	return err != nil
}
