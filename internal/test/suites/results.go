// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// The states of a test that has ended.
const (
	passed  = "pass"
	failed  = "fail"
	skipped = "skip"
)

// An outcome is how one test went, and why it did not pass.
type outcome struct{ state, reason string }

// outcomes are the tests of one run by name.
type outcomes map[string]outcome

const longestLine = 16 << 20

// readLines returns the reader of a file that a driver wrote: one JSON object a line, with
// test, state and reason. A line that was cut short by the end of a time limit is
// ignored.
func readLines(file string) func([]byte) (outcomes, error) {
	return func([]byte) (outcomes, error) {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		return parseLines(text)
	}
}

func parseLines(text []byte) (outcomes, error) {
	all := outcomes{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		var l struct{ Test, State, Reason string }
		if json.Unmarshal(lines.Bytes(), &l) != nil {
			continue
		}
		// A test with several names for one body counts once, and fails if one fails.
		if all[l.Test].state != failed {
			all[l.Test] = outcome{l.State, firstLine(l.Reason)}
		}
	}
	return all, lines.Err()
}

// tapLine is a result in the Test Anything Protocol: "not ok 3 - title # TODO reason".
var tapLine = regexp.MustCompile(`^(not )?ok (\d+) - (.*?)( # (?i:skip|todo).*)?$`)

// readTAP reads what git's test scripts write, see https://testanything.org/.
func readTAP(text []byte) (outcomes, error) {
	all := outcomes{}
	for line := range strings.Lines(string(text)) {
		m := tapLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		state := passed
		switch {
		case m[4] != "":
			state = skipped
		case m[1] != "":
			state = failed
		}
		all[m[2]+" "+m[3]] = outcome{state, ""}
	}
	return all, nil
}

// readGo reads what test2json writes. See go doc test2json.
func readGo(text []byte) (outcomes, error) {
	all := outcomes{}
	output := map[string][]string{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		var l struct{ Action, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &l) != nil || l.Test == "" {
			continue
		}
		switch l.Action {
		case "output":
			output[l.Test] = append(output[l.Test], l.Output)
		case passed, failed, skipped:
			all[l.Test] = outcome{l.Action, goReason(output[l.Test])}
			delete(output, l.Test)
		}
	}
	return all, lines.Err()
}

// goNote matches a line that a Go test wrote by t.Error and its like.
var goNote = regexp.MustCompile(`^\s+\w+\.go:\d+: (.*)`)

// goReason picks the last message out of a test's output, or else its last line.
func goReason(output []string) string {
	last := ""
	for _, line := range strings.Split(strings.Join(output, ""), "\n") {
		if m := goNote.FindStringSubmatch(line); m != nil {
			last = m[1]
		}
	}
	if last == "" {
		for _, line := range output {
			if word := strings.TrimSpace(line); word != "" && !strings.HasPrefix(word, "---") &&
				!strings.HasPrefix(word, "===") {
				last = word
			}
		}
	}
	return firstLine(last)
}

// firstLine returns the first line with text, cut to a length that fits a report.
func firstLine(text string) string {
	const most = 160
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "..."
	}
	return line
}

// lastLine returns the last line of a text.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return firstLine(text[strings.LastIndexByte(text, '\n')+1:])
}

// better joins two runs: a test counts as it went in the better one.
func better(a, b outcomes) outcomes {
	all := outcomes{}
	for _, run := range []outcomes{a, b} {
		for name, o := range run {
			if have, ok := all[name]; !ok || have.state != passed && o.state == passed {
				all[name] = o
			}
		}
	}
	return all
}

// allowed are the tests that may fail inside: the reason by "SUITE TEST". A star in a key
// stands for any text.
type allowed map[string]string

// find returns the key of the list for a test and its reason; both are empty without one.
func (list allowed) find(test string) (key, reason string) {
	if reason = list[test]; reason != "" {
		return test, reason
	}
	for key, reason := range list {
		if strings.Contains(key, "*") && matches(key, test) {
			return key, reason
		}
	}
	return "", ""
}

// matches reports whether a name is like a pattern, in which each star stands for any text.
func matches(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	rest, ok := strings.CutPrefix(name, parts[0])
	for _, part := range parts[1:last] {
		i := strings.Index(rest, part)
		if !ok || i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return ok && strings.HasSuffix(rest, parts[last])
}

// readAllowed reads the list: "SUITE TEST: REASON" a line, in which the names of tests have
// no ": " in them. Empty lines and lines that begin with # are skipped.
func readAllowed(text string) (allowed, error) {
	list := allowed{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, reason, ok := strings.Cut(line, ": ")
		if !ok || !strings.Contains(key, " ") || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("line %d: %q is not SUITE TEST: REASON", n, line)
		}
		if list[key] != "" {
			return nil, fmt.Errorf("line %d: %q is listed twice", n, key)
		}
		list[key] = reason
	}
	return list, nil
}
