// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// heapEnv makes the test binary a caller with that many bytes of touched heap:
// for every line on standard input it starts /bin/true once and answers with a
// line.
const heapEnv = "SALLYPORT_BENCH_HEAP"

func heapMain(size string) int {
	n, err := strconv.Atoi(size)
	if err != nil {
		return 2
	}
	heap := make([]byte, n)
	for i := 0; i < len(heap); i += 4096 {
		heap[i] = 1
	}
	host := new(linux.Host)
	defer host.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 2
	}
	ws := os.Args[1]
	r := &executor.Spec{
		Args: []string{"/bin/true"}, Dir: ws, Env: []string{"PATH=/usr/bin:/bin"},
		Policy: sandbox.WorkspaceWrite(ws).Bind(sandbox.Places{Dir: ws, SlashTmp: "/tmp"}),
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		c, err := host.Start(context.Background(), r, [3]*os.File{null, null, null})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		_, _, err = c.Wait()
		if e := c.WaitAll(); err == nil {
			err = e
		}
		_ = c.Close(new(executor.Exit))
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println("ok")
	}
	runtime.KeepAlive(heap)
	return 0
}

// callerGroup starts such a process and returns a function that has it start a
// command and waits for its answer.
func callerGroup(b *testing.B, ws string, heap int) func() error {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(self, ws)
	cmd.Env = append(os.Environ(), heapEnv+"="+strconv.Itoa(heap))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	})
	answers := bufio.NewReader(out)
	return func() error {
		if _, err := in.Write([]byte("\n")); err != nil {
			return err
		}
		line, err := answers.ReadString('\n')
		if err == nil && line != "ok\n" {
			err = fmt.Errorf("the caller says %q", line)
		}
		return err
	}
}

// BenchmarkStartBigHeap guards: a caller that holds 1 GiB of touched memory
// starts a command in at most 1.2 of the time that a small caller needs.
func BenchmarkStartBigHeap(b *testing.B) {
	testenv.NeedUserNS(b)
	ws := workspace(b)
	vs := []Variant{{"big", callerGroup(b, ws, 1<<30)}, {"small", callerGroup(b, ws, 1<<20)}}
	for b.Loop() {
		times, err := Rounds(rounds, vs)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(Ratio(times[0], times[1]), "x-small")
	}
}
