// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// otherVar has TestOtherUser attack a console as another user of the machine: its address, and a directory.
const otherVar = "SALLYPORT_TEST_CONSOLE"

// TestOtherUser: another user of the machine can read nothing that opens the console, and is not let in with
// what it can read: the command line, the state directory, the sockets.
func TestOtherUser(t *testing.T) {
	if where := os.Getenv(otherVar); where != "" {
		address, home, _ := strings.Cut(where, " ")
		attackConsole(t, address, home)
		return
	}
	testenv.NeedRoot(t)
	testenv.NeedInotify(t)
	s := newSeat(t)
	if err := os.Chmod(filepath.Dir(s.home), 0o755); err != nil { //nolint:gosec // others reach it
		t.Fatal(err)
	}
	runtime := filepath.Join(filepath.Dir(s.home), "run")
	if err := os.Mkdir(runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := s.command(t, "sallyport", "console", "--token-file", filepath.Join(s.home,
		"sallyport/console/token"))
	cmd.Env = append(cmd.Env, "XDG_RUNTIME_DIR="+runtime)
	address, token, _ := webConsole(t, cmd)
	if got := enter(t, address, token); got != http.StatusOK {
		t.Fatalf("status %d", got)
	}
	attack := filepath.Join(filepath.Dir(s.home), "attack") // others cannot run that of go test
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = testenv.WriteProgram(attack, self)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, uid := range []uint32{65534, 0} { // another user, and that of the console
		t.Run(fmt.Sprint("user ", uid), func(t *testing.T) {
			other := exec.CommandContext(t.Context(), attack, "-test.run=^TestOtherUser$")
			other.Dir = "/"
			other.Env = append(os.Environ(), otherVar+"="+address+" "+filepath.Dir(s.home))
			other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
			out, err := other.CombinedOutput()
			if opened := strings.Contains(string(out), "opens the console"); opened != (uid == 0) ||
				opened != (err != nil) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// secretWords are what tokens and secrets look like.
var secretWords = regexp.MustCompile(`[A-Z2-7]{26}`)

// attackConsole reads what this user can read below a directory and of all processes, and tries it as a
// token; and it connects to each socket. What opens something fails the test.
func attackConsole(t *testing.T, address, dir string) {
	t.Helper()
	var texts []string
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // it is closed to this user
		case d.Type()&fs.ModeSocket != 0:
			if c, err := net.Dial("unix", name); err == nil {
				_ = c.Close()
				t.Errorf("%s is open", name)
			}
		case d.Type().IsRegular() && filepath.Base(name) != "attack": // this program
			text, _ := os.ReadFile(name)
			texts = append(texts, string(text))
		}
		return nil
	})
	for _, kind := range []string{"cmdline", "environ"} {
		names, err := filepath.Glob("/proc/[0-9]*/" + kind)
		if err != nil || len(names) == 0 {
			t.Fatal(err)
		}
		for _, name := range names {
			text, _ := os.ReadFile(name)
			texts = append(texts, string(text))
		}
	}
	tried := make(map[string]bool) // a wrong one takes a second
	for _, word := range secretWords.FindAllString(strings.Join(texts, "\n"), -1) {
		if tried[word] {
			continue
		}
		tried[word] = true
		if got := enter(t, address, word); got == http.StatusOK {
			t.Errorf("a token that this user reads opens the console")
			return
		}
	}
	if got := enter(t, address, "guess"); got != http.StatusUnauthorized {
		t.Errorf("the console is not reached: status %d", got)
	}
}
