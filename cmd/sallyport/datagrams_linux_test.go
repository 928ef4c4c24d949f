// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestDatagrams: what programs do with datagram sockets and sendmsg(2) gives the same inside and
// outside.
func TestDatagrams(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	python := testenv.NeedProgram(t, "python3")
	program, err := os.ReadFile(filepath.Join("testdata", "datagrams.py"))
	must(t, err)
	output := func(args ...string) string {
		root := workRoot(t)
		must(t, os.WriteFile(root+"/program.py", program, 0o644))
		must(t, os.Mkdir(root+"/w", 0o755))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, args[0], append(args[1:], python, root+"/program.py")...)
		cmd.Dir = root + "/w"
		cmd.Env = append(testenv.Environ(), "XDG_STATE_HOME="+root+"/state", "GORACE="+noRaceSleep)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil || stderr.Len() > 0 {
			t.Errorf("%v: %v, %s", args, err, &stderr)
		}
		return string(out)
	}
	if diff := cmp.Diff(output("env"), output("sallyport", "run", "--")); diff != "" {
		t.Errorf("outside and inside:\n%s", diff)
	}
}

// TestManagedDatagrams: programs that send datagrams by SOCKS5 reach the addresses that entries name,
// one association after the other, and no others.
func TestManagedDatagrams(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	s := newManagedStage(t)
	echo := func() string {
		c, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		go func() {
			p := make([]byte, 100)
			for {
				n, from, err := c.ReadFrom(p)
				if err != nil {
					return
				}
				_, _ = c.WriteTo(append([]byte("echo of "), p[:n]...), from)
			}
		}()
		return c.LocalAddr().String()
	}
	open, closed := echo(), echo()
	r := s.json(t, "-e", "PATIENT=1", "--allow-host", open, "--", "act", "datagram", open, "datagram", open)
	if want := "\"echo of ping\"\n\"echo of ping\"\n"; r.Output != want {
		t.Errorf("%q, want %q", r.Output, want)
	}
	r = s.json(t, "--allow-host", open, "--", "act", "datagram", closed)
	if r.Output != "\"\"\n" || len(r.NetworkDenials) != 1 || r.NetworkDenials[0].Protocol != "socks5_udp" ||
		r.NetworkDenials[0].Reason != "not_allowed_local" {
		t.Errorf("%q, %+v", r.Output, r.NetworkDenials)
	}
}
