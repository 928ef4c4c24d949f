// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestLeftoversOthers: only the process that was recorded is ended, with its session: not one that has its
// PID, and not after a restart of the machine. A record that was handled is removed.
func TestLeftoversOthers(t *testing.T) {
	testenv.NeedProgram(t, "sleep")
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		later uint64 // than the process has started
		boot  string
		ends  bool
	}{
		{"the process", 0, string(boot), true},
		{"another one that has its PID", 1, string(boot), false},
		{"an earlier one that had its PID", ^uint64(0), string(boot), false},
		{"after a restart", 0, "00000000-0000-0000-0000-000000000000\n", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd := exec.Command("sleep", "300")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			})
			m, ok := ReadMember(cmd.Process.Pid)
			if !ok {
				t.Fatal("the process has ended")
			}
			dir := filepath.Join(t.TempDir(), "left")
			record := filepath.Join(dir, fmt.Sprintf("%d-%d", m.PID, m.start+test.later))
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(record, []byte(test.boot), 0o600); err != nil {
				t.Fatal(err)
			}
			l, err := OpenLeftovers(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if now, ok := ReadMember(m.PID); ok && !now.Ended == test.ends {
				t.Errorf("ended %t, want %t", now.Ended, test.ends)
			}
			if _, err := os.Stat(record); err == nil {
				t.Error("the record is left")
			}
			done := l.Add(m.PID)
			done()
			if left, _ := os.ReadDir(dir); len(left) != 1 { // the lock
				t.Errorf("%v is left", left)
			}
		})
	}
}
