// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// webConsole starts sallyport console, and returns the address, the token and what ends it with a signal.
func webConsole(t *testing.T, cmd *exec.Cmd) (address, token string, end func(os.Signal) int) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address, token, _ = strings.Cut(strings.TrimSpace(line), "/#token=")
	return address, token, func(s os.Signal) int {
		if err := cmd.Process.Signal(s); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // the exit code says it
		return cmd.ProcessState.ExitCode()
	}
}

// enter exchanges a token.
func enter(t *testing.T, address, token string) int {
	t.Helper()
	answer, err := http.Post(address+"/session", "application/json",
		strings.NewReader(fmt.Sprintf(`{"token":%q}`, token)))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode
}

// plantPages makes files as consoles leave them that were killed: one with an expired token, and a young one.
func plantPages(t *testing.T, dir string) (old, young string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	old, young = filepath.Join(dir, "open-0.html"), filepath.Join(dir, "open-1.html")
	for _, name := range []string{old, young} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	return old, young
}

// TestConsoleOpens: the browser gets no token on its command line, and is no program that commands have put
// in the workspace.
func TestConsoleOpens(t *testing.T) {
	t.Parallel()
	testenv.NeedInotify(t)
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(s.String(), func(t *testing.T) {
			seat := newSeat(t)
			bin, told := filepath.Join(filepath.Dir(seat.home), "bin"), filepath.Join(filepath.Dir(seat.home),
				"told")
			if err := os.Mkdir(bin, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mkfifo(told, 0o600); err != nil {
				t.Fatal(err)
			}
			for dir, text := range map[string]string{bin: "#!/bin/sh\nprintf '%s\\n' \"$#\" \"$@\" >" + told +
				"\n",
				seat.work: "#!/bin/sh\necho planted >" + told + "\n"} {
				if err := testenv.WriteProgram(filepath.Join(dir, "xdg-open"), text); err != nil {
					t.Fatal(err)
				}
			}
			seat.path = seat.work + ":" + bin + ":" + seat.path
			old, young := plantPages(t, filepath.Join(seat.home, "sallyport", "console"))
			cmd := seat.command(t, "sallyport", "console", "--open")
			address, token, end := webConsole(t, cmd)
			text, err := os.ReadFile(told)
			words := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
			if err != nil || len(words) != 2 || words[0] != "1" {
				t.Fatalf("the browser got %q, %v", text, err)
			}
			page := testenv.ReadFile(t, words[1])
			info, err := os.Stat(words[1])
			_, after, ok := strings.Cut(string(page), address+"/#token=")
			other, _, _ := strings.Cut(after, `"`)
			if err != nil || info.Mode().Perm() != 0o600 || !ok || strings.Contains(string(text), other) {
				t.Fatalf("%s (%v), %v: %s", words[1], info.Mode(), err, page)
			}
			line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid))
			if err != nil || strings.Contains(string(line), token) || strings.Contains(string(line), other) {
				t.Errorf("its command line has a token: %q, %v", line, err)
			}
			for _, one := range []string{token, other} {
				if got := enter(t, address, one); got != http.StatusOK {
					t.Errorf("status %d", got)
				}
			}
			if code := end(s); code != 0 {
				t.Errorf("exit code %d", code)
			}
			for name, want := range map[string]bool{words[1]: false, old: false, young: true} {
				if _, err := os.Stat(name); (err == nil) != want {
					t.Errorf("%s is there: %v, want %v", name, err == nil, want)
				}
			}
		})
	}
}

// TestConsoleOutOfReach: a command in a sandbox that reaches the console's port cannot read what opens it.
func TestConsoleOutOfReach(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	testenv.NeedInotify(t)
	s := newSeat(t)
	address, token, end := webConsole(t, s.command(t, "sallyport", "console"))
	if got := enter(t, address, token); got != http.StatusOK {
		t.Fatalf("status %d", got)
	}
	state := filepath.Join(s.home, "sallyport", "console")
	file := filepath.Join(state, "secrets.json")
	// The file has no end of line: read fails, and has read it.
	script := "for f in " + file + " " + state + "/* ; do l=; read -r l <$f; " +
		"test -z \"$l\" || echo got $f; done; " +
		"echo >>" + file + " && echo changed; echo ran"
	for _, words := range [][]string{{"--net", "host"}, {"--net", "host", "-s", "read-only"}} {
		run := s.command(t, append(append([]string{"sallyport", "run"}, words...), "--", "/bin/sh", "-c",
			script)...)
		out, _ := run.Output() // the shell says what it cannot open
		if string(out) != "ran\n" {
			t.Errorf("%q: %s", words, out)
		}
	}
	outside := s.command(t, "/bin/sh", "-c", script)
	if out, err := outside.Output(); !strings.HasPrefix(string(out), "got "+file+"\n") ||
		!strings.HasSuffix(string(out), "changed\nran\n") {
		t.Errorf("outside: %s, %v", out, err) // so it is an attack
	}
	for dir, mode := range map[string]os.FileMode{state: 0o700, file: 0o600} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: other users reach it: %v, %v", dir, info.Mode(), err)
		}
	}
	if code := end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
