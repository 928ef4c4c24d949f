// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// scheduling are calls whose number depends on how busy the machine is, and on how many threads the Go
// runtime starts because of that.
var scheduling = []string{"futex", "nanosleep", "sched_yield", "epoll_pwait", "tgkill", "getpid",
	"rt_sigreturn", "restart_syscall", "sched_getaffinity", "pread64", "clone", "sigaltstack", "gettid",
	"rt_sigprocmask", "mmap", "munmap", "mprotect", "madvise", "clone3", "rseq", "set_robust_list"}

// TestCalls: a start makes about as few system calls as it did when these numbers were written down
// (docs/decisions/0120). They are a fifth higher than on a busy machine: others have more in /dev and /proc.
func TestCalls(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	strace := testenv.NeedPeer(t, "strace")
	for _, c := range []struct {
		name string
		args []string
		most int
	}{
		{"workspace", nil, 1350},
		{"full access", []string{"-s", "full-access"}, 530},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTree(t)
			home := filepath.Join(filepath.Dir(tr.state), "home")
			if err := os.Mkdir(home, 0o700); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "calls")
			args := append([]string{"run", "-q"}, c.args...)
			args = append(args, "--", "/bin/true")
			for _, words := range [][]string{ // the second start finds what the first one has made
				append([]string{"sallyport"}, args...),
				append([]string{strace, "-f", "-c", "-U", "name,calls", "-o", file, "sallyport"}, args...),
			} {
				cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
				cmd.Dir = tr.work
				cmd.Env = append(testenv.Environ(), "HOME="+home, "XDG_STATE_HOME="+tr.state)
				if out, err := cmd.CombinedOutput(); err != nil && words[0] == strace {
					testenv.Lack(t, testenv.Programs, fmt.Sprintf("strace may not trace: %v\n%s", err, out))
				} else if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if n := countCalls(string(text)); n == 0 || n > c.most {
				t.Errorf("%d calls, at most %d:\n%s", n, c.most, text)
			}
		})
	}
}

// countCalls adds up the lines of a table of strace -c, but for those of scheduling.
func countCalls(table string) (n int) {
	for _, line := range regexp.MustCompile(`(?m)^\s*(\w+)\s+(\d+)\s*$`).FindAllStringSubmatch(table, -1) {
		if count, err := strconv.Atoi(line[2]); err == nil && line[1] != "total" &&
			!slices.Contains(scheduling, strings.TrimSpace(line[1])) {
			n += count
		}
	}
	return n
}
