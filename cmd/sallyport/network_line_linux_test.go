// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// offlineScript tries the network several times, waits for its input, and fails.
const offlineScript = "act sendto 192.0.2.1:53; act udp 127.0.0.52:53; act tcp 192.0.2.1:443; read line; exit 3"

// offlineCommand runs offlineScript with flags; closing its input lets it end.
func offlineCommand(t *testing.T, flags ...string) (*exec.Cmd, io.Closer) {
	t.Helper()
	s := newStage(t, placeAct(t))
	ctx, cancel := context.WithTimeout(t.Context(), attackBound)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "sallyport", append(append([]string{"run"}, flags...), "--", "/bin/sh",
		"-c", offlineScript)...)
	cmd.Dir = s.root + "/w"
	cmd.Env = []string{
		"HOME=" + s.root + "/home", "XDG_STATE_HOME=" + s.root + "/state", "GORACE=" + noRaceSleep,
		"PATH=" + s.bin + ":/usr/local/bin:/usr/bin:/bin",
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	return cmd, stdin
}

// TestNetworkLine: the first attempt to use the network is told while the program still runs,
// once, and not again at its end.
func TestNetworkLine(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	cmd, stdin := offlineCommand(t)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	first, err := lines.ReadString('\n') // the program waits for its input meanwhile
	if want := "sallyport: network is off (DNS lookup, act); allow with --net host\n"; first != want {
		t.Errorf("%q, %v, want %q", first, err, want)
	}
	if err := stdin.Close(); err != nil {
		t.Error(err)
	}
	rest, err := io.ReadAll(lines)
	if len(rest) > 0 || err != nil {
		t.Errorf("then came %q, %v", rest, err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 3 {
		t.Error(err)
	}
}

// TestNetworkLineAtTheEnd: a program that soon succeeds without the network has no line, and one
// that fails has it once.
func TestNetworkLineAtTheEnd(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for code, want := range []string{"",
		"sallyport: network is off (DNS lookup, act); allow with --net host\n"} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			cmd, _ := offlineCommand(t)
			cmd.Args[len(cmd.Args)-1] = "act udp 127.0.0.52:53; exit " + strconv.Itoa(code)
			var said strings.Builder
			cmd.Stderr = &said
			if err := cmd.Run(); cmd.ProcessState.ExitCode() != code || said.String() != want {
				t.Errorf("%v, %q, want %q", err, said.String(), want)
			}
		})
	}
}

// TestNetworkLineNotSaid: there is none with -q, and with --jsonl there are events in its place,
// for the name server of this machine as well.
func TestNetworkLineNotSaid(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, flag := range []string{"-q", "--json", "--jsonl"} {
		t.Run(flag, func(t *testing.T) {
			cmd, stdin := offlineCommand(t, flag)
			var out, said strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = stdin.Close()
			if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 3 {
				t.Error(err)
			}
			if said.Len() > 0 {
				t.Errorf("stderr has %q", said.String())
			}
			if flag == "--jsonl" && strings.Count(out.String(), `"type":"denied"`) != 3 {
				t.Errorf("not three denials: %s", out.String())
			}
			if server := `"addr":"127.0.0.52:53","call":"","errno":"ECONNREFUSED"`; flag != "-q" &&
				!strings.Contains(out.String(), server) {
				t.Errorf("%s lacks %s", out.String(), server)
			}
		})
	}
}
