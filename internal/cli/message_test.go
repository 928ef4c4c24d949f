// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/audits"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/command/environ"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/caches"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/names/guard"
	"github.com/sallyport-dev/sallyport/internal/server/listen"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/settings/trust"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A maker prints messages of one kind with a word of others in them.
type maker struct {
	kind  string
	print func(env *Env, word string)
}

// makers is everything that prints for people. What a maker prints has as many lines
// whatever the word is, or none where the word is valid.
func makers() []maker {
	all := []maker{
		{"errors", func(env *Env, word string) {
			for _, err := range foreignErrors(word) {
				env.say(explain.Classify(err).String())
			}
		}},
		{"notes", func(env *Env, word string) {
			o := new(args.Options)
			o.Verbose = true
			(&report{env: env, o: o}).notes(foreignResult(word), 1)
		}},
		{"policy warnings", func(env *Env, word string) {
			for _, w := range sandbox.WorkspaceWrite().WithEntries(sandbox.SpecialEntry(":"+word,
				sandbox.LevelRead)).Bind(sandbox.Places{Dir: "/w/" + word}).Warnings("/w/"+word, nil) {
				env.say("warning: " + w)
			}
		}},
		{"why", func(env *Env, word string) { _ = env.print(explain.Explain(foreignRecord(word), "/home/a", "/")) }},
		{"why of one that did not run", func(env *Env, word string) {
			r := foreignRecord(word)
			r.Attempts = nil
			_ = env.print(explain.Explain(r, "/home/a", "/"))
		}},
		{"audit show", func(env *Env, word string) {
			body, _ := foreignRecord(word).Body()
			_ = env.print(explain.AuditLine(audit.Record{Kind: "run", Body: body}, "/home/a"))
			for _, b := range []event.Body{event.Judged{Args: []string{"n" + word}, Decision: word},
				event.Ended{End: word, Error: word}, event.Denied{Denial: sandbox.Denial{
					Access: sandbox.Access{Op: sandbox.Write, Path: "/" + word}}}} {
				body, _ := event.Event{Run: "n" + word, Body: b}.MarshalJSON()
				_ = env.print(explain.AuditLine(audit.Record{Kind: "event", Body: body}, "/home/a"))
			}
			_ = env.print(explain.AuditLine(audit.Record{Kind: "n" + word,
				Body: []byte(`{"a":"` + word + `"}`)}, "/"))
			_ = env.print(explain.AuditLine(audit.Record{File: "/n" + word, Bad: word}, "/"))
		}},
		{"audit verify", func(env *Env, word string) {
			_ = env.print((&audits.Check{File: "/" + word, Line: 1, Why: word}).String())
			_ = env.print((&audits.Check{OK: true, Path: "/" + word, Report: &audit.Report{Last: 1,
				Notes: []string{word}}}).String())
		}},
		{"why --list", func(env *Env, word string) {
			_ = env.print(explain.ListRuns(explain.Log{Records: []explain.Record{foreignRecord(word)}}))
		}},
		{"the network is off", func(env *Env, word string) {
			d := sandbox.Denial{Access: sandbox.Access{Op: sandbox.Connect, Addr: "n" + word}, Name: word,
				Program: "/" + word}
			env.say(explain.Offline(&d))
		}},
		{"why of an unknown run", func(env *Env, word string) {
			_, err := audits.FindRun(explain.Log{}, "n"+word)
			env.say(explain.Classify(err).String())
		}},
		{"caches", func(env *Env, word string) {
			_ = env.answer(explain.CacheListing{Caches: []caches.Entry{{Workspace: word,
				Cache: word}}}, false, true)
		}},
		{"trust --list", func(env *Env, word string) {
			_ = env.answer(trust.Listing{Projects: []trust.Record{{Dir: "/" + word}}}, false, true)
		}},
		{"trust without files", func(env *Env, word string) {
			env.say(explain.Classify(askTrust(context.Background(), env, "/missing/"+word)).String())
		}},
		{"trust of a damaged record", func(env *Env, word string) {
			env.say(explain.Classify(&trust.RecordError{Path: word, Dir: word,
				Err: errors.New(word)}).String())
		}},
		{"doctor --clean", func(env *Env, word string) {
			_ = env.answer(explain.Cleaned([]dirs.Report{foreignReport(word)}), false, true)
		}},
		{"doctor", func(env *Env, word string) {
			_ = env.answer(explain.Diagnose([]explain.Check{{Name: "check", Detail: word, Fix: "n" + word}},
				[]explain.LevelCheck{{Level: "native", Why: word, Fix: "n" + word},
					{Level: "bwrap", Available: true, Lacks: []plan.Lack{{Why: word}},
						Refuses: []plan.Lack{{Why: word}}}}), false, true)
		}},
	}
	return append(all, usageMakers()...)
}

// usageMakers print what is wrong with a command line.
func usageMakers() []maker {
	said := func(env *Env, err error) {
		if err != nil {
			env.say(explain.Classify(err).String())
		}
	}
	var all []maker
	for _, args := range [][]string{{"--zz%s"}, {"zz%s"}, {"run", "--zz%s"}, {"run", "-Z%s"},
		{"help", "zz%s"}, {"version", "zz%s"}, {"caches", "zz%s"}, {"completion", "zz%s"}} {
		all = append(all, maker{strings.Join(args, " "), func(env *Env, word string) {
			args := strings.Split(strings.Join(args, " "), " ")
			args[len(args)-1] = fmt.Sprintf(args[len(args)-1], word)
			Main(args, env)
		}})
	}
	all = append(all, maker{"a short flag", func(env *Env, word string) {
		_, err := syntax.ParseFlags(new(args.Options).Flags(), []string{"-" + word})
		said(env, err)
	}})
	for i, f := range new(args.Options).Flags() {
		if f.Value != "" {
			all = append(all, maker{"a value of " + f.Name(), func(env *Env, word string) {
				if f.Value == "PATTERN" {
					word += "/x" // else many words are names of hosts
				}
				said(env, new(args.Options).Flags()[i].Give(f.Name(), word))
			}})
		}
	}
	for kind, check := range map[string]func(word string) error{
		"words behind -c": func(word string) error {
			o := new(args.Options)
			o.Cmd.Script, o.HasScript = "x", true
			return o.Check([]string{word})
		},
		"--shell alone": func(word string) error {
			var o args.Options
			words, err := syntax.ParseFlags(o.Flags(), []string{"--shell", word, "--", "x"})
			return cmp.Or(err, o.Check(words))
		},
		"--rw, relative": func(word string) error {
			o := new(args.Options)
			o.Writable = []string{"n" + word}
			_, err := o.Policy("/w", "/home/x")
			return err
		},
		"--rw, missing": func(word string) error { return args.CheckPath("--rw", "/nonexistent/"+word, true) },
		"--tmp, missing": func(word string) error {
			o := new(args.Options)
			o.Cmd.Tmp = "/nonexistent/" + word
			_, err := o.Command(&args.Env{}, "/w", []string{"x"})
			return err
		},
		"--tmp, relative": func(word string) error {
			o := new(args.Options)
			o.Cmd.Tmp = "n" + word
			_, err := o.Command(&args.Env{}, "/w", []string{"x"})
			return err
		},
	} {
		all = append(all, maker{kind, func(env *Env, word string) { said(env, check(word)) }})
	}
	return all
}

// foreignErrors are errors of runs.
func foreignErrors(word string) []error {
	name, cause := "/w/"+word, errors.New(word)
	failed := &fs.PathError{Op: "open", Path: name, Err: syscall.EACCES}
	return []error{
		cause, failed, fmt.Errorf("state: %w", failed), explain.NewError("%s", word),
		&explain.Error{Code: explain.CodeFailed, Text: word, Fix: word},
		&sandbox.UnsupportedError{Need: word, Have: word, Hint: word},
		fmt.Errorf("%w: %w", sallyport.ErrNoSandbox, cause),
		fmt.Errorf("%w: %w", sallyport.ErrForbidden, cause),
		fmt.Errorf("%w: %w", sallyport.ErrRefused, cause),
		&executor.StartError{Program: name, NotFound: true, Err: cause},
		&executor.StartError{Program: name, NotFound: true,
			Err: &fs.PathError{Path: name, Err: syscall.ENOENT}},
		&executor.StartError{Program: name, NotFound: true, Err: syscall.ENOENT},
		&executor.StartError{Program: name, Err: &sandbox.HiddenError{What: word, Path: name}},
		&executor.StartError{Program: name, Err: failed}, &executor.StartError{Program: name, Err: cause},
		&executor.DirError{Dir: name, Err: cause}, &executor.RootError{Path: name, Why: word, Fix: word},
		&executor.NULError{Where: word},
		&sandbox.PolicyError{Entry: name, Reason: word}, &sandbox.GlobError{Pattern: name, Reason: word},
		&guard.HoldError{Path: name, Op: word, Err: cause}, &guard.QuarantineError{Path: name, Err: cause},
		&sallyport.CmdError{Reason: word},
	}
}

// foreignResult is a result with the word wherever a command or a file could put one.
func foreignResult(word string) *sallyport.Result {
	name := "/w/" + word
	grant := sandbox.Grant{Path: name, Level: sandbox.LevelWrite}.String()
	r := &sallyport.Result{
		Run: "n" + word, Args: []string{name, word}, Dir: name, End: sallyport.End("end " + word),
		Error: word, Attempts: make([]sallyport.Attempt, 1),
		Sandbox: event.Sandbox{Mode: "n" + word, Sandbox: executor.Sandbox{Level: "n" + word,
			Mechanism: []string{word}, Weaker: []string{word}}},
		Warnings:  []string{name + " is wide"},
		Survivors: []executor.Survivor{{PID: 7, Name: word}},
		Limits:    []executor.Enforced{{Limit: word, By: word, Value: 1, Hit: true}},
		HardLinks: []executor.HardLink{{Path: name, Links: 2}},
		Quarantined: []executor.Quarantined{
			{Path: name, Why: word, MovedTo: name, Grant: grant}, {Path: name, Why: word, Grant: "see " + word},
		},
	}
	r.Sandbox.Warnings = []string{name + " is a symbolic link"}
	var ds []sandbox.Denial
	denied := func(op sandbox.Op, rule, grant, path, addr string) {
		ds = append(ds, sandbox.Denial{Access: sandbox.Access{Op: op, Path: path, Addr: addr}, Errno: word,
			Source: sandbox.Notified, Rule: rule, Grant: grant})
	}
	denied(sandbox.Write, name+"=read", grant, name+"/a", "")
	denied(sandbox.Write, name+"=read", grant, name+"/b", "")
	denied(sandbox.Read, "deny "+word, "", name, "")
	denied(sandbox.Exec, "rule "+word, "see "+word, name, "")
	denied(sandbox.Connect, "unix sockets", "", "", "@"+word)
	for i := range ds {
		ds[i].Program, ds[i].Name, ds[i].PID = "n"+word, word, 7
	}
	ds[len(ds)-2].Harmless, ds[len(ds)-1].Wider = "n"+word, "--rw "+name
	r.SetDenials(ds, 1)
	return r
}

func foreignRecord(word string) explain.Record {
	return explain.Record{Result: *foreignResult(word), Flags: []string{"--deny", "/d/" + word, word}}
}

// foreignReport is what doctor --clean found.
func foreignReport(word string) dirs.Report {
	left := []guard.Left{{Path: word, Why: word}}
	return dirs.Report{State: "/s/" + word, TmpDirs: []string{word}, Report: guard.Report{
		Discarded: []string{word}, Held: []guard.Held{{Path: word, Holders: 1}},
		Planted: left, Unknown: left, Failed: left, Quarantined: 1,
	}}
}

// A screen is an Env whose output is read again.
type screen struct {
	file *os.File
	read int64 // how much of the file
	env  *Env
}

func newScreen(t testing.TB) *screen {
	f, err := os.Create(filepath.Join(t.TempDir(), "screen"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return &screen{file: f, env: &Env{Env: args.Env{Stdin: f, Stdout: f, Stderr: f, Dir: "/"}}}
}

// of returns what m prints.
func (s *screen) of(t testing.TB, m maker, word string) string {
	const most = 1 << 20 // so that hours of fuzzing leave no large file
	if s.read > most {
		_, err := s.file.Seek(0, io.SeekStart)
		if err = errors.Join(err, s.file.Truncate(0)); err != nil {
			t.Fatal(err)
		}
		s.read = 0
	}
	m.print(s.env, word)
	text, err := io.ReadAll(io.NewSectionReader(s.file, s.read, math.MaxInt32))
	if err != nil {
		t.Fatal(err)
	}
	s.read += int64(len(text))
	return string(text)
}

// check prints everything with a word. It must print, and on the same lines as with a
// word that is innocent.
func (s *screen) check(t *testing.T, word string) {
	for _, m := range makers() {
		if text := s.of(t, m, word); text != "" {
			t.Run(m.kind, func(t *testing.T) {
				testenv.Printed(t, text,
					strings.Count(s.of(t, m, "innocent"), "\n"))
			})
		}
	}
}

// TestMessagesPrint gives the words of an attacker to everything that prints for people.
func TestMessagesPrint(t *testing.T) {
	s := newScreen(t)
	for _, word := range testenv.Hostile() {
		t.Run(fmt.Sprintf("%q", word), func(t *testing.T) { s.check(t, word) })
	}
	for _, m := range makers() { // and each of them is one that could print it
		if s.of(t, m, testenv.Hostile()[0]) == "" && !strings.HasPrefix(m.kind, "a value of ") {
			t.Errorf("%s: nothing was printed", m.kind)
		}
	}
}

// FuzzMessages looks for a word that gets through one of the messages as it is.
func FuzzMessages(f *testing.F) {
	for _, s := range append(testenv.Hostile(), "", "x", `"`, `\x1b`, "a b.", "/../x", "=deny",
		"é", "'\x1b'") {
		f.Add(s)
	}
	s := newScreen(f)
	innocent := map[string]int{}
	for _, m := range makers() {
		innocent[m.kind] = strings.Count(s.of(f, m, "innocent"), "\n")
	}
	f.Fuzz(func(t *testing.T, word string) {
		if strings.Contains(word, environ.Masked) { // it is explained, in one line more
			return
		}
		for _, m := range makers() {
			if text := s.of(t, m, word); text != "" && innocent[m.kind] > 0 {
				testenv.Printed(t, text, innocent[m.kind])
			}
		}
	})
}

// TestCompletionPrints asks for the runs that were recorded, as a shell does.
func TestCompletionPrints(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir, err := dirs.Dir()
	if err != nil {
		t.Fatal(err)
	}
	l, err := audit.Open(audit.Options{Dir: filepath.Join(dir, "audit")})
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range testenv.Hostile() {
		body, err := foreignRecord(word).Body()
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Append(explain.RecordKind, body); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(l.Sync(t.Context()), l.Close()); err != nil {
		t.Fatal(err)
	}
	s := newScreen(t)
	text := s.of(t, maker{"", func(env *Env, _ string) { Main([]string{completeName, "why", ""}, env) }}, "")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) < len(testenv.Hostile())+1 {
		t.Errorf("%d lines, want one for each run: %q", len(lines), text)
	}
	for _, line := range lines {
		testenv.Printed(t, strings.Replace(line, "\t", " ", 1), 1)
	}
}

// TestWarningOfForeignRepository runs beside a broken repository whose name is a control
// sequence: the warning about it names it without the sequence.
func TestWarningOfForeignRepository(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedInotify(t)
	dir := t.TempDir()
	git := filepath.Join(dir, "n\x1b]0;pwned\a", ".git")
	for _, name := range []string{"objects", "refs"} {
		if err := os.MkdirAll(filepath.Join(git, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/m\n", "config": "[core\n"} {
		if err := os.WriteFile(filepath.Join(git, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	code, stdout, stderr := invoke(t, dir, "run", "--", "true")
	if code != 0 || stdout != "" || !strings.Contains(stderr, `"`+dir+`/n\x1b]0;pwned\a/.git/config"`) {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	testenv.Printed(t, stderr, strings.Count(stderr, "sallyport: "))
}

// TestUnanswered: approve, deny and approvals revoke exit with 1 where there is no such question.
func TestUnanswered(t *testing.T) {
	if err := unanswered("1", nil); err != nil {
		t.Error(err)
	}
	for _, err := range []error{&listen.QuestionIDError{}, errors.New("answered by another one")} {
		var failed *explain.Error
		if got := unanswered("1", err); !errors.As(got, &failed) || failed.Code != 1 {
			t.Errorf("%v: %v", err, got)
		}
	}
}
