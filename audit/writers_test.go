// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// writerVar names the log to which a process of these tests writes, in place of testing.
const writerVar = "SALLYPORT_TEST_AUDIT_DIR"

// writeForever writes records until it is killed, or 20 where its standard input has ended, and prints the
// number of each that Sync has confirmed.
func writeForever(dir string) {
	l, err := Open(Options{Dir: dir, MaxSegment: 8 << 10})
	for i := 0; err == nil && i < 1_000_000; i++ {
		e := ended(i)
		e.Run = fmt.Sprintf("%s-%d", os.Getenv("SALLYPORT_TEST_AUDIT_NAME"), i)
		l.Emit(e)
		if i%3 == 0 {
			if err = l.Sync(context.Background()); err == nil {
				fmt.Println(i)
			}
		}
		if i == 20 && os.Getenv("SALLYPORT_TEST_AUDIT_FEW") != "" {
			err = l.Close()
			break
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func writer(t *testing.T, dir, name string, few bool) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), writerVar+"="+dir, "SALLYPORT_TEST_AUDIT_NAME="+name)
	if few {
		cmd.Env = append(cmd.Env, "SALLYPORT_TEST_AUDIT_FEW=1")
	}
	cmd.Stderr = os.Stderr
	return cmd
}

// TestProcesses: 50 processes write at once, and files are rotated meanwhile.
func TestProcesses(t *testing.T) {
	dir := t.TempDir() + "/audit"
	var wg sync.WaitGroup
	for p := range 50 {
		cmd := writer(t, dir, fmt.Sprint("p", p), true)
		wg.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	r := verifyTest(t, dir)
	if r.Signed != r.Last || r.Files < 10 || len(r.Notes) > 0 {
		t.Errorf("%+v", r)
	}
	next := map[string]int{}
	for _, r := range readAll(t, dir, Filter{Kind: "event"}) {
		p, i := runOf(t, &r)
		if next[p] != i {
			t.Fatalf("%s: record %d comes after %d", p, i, next[p]-1)
		}
		next[p]++
	}
	if len(next) != 50 || next["p0"] != 21 || next["p49"] != 21 {
		t.Errorf("records: %v", next)
	}
}

// runOf splits the run of a record into process and number.
func runOf(t *testing.T, r *Record) (process string, i int) {
	t.Helper()
	e := new(event.Event)
	if err := e.UnmarshalJSON(r.Body); err != nil {
		t.Fatal(err)
	}
	process, number, _ := strings.Cut(e.Run, "-")
	if _, err := fmt.Sscan(number, &i); err != nil {
		t.Fatal(err)
	}
	return process, i
}

// TestKilled: writers are killed at any moment. The log verifies after each, and has what was confirmed.
func TestKilled(t *testing.T) {
	dir := t.TempDir() + "/audit"
	confirmed := map[string]int{}
	for round := range testenv.Rounds(6, 25) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		for p := range 3 {
			name := fmt.Sprintf("r%dp%d", round, p)
			cmd := writer(t, dir, name, false)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				lines := bufio.NewScanner(out)
				for n := 0; lines.Scan(); n++ {
					mu.Lock()
					i, err := strconv.Atoi(lines.Text())
					if err != nil {
						t.Error(err)
					}
					confirmed[name] = i
					mu.Unlock()
					if n == 2+round*3+p {
						_ = cmd.Process.Kill()
					}
				}
				_ = cmd.Wait() // it was killed
			})
		}
		wg.Wait()
		verifyTest(t, dir)
	}
	l := openTest(t, Options{Dir: dir})
	l.Emit(ended(1))
	syncTest(t, l)
	if r := verifyTest(t, dir); r.Signed != r.Last {
		t.Errorf("%+v", r)
	}
	has := map[string]int{}
	for _, r := range readAll(t, dir, Filter{Kind: "event"}) {
		if p, i := runOf(t, &r); i >= has[p] {
			has[p] = i
		}
	}
	for name, i := range confirmed {
		if has[name] < i {
			t.Errorf("%s: record %d was confirmed, and the last one is %d", name, i, has[name])
		}
	}
}
