// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	DefaultSignals()
	os.Exit(m.Run())
}

// fakeTB records how a test ended instead of ending one.
type fakeTB struct {
	testing.TB // nil: a method that the fake lacks panics
	ended      string
	message    string
}

func (f *fakeTB) Helper()                     {}
func (f *fakeTB) Logf(string, ...any)         {}
func (f *fakeTB) Skip(args ...any)            { f.end("skip", fmt.Sprint(args...)) }
func (f *fakeTB) Skipf(s string, args ...any) { f.end("skip", fmt.Sprintf(s, args...)) }
func (f *fakeTB) Fatalf(s string, args ...any) {
	f.end("fail", fmt.Sprintf(s, args...))
}

func (f *fakeTB) end(how, message string) {
	f.ended, f.message = how, message
	runtime.Goexit()
}

// runFake calls body with a fake in a goroutine of its own, as package testing
// does, and returns the fake when body has ended.
func runFake(body func(testing.TB)) *fakeTB {
	fake := &fakeTB{ended: "pass"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		body(fake)
	}()
	<-done
	return fake
}

func TestLong(t *testing.T) {
	for value, want := range map[string]string{"": "skip", "0": "skip", "1": "pass"} {
		t.Setenv(LongVar, value)
		if got := runFake(Long); got.ended != want {
			t.Errorf("%s=%q: %s, want %s", LongVar, value, got.ended, want)
		}
	}
}

func TestSwitchTurnsSkipIntoFailure(t *testing.T) {
	tests := []struct {
		name    string
		require string
		fact    Fact
		want    string
		message string
	}{
		{name: "nothing required", require: "", fact: UserNS, want: "skip", message: "not here"},
		{name: "another fact required", require: "landlock", fact: UserNS, want: "skip", message: "not here"},
		{name: "this fact required", require: "userns", fact: UserNS, want: "fail", message: "requires userns"},
		{name: "one of several", require: "landlock, userns", fact: UserNS, want: "fail", message: "requires userns"},
		{name: "all", require: "all", fact: Programs, want: "fail", message: "requires programs"},
		{name: "empty words", require: ",,", fact: Seccomp, want: "skip", message: "not here"},
		{name: "misspelled requirement", require: "user-ns", fact: UserNS, want: "fail", message: `unknown word "user-ns"`},
		{name: "misspelled after a hit", require: "userns,lock", fact: UserNS, want: "fail", message: `unknown word "lock"`},
		{name: "upper case is no fact", require: "ALL", fact: UserNS, want: "fail", message: `unknown word "ALL"`},
		{name: "unknown fact", require: "", fact: "", want: "fail", message: "unknown fact"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv(RequireVar, test.require)
			fake := runFake(func(tb testing.TB) { Lack(tb, test.fact, "not here") })
			if fake.ended != test.want || !strings.Contains(fake.message, test.message) {
				t.Errorf("ended with %s %q, want %s with %q", fake.ended, fake.message,
					test.want, test.message)
			}
		})
	}
}

func TestNeedProgram(t *testing.T) {
	const missing = "sallyport-no-such-program"
	tests := []struct {
		name    string
		require string
		program string
		want    string
	}{
		{name: "present", require: "all", program: os.Args[0], want: "pass"},
		{name: "missing", require: "", program: missing, want: "skip"},
		{name: "missing and required", require: "programs", program: missing, want: "fail"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv(RequireVar, test.require)
			var path string
			fake := runFake(func(tb testing.TB) { path = NeedProgram(tb, test.program) })
			if fake.ended != test.want {
				t.Errorf("ended with %s %q, want %s", fake.ended, fake.message, test.want)
			}
			if fake.ended == "pass" && path != os.Args[0] {
				t.Errorf("path %q, want %q", path, os.Args[0])
			}
		})
	}
}

func TestNeedLandlockBeyondAnyKernel(t *testing.T) {
	t.Setenv(RequireVar, "landlock")
	fake := runFake(func(tb testing.TB) { NeedLandlock(tb, 1_000_000) })
	if fake.ended != "fail" {
		t.Errorf("ended with %s %q, want a failure", fake.ended, fake.message)
	}
}

func TestUsersAreNeverRequired(t *testing.T) {
	t.Setenv(RequireVar, "all")
	root, ordinary := runFake(NeedRoot), runFake(NeedOrdinaryUser)
	want := [2]string{"skip", "pass"}
	switch uid := os.Geteuid(); {
	case IsRoot():
		want = [2]string{"pass", "skip"}
	case uid <= 0:
		want = [2]string{"skip", "skip"}
	}
	if got := [2]string{root.ended, ordinary.ended}; got != want {
		t.Errorf("NeedRoot and NeedOrdinaryUser ended with %v, want %v", got, want)
	}
}

func TestClean(t *testing.T) {
	hidden := []string{"GOFLAGS", "GIT_DIR", "PYTHONPATH", "npm_config_registry", "LD_PRELOAD",
		"SALLYPORT_HOME"}
	kept := []string{RequireVar, "GOCACHE_OF_ANOTHER", "LC_ALL"}
	for _, name := range slices.Concat(hidden, kept) {
		t.Setenv(name, "x")
	}
	check := func(t *testing.T, seen func(string) bool) {
		t.Helper()
		for _, name := range hidden {
			if seen(name) {
				t.Errorf("%s is still set", name)
			}
		}
		for _, name := range kept {
			if !seen(name) {
				t.Errorf("%s is gone", name)
			}
		}
	}
	env := Environ()
	check(t, func(name string) bool { return slices.Contains(env, name+"=x") })
	t.Run("process", func(t *testing.T) {
		Clean(t)
		check(t, func(name string) bool { _, set := os.LookupEnv(name); return set })
	})
	if value := os.Getenv("GOFLAGS"); value != "x" {
		t.Errorf("GOFLAGS is %q after the test, want it restored", value)
	}
}

func TestOutcomeOf(t *testing.T) {
	tests := []struct {
		name   string
		output string
		want   outcome
	}{
		{name: "pass", output: "=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\n", want: outcomePass},
		{name: "skip", output: "--- SKIP: TestA (0.00s)\nPASS\n", want: outcomeSkip},
		{name: "fail", output: "--- FAIL: TestA (1.20s)\nFAIL\n", want: outcomeFail},
		{name: "no tests", output: "testing: warning: no tests to run\nPASS\n", want: outcomeNone},
		{name: "another test", output: "--- PASS: TestAB (0.00s)\n", want: outcomeNone},
		{name: "only a subtest", output: "    --- PASS: TestA/b (0.00s)\n", want: outcomeNone},
		{name: "forged by the test", output: "--- PASS: TestA (0.00s)\n--- SKIP: TestA (0.00s)\n", want: outcomeSkip},
		{name: "empty", output: "", want: outcomeNone},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := outcomeOf(test.output, "TestA"); got != test.want {
				t.Errorf("outcome %d, want %d", got, test.want)
			}
		})
	}
}

func TestPatternFor(t *testing.T) {
	const name = "TestA/a+b/c.d"
	if got, want := patternFor(name), `^TestA$/^a\+b$/^c\.d$`; got != want {
		t.Errorf("patternFor(%q) = %q, want %q", name, got, want)
	}
}
