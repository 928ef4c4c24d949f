// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// printsEnv makes the test binary a program that prints as many bytes as it says, in
// lines and in large pieces, and nothing else.
const printsEnv = "SALLYPORT_BENCH_PRINTS"

// printedLine is a line of what it prints. A terminal shows its end as two bytes.
var printedLine = append(bytes.Repeat([]byte("x"), 63), '\n')

// printsMain is that program. The size is a multiple of a piece.
func printsMain(size string) int {
	left, err := strconv.Atoi(size)
	if err != nil {
		return 2
	}
	piece := bytes.Repeat(printedLine, 1024)
	for left > 0 {
		for at := 0; at < len(piece); {
			n, err := syscall.Write(1, piece[at:])
			switch {
			case err == syscall.EINTR:
				continue
			case err != nil:
				return 1
			}
			at += n
		}
		left -= len(piece)
	}
	return 0
}

// terminalEnv says how many MiB BenchmarkTerminalThroughput prints. The figures of the
// documentation are for 512; without it there are 16, which take a second or two.
const terminalEnv = "SALLYPORT_BENCH_TERMINAL_MIB"

// BenchmarkTerminalThroughput guards: 512 MiB that a command prints on its terminal, all
// of which can be read afterwards, take at most 1.2 of the time of "script", which
// writes them into a file, with the same program.
func BenchmarkTerminalThroughput(b *testing.B) {
	testenv.NeedUserNS(b)
	script := testenv.NeedProgram(b, "script")
	mib, rounds := 16, 5
	if text := os.Getenv(terminalEnv); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n <= 0 {
			b.Fatalf("%s is %q, which is no number of MiB", terminalEnv, text)
		}
		mib = n
	}
	size := mib << 20
	shown := uint64(size + size/len(printedLine))
	ws := workspace(b)
	b.Setenv("XDG_STATE_HOME", filepath.Join(workspace(b), "state"))
	printer := copiedSelf(b, ws)
	env := testenv.NeedProgram(b, "env")
	line := []string{env, printsEnv + "=" + strconv.Itoa(size), printer}
	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite(ws)}
	defer r.Close()
	file := filepath.Join(ws, "typescript")
	vs := []Variant{
		{"session", func() error { return throughSession(r, ws, line, shown) }},
		{"script", func() error { return throughScript(script, ws, file, line, shown) }},
	}
	clean := func() error {
		if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
			return err
		}
		return nil
	}
	for b.Loop() {
		times, err := RoundsBetween(rounds, vs, clean)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(Ratio(times[0], times[1]), "x-script")
		for i := range vs {
			b.ReportMetric(float64(mib)/Middle(times[i]).Seconds(), vs[i].Name+"-MiB/s")
		}
	}
}

// copiedSelf copies this program to where a sandboxed command sees it.
func copiedSelf(tb testing.TB, ws string) string {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err != nil {
		tb.Fatal(err)
	}
	name := filepath.Join(ws, "self")
	if err := testenv.WriteProgram(name, text); err != nil {
		tb.Fatal(err)
	}
	return name
}

// throughSession runs a command in a session to its end, and expects so many bytes.
func throughSession(r *sallyport.Runner, ws string, line []string, shown uint64) error {
	cmd := sallyport.Command(line...)
	cmd.Dir, cmd.TTY = ws, new(sallyport.Size)
	s, err := r.Start(context.Background(), cmd)
	if err != nil {
		return err
	}
	defer s.Close()
	reply, err := s.Await(context.Background(), sallyport.Until{For: enough})
	if err != nil {
		return err
	}
	if reply.Reason != sallyport.ReasonExited || reply.Result == nil || reply.Result.ExitCode != 0 ||
		reply.Offset != shown {
		return fmt.Errorf("%s after %d bytes, not %d: %+v", reply.Reason, reply.Offset, shown, reply.Result)
	}
	return nil
}

// throughScript runs it below script, with the same expectation. Script adds a line in
// front and one behind.
func throughScript(script, ws, file string, line []string, shown uint64) error {
	cmd := exec.Command(script, "-qec", line[0]+" "+line[1]+" "+line[2], file)
	cmd.Dir = ws
	if err := cmd.Run(); err != nil {
		return err
	}
	st, err := os.Stat(file)
	if err != nil {
		return err
	}
	const added = 1000
	if n := uint64(st.Size()); n < shown || n > shown+added {
		return fmt.Errorf("script has %d bytes, not %d", n, shown)
	}
	return nil
}
