// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// attackBound is the time that an attack takes at most, with what the machine is
// slow at.
const attackBound = time.Minute

// attackTries is how often an attack is tried where it can win: it races, and a busy
// machine may not let it.
const attackTries = 10

// TestAttacks lets the programs of testdata/attacks race against the walls, in one way each where
// tests are to be quick. Without a sandbox those that can win do, so they are attacks; inside none
// does.
func TestAttacks(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	bin := buildAttacks(t)
	tried := map[string]bool{}
	for _, a := range []struct {
		name string
		args string
		wins bool // without a sandbox
	}{
		{"path_rewrite", "creat @W@/aaaaa @OUT@/won", true},
		{"path_rewrite", "mkdir @W@/aaaaa @OUT@/won", true},
		{"path_rewrite", "creat @W@/sub/aaaaaaaaaa @W@/.git/hooks/won", true},
		{"link_swap", "@W@ @OUT@", true},
		{"cwd_swap", "@W@ @OUT@ won", true},
		{"fd_reuse", "@W@ @OUT@", true},
		{"fd_reuse", "@W@ @OUT@ @W@/own.sock @OUT@/live.sock", true},
		{"sockaddr_rewrite", "@W@/own.sock @OUT@/live.sock", true},
		{"datagram_swap", "memory @W@/own.d @OUT@/live.d", true},
		{"datagram_swap", "descriptor @W@/own.d @OUT@/live.d", true},
		{"datagram_swap", "descriptor @W@/own.d @W@/live.d", true},
		{"datagram_swap", "flags @W@/own.d @W@/live.d", true},
		{"flood", "@W@", false},
		{"backlog", "@W@", false},
		{"linger", "", false},
	} {
		if tried[a.name] && !testenv.IsLong() {
			continue
		}
		tried[a.name] = true
		t.Run(a.name+" "+a.args, func(t *testing.T) {
			if testenv.IsLong() {
				won := false
				for try := 0; try == 0 || a.wins && !won && try < attackTries; try++ {
					won = attackStage(t, bin).attack(t, a.name, a.args, "-s", "full-access")
				}
				if won != a.wins {
					t.Errorf("without a sandbox it wins: %v, want %v", won, a.wins)
				}
			}
			s := attackStage(t, bin)
			before := s.guarded(t)
			if s.attack(t, a.name, a.args) || s.guarded(t) != before {
				t.Error("it wins")
			}
		})
	}
}

// attackStage is a stage with a server outside that tells a secret.
func attackStage(t *testing.T, bin string) *stage {
	t.Helper()
	s := newStage(t, bin)
	serve(t, s.listener, "secret")
	for _, c := range s.packets {
		serveDatagrams(t, c, "secret")
	}
	return s
}

// serveDatagrams answers every message to a socket with a word.
func serveDatagrams(t *testing.T, c net.PacketConn, word string) {
	t.Helper()
	done := make(chan struct{})
	t.Cleanup(func() { c.Close(); <-done })
	go func() {
		defer close(done)
		for {
			_, from, err := c.ReadFrom(make([]byte, 16))
			if err != nil {
				return
			}
			if from != nil {
				_, _ = c.WriteTo([]byte(word), from)
			}
		}
	}()
}

// serve answers every connection with a word, until the listener is closed.
func serve(t *testing.T, l net.Listener, word string) {
	t.Helper()
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, word)
			c.Close()
		}
	}()
}

// attack runs one attack and reports whether it won.
func (s *stage) attack(t *testing.T, name, args string, flags ...string) bool {
	t.Helper()
	begin := time.Now()
	r := s.play(t, &deniedCase{keys: map[string]string{}, script: s.bin + "/" + name + " " + args}, flags...)
	took := time.Since(begin)
	t.Logf("%v: %s", took, strings.TrimSpace(r.Output))
	word, _, _ := strings.Cut(strings.TrimSpace(r.Output), " ")
	if r.ExitCode != 0 || took > attackBound || word != "WIN" && word != "LOST" {
		t.Errorf("exit code %d after %v, output %q", r.ExitCode, took, r.Output)
	}
	return strings.Contains(r.Output, "WIN")
}

// buildAttacks compiles the attacks and returns the directory that they are in.
func buildAttacks(t *testing.T) string {
	t.Helper()
	cc := testenv.NeedProgram(t, "cc")
	dir := workRoot(t)
	sources, err := filepath.Glob("testdata/attacks/*.c")
	if err != nil || len(sources) == 0 {
		t.Fatalf("%d sources, %v", len(sources), err)
	}
	bound := "0.4" // seconds of trying; what is won at all is mostly won by then
	if testenv.IsLong() {
		bound = "2.0"
	}
	for _, source := range sources {
		program := filepath.Join(dir, strings.TrimSuffix(filepath.Base(source), ".c"))
		cmd := exec.CommandContext(t.Context(), cc, "-O1", "-static", "-pthread", "-DBOUND="+bound, "-o",
			program, source)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", source, err, out)
		}
	}
	return dir
}
