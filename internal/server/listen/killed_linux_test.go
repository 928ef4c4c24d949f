// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestKilledServer: a server that gets SIGKILL leaves no process behind, in a sandbox or not, also
// none that ignores signals and made a session of its own.
func TestKilledServer(t *testing.T) {
	for _, test := range []struct {
		name         string
		sandbox, tty bool
	}{
		{"no sandbox", false, false},
		{"terminal", false, true},
		{"sandbox", true, false},
		{"sandbox, terminal", true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.sandbox {
				testenv.NeedUserNS(t)
			}
			testenv.NeedProgram(t, "setsid")
			server, url := serverProcess(t)
			c, _ := meet(t, url, nil)
			dir := t.TempDir()
			fifo := filepath.Join(dir, "alive")
			if err := unix.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			more := map[string]any{"tty": test.tty}
			if test.sandbox {
				more["sandbox"] = managed(dir)
			}
			c.start(dir, "exec 3<>alive; trap '' TERM INT HUP; setsid sh -c 'trap \"\" TERM INT HUP; echo; sleep 300' & wait", more)
			c.printed()
			f, err := os.Open(fifo)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := f.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, f); err != nil {
				// it ends with the last process that has the pipe
				t.Error(err)
			}
		})
	}
}

// leftEnv names the directory in which a server records what runs; empty for none.
const leftEnv = "SALLYPORT_TEST_LEFTOVERS"

// TestLeftovers: what is left of a command when its server and its reaper are killed ends with the start of
// the next server. Without the record it goes on. Of two servers that live, one uses the record.
func TestLeftovers(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, records := range []bool{true, false} {
		t.Run(fmt.Sprintf("recorded %t", records), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "left")
			if records {
				t.Setenv(leftEnv, dir)
			}
			server, url := serverProcess(t)
			c, _ := meet(t, url, nil)
			c.start("/", "trap '' TERM INT HUP; sleep 300 & echo $PPID $$ $!; wait", nil)
			c.printed()
			var reaper, shell, child int
			if _, err := fmt.Sscan(string(c.events[0].Params.Chunk), &reaper, &shell, &child); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { // what a test that fails leaves
				_ = unix.Kill(shell, unix.SIGKILL)
				_ = unix.Kill(child, unix.SIGKILL)
			})
			if _, err := process.OpenLeftovers(dir); records == (err == nil) {
				t.Errorf("a record that is in use is opened: %v", err)
			}
			// The reaper cannot tell the server, and the server nothing to the reaper.
			for _, pid := range []int{server.Pid, reaper, shell} {
				if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
			for _, pid := range []int{reaper, server.Pid} {
				if err := unix.Kill(pid, unix.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			_, _ = server.Wait()
			if unix.Kill(shell, 0) != nil || unix.Kill(child, 0) != nil {
				t.Fatal("the command has ended with its server, and there is nothing left to end")
			}
			serverProcess(t)
			for _, pid := range []int{shell, child} {
				m, ok := process.ReadMember(pid)
				if ended := !ok || m.Ended; ended != records {
					t.Errorf("process %d: %+v, %t", pid, m, ok)
				}
			}
		})
	}
}

// managed returns a sandbox in which dir can be written.
func managed(dir string) any {
	entry := func(path map[string]any, access string) any {
		return map[string]any{"path": path,
			"access": access}
	}
	return map[string]any{"windowsSandboxLevel": "disabled", "permissions": map[string]any{
		"type": "managed", "network": "restricted", "file_system": map[string]any{"type": "restricted", "entries": []any{
			entry(map[string]any{"type": "special", "value": map[string]any{"kind": "root"}}, "read"),
			entry(map[string]any{"type": "path", "path": "file://" + dir}, "write"),
		}},
	}}
}

// serverProcess starts a server as a process of its own and returns its URL.
func serverProcess(t *testing.T) (*os.Process, string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, serveArg)
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir()) // one that is killed leaves its files
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return cmd.Process, strings.TrimSpace(url)
}
