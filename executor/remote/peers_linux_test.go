// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build peers

package remote_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/test/e2e"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// servePeer starts the peer's server, which ends with the test, and returns its URL.
func servePeer(t *testing.T) string {
	t.Helper()
	program := testenv.NeedPeer(t, "codex")
	if found, _ := filepath.Glob(filepath.Join(filepath.Dir(program),
		"../@openai/codex-linux-x64/vendor/*/bin/codex")); len(found) == 1 {
		program = found[0] // the program itself: the script before it would leave it behind
	}
	cmd := exec.Command(program, "exec-server", "--listen", "ws://127.0.0.1:0")
	parent, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp(parent, "codex") // below /tmp its sandbox does not work
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	cmd.Env = append(cmd.Environ(), "CODEX_HOME="+home)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(url)
}

// TestPeer: the contract at the peer's server, as far as its protocol goes.
func TestPeer(t *testing.T) {
	url := servePeer(t)
	e2e.Run(t, e2e.Traits{}, func(t *testing.T) executor.Executor {
		e := remote.New(remote.Options{URL: url})
		closed(t, e)
		return e
	})
}

// TestPeerChaos is TestChaos of one client that talks, at the peer's server. It forgets to finish starts
// of connections that ended.
func TestPeerChaos(t *testing.T) {
	url := servePeer(t)
	c := newChaos(t)
	c.fragile = true
	c.connect = func(ctx context.Context) (wire.Stream, error) { return wire.Dial(ctx, url, "", nil) }
	c.client(t, c.talk, c.talk, c.talk, c.talk, c.talk, c.talk, c.talk, c.talk)
}
