// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sallyport-dev/sallyport/internal/cli"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

func TestMain(m *testing.M) {
	// A program that ignores a signal was started so by a test.
	if programs()[strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")] == nil {
		testenv.DefaultSignals()
		testenv.MostlyWait()
	}
	testscript.Main(m, programs())
}

// managedVar names the directory of the ceiling. Only this test binary reads it: the product takes
// none from the environment, see TestManaged.
const managedVar = "SALLYPORT_TEST_MANAGED"

// managed is main with a ceiling that a test has made.
func managed() {
	env := cli.System()
	if dir := os.Getenv(managedVar); dir != "" {
		env.Managed = dir
	}
	os.Exit(cli.Main(os.Args[1:], env))
}

// TestManaged: the product's own ceiling is a constant.
func TestManaged(t *testing.T) {
	for _, name := range []string{managedVar, "SALLYPORT_MANAGED", "XDG_CONFIG_DIRS",
		"XDG_CONFIG_HOME", "HOME"} {
		t.Setenv(name, t.TempDir())
	}
	if got := cli.System().Managed; got != "/etc/sallyport" {
		t.Errorf("the ceiling is read from %s", got)
	}
}

// TestScript runs the transcripts in testdata/script, as root and as an ordinary
// user.
func TestScript(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedInotify(t)
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		WorkdirRoot:   workRoot(t),
		UpdateScripts: os.Getenv("SALLYPORT_TEST_UPDATE") != "",
		Setup:         setUp,
		Condition: func(name string) (bool, error) {
			if name == "make" {
				_, err := exec.LookPath(name)
				return err == nil, nil
			}
			if name != "root" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return os.Geteuid() == 0, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":   code,
			"member": member,
			"lines":  lines,

			"change":   change,
			"program":  program,
			"reviewer": reviewer,
		},
	})
}

// change FILE OLD NEW replaces a text in a file, the first time that it occurs.
func change(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: change FILE OLD NEW")
	}
	name := ts.MkAbs(args[0])
	before := ts.ReadFile(name)
	after := strings.Replace(before, args[1], args[2], 1)
	if after == before {
		ts.Fatalf("%s has no %s", args[0], args[1])
	}
	ts.Check(os.WriteFile(name, []byte(after), 0o600))
}

// program [FROM] FILE makes a file, or a copy of one, a program that can be started at once, as
// [testenv.WriteProgram] says.
func program(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) == 0 || len(args) > 2 {
		ts.Fatalf("usage: program [FROM] FILE")
	}
	text, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	file := ts.MkAbs(args[len(args)-1])
	if len(args) == 1 {
		ts.Check(os.Remove(file)) // what is open for writing is not the new file
	}
	ts.Check(testenv.WriteProgram(file, text))
}

// noRaceSleep keeps a program that was built with the race detector from resting
// for a second before it exits.
const noRaceSleep = "atexit_sleep_ms=0"

// workRoot returns a directory that is not below /tmp: a command sees a /tmp of its
// own, and what is denied there would not be denied for the reason under test.
func workRoot(t *testing.T) string {
	root, err := os.MkdirTemp("/var/tmp", "sallyport-script-")
	if errors.Is(err, fs.ErrNotExist) {
		return t.TempDir()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = filepath.WalkDir(root, func(p string, d fs.DirEntry, _ error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(p, 0o700) // the work directories of overlays are closed to their owner
			}
			return nil
		})
		_ = os.RemoveAll(root)
	})
	return root
}

// setUp gives a transcript a home, a state directory and a workspace "w", in which
// it begins.
func setUp(env *testscript.Env) error {
	for _, dir := range []string{"home", "state", "w", "outside"} {
		if err := os.MkdirAll(filepath.Join(env.WorkDir, dir), 0o755); err != nil {
			return err
		}
	}
	env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
	env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
	runtime := filepath.Join(env.WorkDir, "run")
	if err := os.Mkdir(runtime, 0o700); err != nil {
		return err
	}
	env.Setenv("XDG_RUNTIME_DIR", runtime)
	env.Defer(func() { endDaemon(runtime) })
	env.Setenv("SHELL", "/bin/sh")
	env.Setenv("GORACE", noRaceSleep)
	// 128 000 bytes, nearly the most for one argument
	env.Setenv("long", strings.Repeat("0123456789abcdef", 8000))
	path, err := exec.LookPath("sallyport")
	if err != nil {
		return err
	}
	env.Setenv("SALLYPORT", path)
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	env.Setenv("ROOT", root)
	// Directories of root are closed to the ordinary user.
	env.Setenv("PATH", filepath.Dir(path)+":/usr/bin:/bin")
	env.Cd = filepath.Join(env.WorkDir, "w")
	return nil
}

// code runs a program and compares its exit code: code N PROGRAM [ARG...]. The
// output is there for stdout, stderr, member and lines.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N program [arg...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = testenv.Code(exit.ProcessState)
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// member compares a member of the last line of standard output, a JSON object:
// member NAME VALUE, where NAME may have dots and VALUE is JSON. With ! the
// values must differ.
func member(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: member name value")
	}
	out := strings.Split(strings.TrimRight(ts.ReadFile("stdout"), "\n"), "\n")
	got, err := find([]byte(out[len(out)-1]), args[0])
	ts.Check(err)
	var want any
	if err := json.Unmarshal([]byte(args[1]), &want); err != nil {
		ts.Fatalf("%s is no JSON: %v", args[1], err)
	}
	if reflect.DeepEqual(got, want) == neg {
		text, err := json.Marshal(got)
		ts.Check(err)
		ts.Fatalf("%s is %s, not compared as %s", args[0], text, args[1])
	}
}

// reviewer starts a model that gives these answers, the last one again and again, and appends its
// address to a file of settings: reviewer FILE ANSWER...
func reviewer(ts *testscript.TestScript, _ bool, args []string) {
	server := model(args[1:]...)
	ts.Defer(server.Close)
	name := ts.MkAbs(args[0])
	text := ts.ReadFile(name) + "reviewer.base_url = " + strconv.Quote(server.URL) + "\n"
	ts.Check(os.WriteFile(name, []byte(text), 0o600))
}

// model serves a model on this machine that gives these answers, the last one again and again.
func model(texts ...string) *httptest.Server {
	answers := make(chan string, len(texts)+1)
	for _, a := range texts {
		answers <- a
	}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer := <-answers
		if len(answers) == 0 {
			answers <- answer
		}
		text, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"message": map[string]any{"content": answer}}}})
		_, _ = w.Write(text)
	}))
}

// find returns the member of an object that a name with dots leads to.
func find(object []byte, name string) (any, error) {
	var value any
	if err := json.Unmarshal(object, &value); err != nil {
		return nil, fmt.Errorf("no JSON: %w", err)
	}
	for part := range strings.SplitSeq(name, ".") {
		members, ok := value.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s: no object around it", name)
		}
		if value, ok = members[part]; !ok {
			return nil, fmt.Errorf("%s: no such member", name)
		}
	}
	return value, nil
}

// lines checks that every line of standard output is a JSON object of its own,
// and that only the last one is the result.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: lines")
	}
	all := bytes.Split(bytes.TrimRight([]byte(ts.ReadFile("stdout")), "\n"), []byte("\n"))
	for i, line := range all {
		kind, err := find(line, "type")
		if err != nil {
			ts.Fatalf("line %d: %v", i+1, err)
		}
		if last := i == len(all)-1; (kind == "result") != last {
			ts.Fatalf("line %d of %d has the type %v", i+1, len(all), kind)
		}
	}
}
