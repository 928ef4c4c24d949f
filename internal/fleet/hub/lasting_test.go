// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// TestRestart: a hub that was closed and is started again has its tenants and what they stored; what changed
// meanwhile counts.
func TestRestart(t *testing.T) {
	store := newStore(t)
	creds := tenants(t, store, "a", "m@a", "n@", "o@")
	h := start(t, Options{Store: store})
	if err := mustDial(t, h.URL(), creds["a"]).put("x", "1"); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	removed, err := os.ReadFile(creds["o"])
	if err != nil {
		t.Fatal(err)
	}
	if err := RemoveNode(t.Context(), store, "o"); err != nil {
		t.Fatal(err)
	}
	later := tenants(t, store, "b", "p@b")
	h = start(t, Options{Store: store})
	for _, path := range []string{creds["m"], creds["n"], later["b"], later["p"]} {
		mustDial(t, h.URL(), path)
	}
	if got := mustDial(t, h.URL(), creds["a"]).get("x"); got != "1" {
		t.Errorf("%q", got)
	}
	if err := os.WriteFile(creds["o"], removed, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dial(t, h.URL(), creds["o"]); err == nil {
		t.Error("a node that was removed while there was no hub is let in")
	}
	if _, err := dial(t, h.URL(), ""); err == nil {
		t.Error("who has no credentials is let in")
	}
}

// hubProcess starts a hub as a process, and returns its URL.
func hubProcess(t *testing.T, store string) (*exec.Cmd, string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), serveVar+"="+store)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "nats://") {
		t.Fatal(line, err)
	}
	return cmd, strings.TrimSpace(line)
}

// TestKilled: a hub that was killed has lost nothing that it acknowledged, also while it was writing;
// commands work before and after the next one starts.
func TestKilled(t *testing.T) {
	store := newStore(t)
	creds := tenants(t, store, "a")
	cmd, url := hubProcess(t, store)
	tenants(t, store, "b") // another process is told
	c := mustDial(t, url, creds["a"])
	const writes = 300
	for i := range writes {
		if err := c.put(fmt.Sprint("k", i%100), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range writes {
		c.pub("$KV.nodes.z", "", fmt.Sprint(i)) // some of these are on their way
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if err := RemoveTenant(t.Context(), store, "b"); err != nil { // the socket is left
		t.Fatal(err)
	}
	later := tenants(t, store, "c")
	h := start(t, Options{Store: store})
	mustDial(t, h.URL(), later["c"])
	c = mustDial(t, h.URL(), creds["a"])
	for i := range 100 {
		if got, want := c.get(fmt.Sprint("k", i)), fmt.Sprint(200+i); got != want {
			t.Errorf("k%d is %q, want %q", i, got, want)
		}
	}
}

// TestSilentHub: a command ends with an error when the hub does not answer; the next hub lets its user in.
func TestSilentHub(t *testing.T) {
	store := newStore(t)
	tenants(t, store, "a")
	s, err := openStore(store)
	if err != nil {
		t.Fatal(err)
	}
	h := &Hub{store: s}
	defer s.close()
	if h.socket, err = listenSilently(s.socket()); err != nil {
		t.Fatal(err)
	}
	defer h.socket.Close()
	s.unlock()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		if c, err := h.socket.Accept(); err == nil {
			defer c.Close()
			_, _ = bufio.NewReader(c).ReadString('\n')
			cancel() // the person has waited for long
			<-ctx.Done()
		}
	}()
	if _, err := AddTenant(ctx, store, "b"); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("%v", err)
	}
	h.socket.Close()
	again := start(t, Options{Store: store})
	mustDial(t, again.URL(), filepath.Join(store, credsPath("b")))
}

// forged returns the path of credentials of a user that is signed by an account key.
func forged(t *testing.T, accountSeed string, change func(*jwt.UserClaims)) string {
	t.Helper()
	signer, id, err := keyOf(accountSeed)
	if err != nil {
		t.Fatal(err)
	}
	user, seed, err := newKey(nkeys.PrefixByteUser)
	if err != nil {
		t.Fatal(err)
	}
	key, err := user.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	c := jwt.NewUserClaims(key)
	c.IssuerAccount = id
	change(c)
	token, err := c.Encode(signer)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.FormatUserConfig(token, []byte(seed))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "creds")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCredentialsRefused: credentials of another hub, expired ones, ones of an unknown key and ones
// whose secret key is another one are not let in.
func TestCredentialsRefused(t *testing.T) {
	store := newStore(t)
	h := start(t, Options{Store: store})
	creds := tenants(t, store, "a", "b")
	other := tenants(t, newStore(t), "a")
	s, err := openStore(store)
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := s.load()
	s.close()
	if err != nil {
		t.Fatal(err)
	}
	_, unknown, err := newKey(nkeys.PrefixByteAccount)
	if err != nil {
		t.Fatal(err)
	}
	a, err := os.ReadFile(creds["a"])
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(creds["b"])
	if err != nil {
		t.Fatal(err)
	}
	const cut = "-----BEGIN USER NKEY SEED-----"
	mixed := filepath.Join(t.TempDir(), "mixed")
	both := strings.Split(string(a), cut)[0] + cut + strings.Split(string(b), cut)[1]
	if err := os.WriteFile(mixed, []byte(both), 0o600); err != nil {
		t.Fatal(err)
	}
	nothing := func(*jwt.UserClaims) {}
	expired := func(c *jwt.UserClaims) { c.Expires = time.Now().Add(-time.Minute).Unix() }
	for _, test := range []struct {
		name, creds string
		ok          bool
	}{
		{"of this hub", creds["a"], true},
		// So that those below could be let in.
		{"signed by the tenant's key", forged(t, f.Tenants[0].Seed, nothing), true},
		{"of another hub", other["a"], false},
		{"expired", forged(t, f.Tenants[0].Seed, expired), false},
		{"signed by an unknown key", forged(t, unknown, nothing), false},
		{"with the secret of another", mixed, false},
		{"none", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := dial(t, h.URL(), test.creds); (err == nil) != test.ok {
				t.Errorf("%v, let in: want %v", err, test.ok)
			}
		})
	}
}

// TestFullStore: where there is no more room, a write is an error at once, what is there can be read, and a
// tenant that fills its part leaves that of others.
func TestFullStore(t *testing.T) {
	big := strings.Repeat("x", 1<<19)
	fill := func(t *testing.T, c *client, most int) {
		t.Helper()
		if err := c.put("first", "1"); err != nil {
			t.Fatal(err)
		}
		for i := range most {
			if err := c.put(fmt.Sprint("k", i), big); err != nil {
				if got := c.get("first"); got != "1" {
					t.Errorf("%q after %v", got, err)
				}
				return
			}
		}
		t.Error("it is never full")
	}
	t.Run("open", func(t *testing.T) {
		h := start(t, Options{Store: newStore(t), MaxStore: 4 << 20})
		c := mustDial(t, h.URL(), "")
		c.call("_INBOX.x", "$JS.API.STREAM.CREATE.KV_nodes", nodesBucket)
		fill(t, c, 20)
	})
	t.Run("tenants", func(t *testing.T) {
		store := newStore(t)
		h := start(t, Options{Store: store})
		creds := tenants(t, store, "a", "b")
		fill(t, mustDial(t, h.URL(), creds["a"]), maxStored/len(big)+1)
		if err := mustDial(t, h.URL(), creds["b"]).put("x", "1"); err != nil {
			t.Error(err)
		}
	})
}

// TestOtherServer: a server that runs elsewhere takes the accounts of a store.
func TestOtherServer(t *testing.T) {
	store := newStore(t)
	creds := tenants(t, store, "a", "m@a", "n@")
	config := filepath.Join(store, serverName)
	so, err := server.ProcessConfigFile(config)
	if err != nil {
		t.Fatal(err)
	}
	so.Host, so.Port, so.NoSigs, so.NoLog = "127.0.0.1", -1, true, true
	so.JetStream, so.StoreDir = true, t.TempDir()
	s, err := server.NewServer(so)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(s.WaitForShutdown)
	t.Cleanup(s.Shutdown)
	for _, path := range creds {
		mustDial(t, s.ClientURL(), path)
	}
	if _, err := dial(t, s.ClientURL(), ""); err == nil {
		t.Error("who has no credentials is let in")
	}
	text, err := os.ReadFile(config)
	if err != nil || strings.Contains(string(text), `"SA`) || strings.Contains(string(text), `"SO`) {
		t.Errorf("there is a seed in it, or %v", err)
	}
}

// listenSilently listens at a socket as a hub that does not answer.
func listenSilently(path string) (net.Listener, error) { return net.Listen("unix", path) }
