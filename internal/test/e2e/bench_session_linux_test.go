// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// enough is far more than anything that is waited for here takes.
const enough = time.Minute

// idle starts a session whose command waits for input on a terminal, and waits until it
// does.
func idle(tb testing.TB, r *sallyport.Runner, ws string, args ...string) *sallyport.Session {
	tb.Helper()
	cmd := sallyport.Command(args...)
	cmd.Dir, cmd.TTY = ws, new(sallyport.Size)
	s, err := r.Start(context.Background(), cmd)
	if err != nil {
		tb.Fatal(err)
	}
	awaited(tb, s, "")
	return s
}

// awaited sends text and waits until the command waits for input.
func awaited(tb testing.TB, s *sallyport.Session, text string) *sallyport.Reply {
	tb.Helper()
	reply, err := s.Send(context.Background(), []byte(text), sallyport.Until{Input: true, For: enough})
	if err != nil {
		tb.Fatal(err)
	}
	if reply.Reason != sallyport.ReasonInput {
		tb.Fatalf("%q ended with %s: %q", text, reply.Reason, reply.Output)
	}
	return reply
}

// closed ends sessions, side by side.
func closed(tb testing.TB, r *sallyport.Runner, sessions []*sallyport.Session) {
	tb.Helper()
	if _, err := r.TerminateAll(context.Background()); err != nil {
		tb.Fatal(err)
	}
	for _, s := range sessions {
		if err := s.Close(); err != nil {
			tb.Fatal(err)
		}
	}
}

// A prompt is a program that asks, and a line that it answers.
type prompt struct {
	program string
	args    []string
	line    string
}

// promptRounds is how many lines each prompt is sent: the 99th percentile needs at
// least 100.
const promptRounds = 200

// BenchmarkPromptAnswer guards: a prompt that was sent a line is answered, that is Send
// returns with the reason that it waits for input again, at most 25 ms at the median
// and 60 ms at the 99th percentile after the last byte that the program printed. What
// the caller sees, from the write on, is reported too: the program's own time is in it.
func BenchmarkPromptAnswer(b *testing.B) {
	testenv.NeedUserNS(b)
	for _, p := range []prompt{
		{"python3", []string{"-q"}, "6*7\n"},
		{"bash", []string{"--norc", "--noprofile", "-i"}, "echo $((6*7))\n"},
		{"node", []string{"-i"}, "6*7\n"},
	} {
		b.Run(p.program, func(b *testing.B) { p.bench(b) })
	}
}

// A hearing is how much a program had printed, and when the last of it came.
type hearing struct {
	bytes uint64
	at    time.Duration
}

func (p *prompt) bench(b *testing.B) {
	program := testenv.NeedProgram(b, p.program)
	ws := workspace(b)
	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite(ws)}
	defer r.Close()
	cmd := sallyport.Command(append([]string{program}, p.args...)...)
	cmd.Dir, cmd.TTY = ws, new(sallyport.Size)
	begin := time.Now()
	heard := make(chan hearing, 1)
	var sum uint64
	cmd.Stdout = writerFunc(func(text []byte) (int, error) {
		sum += uint64(len(text))
		select { // only the last one counts
		case <-heard:
		default:
		}
		heard <- hearing{sum, time.Since(begin)}
		return len(text), nil
	})
	s, err := r.Start(context.Background(), cmd)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	last := func(r *sallyport.Reply) time.Duration {
		for {
			// The writer has a goroutine of its own, which may not have come to it yet.
			if h := <-heard; h.bytes >= r.Offset {
				return h.at
			}
		}
	}
	last(awaited(b, s, ""))
	for b.Loop() {
		var output, write []time.Duration
		for range promptRounds {
			sent := time.Since(begin)
			reply := awaited(b, s, p.line)
			back := time.Since(begin)
			if text := reply.Output.String(); !strings.Contains(text, "42") {
				b.Fatalf("the wait ended before the answer: %q", text)
			}
			output, write = append(output, back-last(reply)), append(write, back-sent)
		}
		b.ReportMetric(at(output, 0.5), "p50-ms")
		b.ReportMetric(at(output, 0.99), "p99-ms")
		b.ReportMetric(at(write, 0.5), "p50-write-ms")
		b.ReportMetric(at(write, 0.99), "p99-write-ms")
	}
}

// at returns a quantile in milliseconds.
func at(d []time.Duration, q float64) float64 {
	d = slices.Sorted(slices.Values(d))
	return float64(d[min(int(q*float64(len(d))), len(d)-1)].Microseconds()) / 1000
}

// idleSessions is how many sessions BenchmarkIdleSessions has alive.
const idleSessions = 256

// idleEnv makes BenchmarkIdleSessions measure in this process and write what it saw into
// the file that it names. Each measurement has a process of its own, because memory that
// other benchmarks have left free would hide what sessions take.
const idleEnv = "SALLYPORT_BENCH_IDLE"

// BenchmarkIdleSessions guards: each of 256 idle sessions on a terminal costs at most
// 40 KiB of this process's resident memory, and no thread. The memory is what the
// process has more than before, after its garbage went back to the system; the first
// sessions, which bring up what all share, do not count.
func BenchmarkIdleSessions(b *testing.B) {
	testenv.NeedUserNS(b)
	if name := os.Getenv(idleEnv); name != "" {
		measureIdle(b, name)
		return
	}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		name := filepath.Join(b.TempDir(), "seen")
		cmd := exec.Command(self, "-test.run", "^$", "-test.bench", "^BenchmarkIdleSessions$",
			"-test.benchtime", "1x")
		cmd.Env = append(os.Environ(), idleEnv+"="+name)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		var seen map[string]float64
		if err := json.Unmarshal(text, &seen); err != nil {
			b.Fatal(err)
		}
		for unit, n := range seen {
			b.ReportMetric(n, unit)
		}
	}
}

// measureIdle is BenchmarkIdleSessions in the process that has the sessions.
func measureIdle(b *testing.B, name string) {
	cat := testenv.NeedProgram(b, "cat")
	ws := workspace(b)
	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite(ws), MaxSessions: 2 * idleSessions}
	defer r.Close()
	var sessions []*sallyport.Session
	for range 16 {
		sessions = append(sessions, idle(b, r, ws, cat))
	}
	before := resident(b)
	for range idleSessions {
		sessions = append(sessions, idle(b, r, ws, cat))
	}
	after := resident(b)
	closed(b, r, sessions)
	text, err := json.Marshal(map[string]float64{
		"KiB-each":        (after.rss - before.rss) / idleSessions,
		"heap-KiB-each":   (after.heap - before.heap) / idleSessions,
		"stack-KiB-each":  (after.stacks - before.stacks) / idleSessions,
		"goroutines-each": (after.goroutines - before.goroutines) / idleSessions,
		"more-threads":    after.threads - before.threads,
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(name, text, 0o600); err != nil {
		b.Fatal(err)
	}
}

// A footprint is what this process holds at a moment.
type footprint struct {
	rss, threads float64 // KiB and a count, as the kernel says
	heap, stacks float64 // KiB of living objects, and of the goroutines' stacks
	goroutines   float64
}

// resident gives garbage back to the system and looks at what is left.
func resident(tb testing.TB) footprint {
	tb.Helper()
	// Each time collects what finalizers let go before, and halves stacks that are nearly
	// empty.
	for range 4 {
		runtime.GC()
	}
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return footprint{
		rss: status(tb, "VmRSS"), threads: status(tb, "Threads"),
		heap: float64(stats.HeapAlloc) / 1024, stacks: float64(stats.StackInuse) / 1024,
		goroutines: float64(runtime.NumGoroutine()),
	}
}

// status reads a number of /proc/self/status, which gives sizes in KiB.
func status(tb testing.TB, name string) float64 {
	tb.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		tb.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte(name+":"))
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(string(bytes.Fields(rest)[0]), 64)
		if err != nil {
			tb.Fatal(err)
		}
		return n
	}
	tb.Fatal(fmt.Errorf("/proc/self/status has no %s", name))
	return 0
}
