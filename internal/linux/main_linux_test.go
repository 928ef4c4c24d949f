// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// The test binary plays four parts. Without special arguments it tests. As
// "attack NAME,NAME KEY=VALUE..." it is the command in the sandbox and tries
// what the names say, one line of output each. As "front NAME KEY=VALUE..." it
// is another program that uses this package and can be killed. As "nested FACT
// KEY=VALUE..." it is this package on a machine that lacks a fact.
const (
	partAttack = "attack"
	partFront  = "front"
	partNested = "nested"
)

// programVar names the copy of this binary that commands can see: the directory in
// which the go command builds lies in /tmp, where they have a private one.
const programVar = "SALLYPORT_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == partAttack {
		os.Exit(attackMain(os.Args[2], keyValues(os.Args[3:])))
	}
	if len(os.Args) > 2 && os.Args[1] == partFront {
		os.Exit(frontMain(os.Args[2], keyValues(os.Args[3:])))
	}
	if len(os.Args) > 2 && os.Args[1] == partNested {
		os.Exit(nestedMain(os.Args[2], os.Args[3:]))
	}
	if len(os.Args) > 2 && os.Args[1] == partAsked {
		os.Exit(askedMain(os.Args[2], keyValues(os.Args[3:])))
	}
	if len(os.Args) > 3 && os.Args[1] == partCases {
		os.Exit(casesMain(os.Args[2], os.Args[3]))
	}
	testenv.DefaultSignals()
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("/var/tmp", "sallyport-confine-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		err = os.Setenv(programVar, filepath.Join(dir, "program"))
	}
	if err == nil {
		err = copySelf(os.Getenv(programVar))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// copySelf copies this binary. A link would keep a mode that closes it to others.
func copySelf(to string) error {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer from.Close()
	// Whoever forks now would hold the file open for writing for a moment, and
	// starting it would fail with ETXTBSY.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}

func keyValues(words []string) map[string]string {
	m := make(map[string]string)
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		m[k] = v
	}
	return m
}

// What an attack reports. BAD is for an attack that could not even be tried.
const (
	wordDenied = "DENIED"
	wordBreach = "BREACH"
	wordOK     = "OK"
	wordBad    = "BAD"
)

// A outcome is the result of one attack. The zero outcome is none.
type outcome struct {
	word   string
	detail string
}

func denied(detail string) outcome { return outcome{wordDenied, detail} }

func breach(format string, a ...any) outcome { return outcome{wordBreach, fmt.Sprintf(format, a...)} }

func fine(format string, a ...any) outcome { return outcome{wordOK, fmt.Sprintf(format, a...)} }

func bad(format string, a ...any) outcome { return outcome{wordBad, fmt.Sprintf(format, a...)} }

// deniedIf is a breach when err is nil.
func deniedIf(err error, what string) outcome {
	if err == nil {
		return breach("%s", what)
	}
	return denied(errnoName(err))
}

// errnoName is the kernel's name of an error, such as EROFS.
func errnoName(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// firstBreach runs attempts in order: the first that succeeds is the breach,
// the error of the last is the reason of the denial.
func firstBreach(tries ...func() (string, error)) outcome {
	v := bad("nothing tried")
	for _, f := range tries {
		what, err := f()
		if v = deniedIf(err, what); v.word == wordBreach {
			return v
		}
	}
	return v
}

// An attack is something a hostile command tries.
type attack func(kv map[string]string) outcome

// attacks is everything that the attacker knows.
func attacks() map[string]attack {
	all := make(map[string]attack)
	for _, table := range []map[string]attack{
		fileAttacks(), metaAttacks(), linkAttacks(), mountAttacks(), systemAttacks(), processAttacks(),
		ipcAttacks(), networkAttacks(), socketAttacks(), datagramAttacks(), kernelAttacks(),
		inotifyInstances(), privilegeAttacks(), taskAttacks(), inputAttacks(), modeAttacks(),
		stateAttacks(), lifeAttacks(), hiddenAttacks(), inPlaceAttacks(), ownershipCalls(),
		agentAttacks(), sharedAttacks(), peerActions(), probeAttacks(), nameActions(), identityActions(),
		kernelFileAttacks(),
	} {
		for name, a := range table {
			if all[name] != nil {
				panic("two attacks are named " + name)
			}
			all[name] = a
		}
	}
	return all
}

// attackMain performs attacks and prints "NAME WORD DETAIL" for each.
func attackMain(names string, kv map[string]string) int {
	table := attacks()
	for name := range strings.SplitSeq(names, ",") {
		v := bad("there is no such attack")
		if a := table[name]; a != nil {
			v = guarded(a, kv)
		}
		fmt.Printf("%s %s %s\n", name, v.word, strings.ReplaceAll(v.detail, "\n", " "))
	}
	return 0
}

// guarded turns a panic into a outcome.
func guarded(a attack, kv map[string]string) (v outcome) {
	defer func() {
		if r := recover(); r != nil {
			v = bad("panic: %v", r)
		}
	}()
	return a(kv)
}

// names lists the attacks of a table in order, joined for attackMain.
func names(tables ...map[string]attack) []string {
	var out []string
	for _, t := range tables {
		for n := range t {
			out = append(out, n)
		}
	}
	sort.Strings(out)
	return out
}
