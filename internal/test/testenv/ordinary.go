// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// RunAsOrdinary runs the calling test a second time as an unprivileged user, when
// the effective user is root and [LongVar] is set, and reports that run as the subtest
// "ordinary". Call it in the first line of a test: it blocks until the child ends, then
// the caller goes on as root. For an ordinary user, and on systems other than Linux,
// it does nothing, nor where the variable SALLYPORT_TEST_ORDINARY is "elsewhere": then
// all tests run as such a user in another step.
//
// The child is this test binary, started as user and group 65534 in the package's
// directory, or in a readable copy of the directory and its testdata where that user
// cannot reach the original. It has an empty
// private HOME and TMPDIR, and no module or build cache: a test that runs the go
// command does not belong under it. A child that skips makes the subtest skipped;
// one that ends without a word about the test makes it fail.
func RunAsOrdinary(t *testing.T) {
	t.Helper()
	runAsOrdinary(t)
}

// outcome is what a verbose child run said about one test. The zero value is
// "nothing", which counts as a failure.
type outcome int

const (
	outcomeNone outcome = iota
	outcomePass
	outcomeSkip
	outcomeFail
)

// outcomeOf reads the last line about the test named name from the output of a
// run with -test.v. Tests print such lines too; the one by package testing is
// the last, because it comes when the test has ended.
func outcomeOf(output, name string) outcome {
	found := outcomeNone
	for line := range strings.SplitSeq(output, "\n") {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "--- ")
		if !ok {
			continue
		}
		word, about, _ := strings.Cut(rest, ": ")
		if !strings.HasPrefix(about, name+" (") {
			continue
		}
		switch word {
		case "PASS":
			found = outcomePass
		case "SKIP":
			found = outcomeSkip
		case "FAIL":
			found = outcomeFail
		}
	}
	return found
}

// patternFor returns the value of -test.run that selects exactly the test named
// name; the parts of a subtest's name are matched one by one.
func patternFor(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = fmt.Sprintf("^%s$", regexp.QuoteMeta(part))
	}
	return strings.Join(parts, "/")
}
