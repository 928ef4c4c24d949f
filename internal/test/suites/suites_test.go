// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

func TestReadGo(t *testing.T) {
	text := `{"Action":"start","Package":"p"}
{"Action":"output","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Test":"TestA","Output":"    a_test.go:7: first\n"}
{"Action":"output","Test":"TestA","Output":"    a_test.go:9: open /x: permission denied\n        a second line\n"}
{"Action":"output","Test":"TestA","Output":"--- FAIL: TestA (0.00s)\n"}
{"Action":"fail","Test":"TestA"}
not JSON
{"Action":"output","Test":"TestB/sub","Output":"panic: no\n"}
{"Action":"fail","Test":"TestB/sub"}
{"Action":"pass","Test":"TestC"}
{"Action":"output","Test":"TestD","Output":"    d_test.go:1: needs root\n"}
{"Action":"skip","Test":"TestD"}
{"Action":"run","Test":"TestNeverEnded"}
{"Action":"fail"}
`
	got, err := readGo([]byte(text))
	want := outcomes{
		"TestA": {failed, "open /x: permission denied"}, "TestB/sub": {failed, "panic: no"},
		"TestC": {passed, ""}, "TestD": {skipped, "needs root"},
	}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got, cmp.AllowUnexported(outcome{})))
	}
}

func TestReadTAP(t *testing.T) {
	t.Parallel()
	got, err := readTAP([]byte("ok 1 - a # b\nnot ok 2 - c\n#\tgit x\nok 3 # skip no perl (missing PERL)\nnot ok 4 - d # TODO known breakage\nok 5 - e # SKIP f\n1..5\n"))
	want := outcomes{"1 a # b": {passed, ""}, "2 c": {failed, ""}, "4 d": {skipped, ""}, "5 e": {skipped, ""}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(outcome{})); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestParseLines(t *testing.T) {
	got, err := parseLines([]byte(`{"test":"a","state":"pass","reason":""}
{"test":"b","state":"fail","reason":"OSError: no\nmore"}
{"test":"b","state":"pass"}
{"test":"c","state":"skip","reason":"not here"}
{"test":"d","sta`))
	want := outcomes{"a": {passed, ""}, "b": {failed, "OSError: no"}, "c": {skipped, "not here"}}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got, cmp.AllowUnexported(outcome{})))
	}
}

func TestReadAllowed(t *testing.T) {
	list, err := readAllowed("# why\n\ngo/os TestA/b c: no user namespaces: closed by default\n")
	if err != nil || list["go/os TestA/b c"] != "no user namespaces: closed by default" || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	for _, bad := range []string{"go/os TestA", "go/os TestA: ", "TestA: why", "s a: x\ns a: y"} {
		if _, err := readAllowed(bad); err == nil || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestCompare checks each way in which two runs can differ, and what fails the report.
func TestCompare(t *testing.T) {
	outside := outcomes{
		"same": {passed, ""}, "broken outside": {failed, "x"}, "skipped outside": {skipped, "x"},
		"fails": {passed, ""}, "skips": {passed, ""}, "gone": {passed, ""}, "listed": {passed, ""}, "stale": {passed, ""},
	}
	inside := outcomes{
		"same": {passed, ""}, "broken outside": {passed, ""}, "fails": {failed, "EPERM"}, "skips": {skipped, "no device"},
		"listed": {failed, "EPERM"}, "stale": {passed, ""},
	}
	c := compare("s", outside, inside, allowed{"s listed": "closed", "s stale": "closed", "other fails": "x"})
	want := []difference{
		{"fails", "EPERM", ""}, {"gone", "did not run, or did not end", ""},
		{"listed", "EPERM", "closed"}, {"skips", "skipped: no device", ""},
	}
	if diff := cmp.Diff(want, c.failed, cmp.AllowUnexported(difference{})); diff != "" || c.passed != 6 ||
		c.unlisted() != 3 || !cmp.Equal(c.stale, []string{"s stale"}) {
		t.Errorf("%+v\n%s", c, diff)
	}
	var b strings.Builder
	if report(&b, []comparison{c}, []string{"npm packages: none"}) {
		t.Error("the report accepts unlisted differences")
	}
	for _, line := range []string{
		"UNLISTED: s fails: EPERM\n", "listed:   s listed: EPERM\n          closed\n", "STALE:    s stale: ",
		"not run:  npm packages: none\n",
		"6 tests pass outside; 4 of them do not pass inside, 3 unlisted; 1 listed ones pass\n",
	} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("no %q in:\n%s", line, b.String())
		}
	}
	for name, c := range map[string]comparison{
		"as listed":    compare("s", outcomes{"a": {passed, ""}}, outcomes{"a": {failed, ""}}, allowed{"s a": "closed"}),
		"a listed one": compare("s", outcomes{"a": {passed, ""}}, outcomes{"a": {passed, ""}}, allowed{"s a": "closed"}),
	} {
		if ok := report(&b, []comparison{c}, nil); ok != (name == "as listed") {
			t.Errorf("%s: %v", name, ok)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, test := range []struct {
		pattern, name string
		want          bool
	}{
		{"s t.*LITE*", "s t.UDPLITETest.testX", true}, {"s t.*LITE*", "s t.UDPTest.testX", false}, {"s t.*LITE*", "s u.LITE", false},
		{"s a*b", "s ab", true}, {"s a*b", "s axb", true}, {"s a*b", "s axbc", false}, {"s a*a", "s a", false}, {"s a*b*c", "s acb", false},
	} {
		if got := matches(test.pattern, test.name); got != test.want {
			t.Errorf("%s, %s: %v", test.pattern, test.name, got)
		}
	}
}

// TestCompareStar lists tests by one pattern. It is stale when all that it matches pass.
func TestCompareStar(t *testing.T) {
	outside := outcomes{"a.x1": {passed, ""}, "a.x2": {passed, ""}, "b": {passed, ""}}
	list := allowed{"s a.*": "closed"}
	c := compare("s", outside, outcomes{"a.x1": {failed, ""}, "a.x2": {passed, ""}, "b": {failed, ""}}, list)
	if len(c.failed) != 2 || c.unlisted() != 1 || len(c.stale) != 0 {
		t.Errorf("one of two fails: %+v", c)
	}
	c = compare("s", outside, outside, list)
	if len(c.failed) != 0 || !cmp.Equal(c.stale, []string{"s a.*"}) {
		t.Errorf("both pass: %+v", c)
	}
}

// TestBetter keeps a test that failed once on a busy machine from counting.
func TestBetter(t *testing.T) {
	got := better(outcomes{"a": {failed, "x"}, "b": {passed, ""}, "c": {failed, "first"}},
		outcomes{"a": {passed, ""}, "b": {failed, "x"}, "c": {failed, "x"}, "d": {skipped, ""}})
	want := outcomes{"a": {passed, ""}, "b": {passed, ""}, "c": {failed, "first"}, "d": {skipped, ""}}
	if !maps.Equal(got, want) {
		t.Error(cmp.Diff(want, got, cmp.AllowUnexported(outcome{})))
	}
}

// TestAllowedListed keeps the list in the form that the program reads.
func TestAllowedListed(t *testing.T) {
	text, err := os.ReadFile("allowed.txt")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readAllowed(string(text)); err != nil {
		t.Error(err)
	}
}

// patience is the time limit of what takes a moment.
const patience = time.Minute

// TestRun runs small suites: one with results, and one without, which must not count what
// an earlier run wrote.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, resultsName)
	write := suite{name: "x", dir: dir, read: readLines(file)}
	write.command = []string{"sh", "-c", `echo '{"test":"a","state":"pass"}' >` + resultsName +
		`; echo '{"test":"b","state":"fail","reason":"r"}' >>` + resultsName + `; exit 3`}
	got, err := write.run(t.Context(), nil, patience)
	if want := (outcomes{"a": {passed, ""}, "b": {failed, "r"}}); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	write.command = []string{"sh", "-c", "echo why >&2; exit 1"}
	if got, err := write.run(t.Context(), nil, patience); err == nil ||
		!strings.Contains(err.Error(), "why") {
		t.Errorf("results of the run before: %v, %v", got, err)
	}
}

// TestNodeReporter checks the lines that the reporter writes for node --test.
func TestNodeReporter(t *testing.T) {
	node := testenv.NeedProgram(t, "node")
	dir := t.TempDir()
	for name, text := range map[string][]byte{
		"suites-reporter.mjs": nodeReporter,
		"a.test.js": []byte(`const { test } = require('node:test')
test('adds: one', () => {})
test('breaks', () => { throw new Error('boom') })
test('waits', { skip: 'not here' }, () => {})
`),
	} {
		if _, err := place(dir, name, text); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), node, "--test",
		"--test-reporter=./suites-reporter.mjs", "a.test.js")
	cmd.Dir = dir
	out, _ := cmd.Output() // one test fails
	got, err := parseLines(out)
	want := outcomes{"a.test.js:2 adds:one": {passed, ""}, "a.test.js:3 breaks": {failed, "boom"},
		"a.test.js:4 waits": {skipped, "not here"}}
	for name, o := range want {
		if got[name] != o {
			t.Errorf("%s: %+v, want %+v (%v)\n%s", name, got[name], o, err, out)
		}
	}
}
