// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testenv tells tests what the machine under them can do.
//
// A test that needs a fact of the host (user namespaces, a Landlock version, a C
// compiler) asks for it in its first line. The fact is probed by doing the thing,
// not by reading a version number. Where it is missing the test is skipped and
// the reason names the fact; where the variable SALLYPORT_TEST_REQUIRE lists the
// fact, the skip becomes a failure, so that a build machine cannot turn green by
// losing a capability.
//
// [RunAsOrdinary] lets one test cover two users: run by root, it starts the same
// test once more as an unprivileged user. [Clean] and [Environ] take away the
// variables of the caller's shell that change what compilers, git and
// interpreters do.
//
// This package is the only one in the module that skips tests, and only test
// files import it. It refuses to guess: a requirement it does not know is a
// failure, and a child run that reports nothing is one too.
package testenv

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// RequireVar names the environment variable that turns skips into failures. Its
// value is a comma-separated list of [Fact] values, or "all". Empty and unset
// require nothing.
const RequireVar = "SALLYPORT_TEST_REQUIRE"

// LongVar names the environment variable that turns on stress tests and long crash tests,
// when it is "1".
const LongVar = "SALLYPORT_TEST_LONG"

// Fact is something a test may need from the machine, spelled as in [RequireVar].
// The zero value is no fact; asking for it fails the test.
type Fact string

// The facts that can be required.
const (
	UserNS   Fact = "userns"   // an unprivileged process may make user, network and mount namespaces
	Landlock Fact = "landlock" // the kernel has Landlock, switched on
	Seccomp  Fact = "seccomp"  // the kernel takes seccomp filters that answer with an errno
	Programs Fact = "programs" // the programs that tests start are installed
	Cgroups  Fact = "cgroups"  // root may make control groups
	Inotify  Fact = "inotify"  // this user may have another inotify instance and watch
	Redirect Fact = "redirect" // the kernel leads connections of a network namespace away (nf_tables)
)

// requireAll is the value of RequireVar for every fact.
const requireAll = "all"

// Facts returns every fact that can be required, in a fixed order.
func Facts() []Fact {
	return []Fact{UserNS, Landlock, Seccomp, Programs, Cgroups, Inotify, Redirect}
}

// NeedUserNS skips t unless this process can start a program in new user, network
// and mount namespaces and change a mount in there. The first call starts a short program.
func NeedUserNS(t testing.TB) {
	t.Helper()
	if err := userNS(); err != nil {
		Lack(t, UserNS, "no user namespaces here: "+err.Error())
	}
}

// userNS is probeUserNS, tried once: where a namespace is refused, os/exec leaves two descriptors open.
var userNS = sync.OnceValue(probeUserNS)

// SkipExamples leaves out the examples of a package, which run commands in a sandbox and cannot skip
// themselves, where [NeedUserNS] would skip a test. TestMain calls it.
func SkipExamples() {
	if f := flag.Lookup("test.skip"); f != nil && !HasUserNS() {
		_ = f.Value.Set("^Example") // every text is a valid value
	}
}

// HasUserNS reports whether [NeedUserNS] would let a test run.
func HasUserNS() bool { return userNS() == nil }

// NeedLandlock skips t unless the kernel offers at least version abi of the
// Landlock interface. An abi of 0 or less asks only that Landlock exists.
func NeedLandlock(t testing.TB, abi int) {
	t.Helper()
	have, err := LandlockABI()
	if err != nil {
		Lack(t, Landlock, "no Landlock here: "+err.Error())
		return
	}
	if have < abi {
		Lack(t, Landlock, fmt.Sprintf("Landlock version %d needed, the kernel has %d", abi, have))
	}
}

// LandlockABI returns the version of the Landlock interface that the kernel
// offers, 1 or more. The error says why there is none: not Linux, not built in,
// or switched off at boot.
func LandlockABI() (int, error) {
	return landlockABI()
}

// NeedSeccomp skips t unless the kernel has the seccomp system call with the
// filter action that answers an errno.
func NeedSeccomp(t testing.TB) {
	t.Helper()
	if err := probeSeccomp(); err != nil {
		Lack(t, Seccomp, "no seccomp filters here: "+err.Error())
	}
}

// NeedInotify skips t unless this user may have some more inotify instances with a watch each.
func NeedInotify(t testing.TB) {
	t.Helper()
	if err := probeInotify(); err != nil {
		Lack(t, Inotify, "no inotify here: "+err.Error())
	}
}

// NeedRoot skips t unless [IsRoot]. Nothing turns this skip into a failure: a complete run of the
// tests is one as root and one as an ordinary user.
func NeedRoot(t testing.TB) {
	t.Helper()
	if !IsRoot() {
		t.Skip("needs root; the run as root covers it")
	}
}

// IsRoot reports whether the effective user is root and may do what root may: root of a container may
// give no file to users that it does not map, and mount nothing.
func IsRoot() bool { return os.Geteuid() == 0 && wholeRoot() }

// NeedFile skips t where an ordinary user cannot reach a file outside of the package's
// directory: the second run of [RunAsOrdinary] may have a copy of that directory only.
// Nothing turns this skip into a failure: the owner of the checkout runs the test.
func NeedFile(t testing.TB, name string) {
	t.Helper()
	if _, err := os.Stat(name); err != nil && os.Geteuid() != 0 {
		t.Skip("closed to this user; the run as the owner of the checkout covers it: " + err.Error())
	}
}

// Long skips t unless [LongVar] is set. It is for variants of a test that take seconds; a
// shorter one runs always.
func Long(t testing.TB) {
	t.Helper()
	if !IsLong() {
		t.Skipf("takes long; set %s=1 to run it", LongVar)
	}
}

// IsLong reports whether [LongVar] is set, for a test that has a short form.
func IsLong() bool { return os.Getenv(LongVar) == "1" }

// InShort reports whether the i-th case of many alike belongs to the short form of a test: each third
// does. All belong to the long form.
func InShort(i int) bool { return IsLong() || i%3 == 0 }

// Rounds returns how often a test does something: short times, or long in the long form. There an ordinary
// user takes a quarter of that: it is the same code.
func Rounds(short, long int) int {
	switch {
	case !IsLong():
		return short
	case os.Geteuid() != 0:
		return max(short, long/4)
	}
	return long
}

// MostlyWait says that parallel tests of a package wait more than they compute, so that more of them run
// at once than there are processors. Call it from TestMain.
func MostlyWait() {
	if err := flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0))); err != nil {
		panic(err) // there is no such flag
	}
}

// NeedOrdinaryUser skips t when the effective user is root, and on systems
// without user numbers. A test that calls [RunAsOrdinary] first is still run by
// that child. Nothing turns this skip into a failure, see [NeedRoot].
func NeedOrdinaryUser(t testing.TB) {
	t.Helper()
	if uid := os.Geteuid(); uid <= 0 {
		t.Skipf("needs an ordinary user, the effective user is %d; the run as an ordinary user covers it", uid)
	}
}

// NeedProgram skips t unless the named program can be started by this user, and
// returns its path. The name is looked up in PATH; a name with a slash is taken
// as it is.
func NeedProgram(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Lack(t, Programs, fmt.Sprintf("program %s is not installed: %v", name, err))
	}
	return path
}

// NeedPeer returns the path of another tool with which a test compares, and skips t without it. It
// is never required: neither builds nor tests depend on peers.
func NeedPeer(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("the peer %s is not installed: %v", name, err)
	}
	return path
}

// ModulesVar names the environment variable with the absolute path of a node_modules directory, in
// which peers from npm are.
const ModulesVar = "SALLYPORT_TEST_MODULES"

// NeedNodeModule returns the directory that [ModulesVar] names, and skips t unless it has the
// package. As with [NeedPeer], it is never required.
func NeedNodeModule(t testing.TB, name string) string {
	t.Helper()
	modules := os.Getenv(ModulesVar)
	if _, err := os.Stat(filepath.Join(modules, name)); modules == "" || err != nil {
		t.Skipf("the peer %s is not in the directory that %s names (%q)", name, ModulesVar, modules)
	}
	return modules
}

// Lack ends t because the machine lacks a fact: skipped with the reason why, or
// failed where [RequireVar] lists the fact. It is for probes that live beside
// their test; the Need functions cover the common ones.
func Lack(t testing.TB, fact Fact, why string) {
	t.Helper()
	switch must, err := required(os.Getenv(RequireVar), fact); {
	case err != nil:
		t.Fatalf("testenv: %v", err)
	case must:
		t.Fatalf("%s (%s requires %s)", why, RequireVar, fact)
	default:
		t.Skip(why)
	}
}

// required reports whether list, the value of RequireVar, asks for fact. A word
// that is no fact is an error, because a misspelled requirement requires nothing.
func required(list string, fact Fact) (bool, error) {
	if !slices.Contains(Facts(), fact) {
		return false, fmt.Errorf("unknown fact %q", fact)
	}
	must := false
	for word := range strings.SplitSeq(list, ",") {
		word = strings.TrimSpace(word)
		switch {
		case word == "":
		case word == requireAll, Fact(word) == fact:
			must = true
		case !slices.Contains(Facts(), Fact(word)):
			return false, fmt.Errorf("%s has the unknown word %q; known are %q and %q", RequireVar, word,
				Facts(), requireAll)
		}
	}
	return must, nil
}
