// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestExecServerEnds: nothing of an exec-server is left when a signal ends it, also one that
// gives it no time.
func TestExecServerEnds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		signal  syscall.Signal
		sandbox string
		code    int
	}{
		{syscall.SIGTERM, "", 0}, {syscall.SIGINT, "", 0},
		{syscall.SIGKILL, `,"sandbox":{"permissions":{"type":"managed","network":"restricted","file_system":{"type":"restricted","entries":[
			{"path":{"type":"special","value":{"kind":"root"}},"access":"read"},{"path":{"type":"special","value":{"kind":"project_roots"}},"access":"write"}]}},"windowsSandboxLevel":"disabled"}`, -1},
	} {
		t.Run(test.signal.String(), func(t *testing.T) {
			if test.sandbox != "" {
				testenv.NeedUserNS(t)
			}
			s := newSeat(t)
			held := filepath.Join(s.work, "held")
			if err := unix.Mkfifo(held, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := s.command(t, "sallyport", "exec-server", "--listen", "stdio")
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cmd.Process.Kill() }()
			start := fmt.Sprintf(`{"id":2,"method":"process/start","params":{"processId":"p","argv":["sh","-c",%q],"cwd":"file://%s","env":{"PATH":"/usr/bin:/bin"},"tty":false%s}}`,
				"trap '' TERM INT HUP; exec 3>held; setsid sleep 60 & echo up; sleep 60",
				s.work, test.sandbox)
			one := new(bytes.Buffer)
			if err := json.Compact(one, []byte(start)); err != nil { // on one line
				t.Fatal(err)
			}
			if _, err := io.WriteString(in, `{"id":1,"method":"initialize","params":{"clientName":"t"}}`+"\n"+
				`{"method":"initialized"}`+"\n"+one.String()+"\n"); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(held) // when the command has opened it
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for lines := bufio.NewScanner(stdout); !bytes.Contains(lines.Bytes(), []byte("process/output")); {
				if !lines.Scan() {
					t.Fatal("no output came")
				}
			}
			if err := cmd.Process.Signal(test.signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // the exit code says it
			if got := cmd.ProcessState.ExitCode(); got != test.code {
				t.Errorf("exit code %d, want %d", got, test.code)
			}
			if _, err := io.ReadAll(f); err != nil { // it ends with the last process
				t.Error(err)
			}
		})
	}
}
