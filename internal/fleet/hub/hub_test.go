// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestOpen: without tenants everybody on this machine is let in, and things are stored.
func TestOpen(t *testing.T) {
	h := start(t, Options{Store: newStore(t)})
	if !strings.HasPrefix(h.URL(), "nats://127.0.0.1:") {
		t.Errorf("%s", h.URL())
	}
	c := mustDial(t, h.URL(), "")
	answer := c.call("_INBOX.x", "$JS.API.STREAM.CREATE.KV_nodes", nodesBucket)
	if strings.Contains(answer, `"error"`) {
		t.Fatal(answer)
	}
	if err := c.put("a", "1"); err != nil || c.get("a") != "1" {
		t.Errorf("%v, %q", err, c.get("a"))
	}
	c.pub("x", "", strings.Repeat("x", maxPayload))
	if _, refused := c.flush(); refused != nil {
		t.Errorf("a message of 1 MiB: %q", refused)
	}
}

// TestStartRefuses: a hub that cannot be as it was asked for does not start, and says why.
func TestStartRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	wide := filepath.Join(t.TempDir(), "wide")
	file := filepath.Join(t.TempDir(), "file")
	link := filepath.Join(t.TempDir(), "link")
	broken := newStore(t)
	if err := errors.Join(os.Mkdir(wide, 0o755), os.Chmod(wide, 0o755), os.WriteFile(file, nil, 0o600),
		os.Symlink(t.TempDir(), link), os.MkdirAll(filepath.Join(broken, keysName), 0o700),
		os.WriteFile(filepath.Join(broken, keysName, fleetName), []byte("{}"), 0o600)); err != nil {
		t.Fatal(err)
	}
	used := newStore(t)
	start(t, Options{Store: used})
	for _, test := range []struct{ name, listen, store, want string }{
		{"an address of other machines", "0.0.0.0:0", newStore(t), "sallyport fleet add-tenant"},
		{"all addresses", "[::]:0", newStore(t), "--insecure"},
		{"a name", "example.com:1", newStore(t), "invalid address example.com:1"},
		{"no port", "127.0.0.1", newStore(t), "invalid address"},
		{"a port that is taken", taken.Addr().String(), newStore(t), "address already in use"},
		{"a store that is served", "127.0.0.1:0", used, ErrRunning.Error()},
		{"a store that others can enter", "127.0.0.1:0", wide, "its mode is 0755"},
		{"a file as the store", "127.0.0.1:0", file, "it is no directory"},
		{"a link as the store", "127.0.0.1:0", link, "it is a symbolic link"},
		{"a store below a file", "127.0.0.1:0", filepath.Join(file, "x"), "cannot use the store"},
		{"a store without keys", "127.0.0.1:0", broken, "restore the file from a copy"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, err := Start(t.Context(), Options{Listen: test.listen, Store: test.store})
			if err == nil {
				t.Fatal("it started", h.URL(), h.Close())
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q in it", err, test.want)
			}
		})
	}
	h := start(t, Options{Listen: "0.0.0.0:0", Store: newStore(t), Insecure: true})
	mustDial(t, h.URL(), "")
	secured := newStore(t)
	tenants(t, secured, "a")
	start(t, Options{Listen: "0.0.0.0:0", Store: secured})
}

// TestEnds: a hub ends with its context, closes what it has, and can be started again at once.
func TestEnds(t *testing.T) {
	store := newStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	h, err := Start(ctx, Options{Listen: "127.0.0.1:0", Store: store})
	if err != nil {
		t.Fatal(err)
	}
	c := mustDial(t, h.URL(), "")
	cancel()
	if err := h.Wait(); err != nil {
		t.Error(err)
	}
	c.closed()
	at := strings.TrimPrefix(h.URL(), "nats://")
	if again := start(t, Options{Store: store, Listen: at}); again.URL() != h.URL() {
		t.Errorf("%s, then %s", h.URL(), again.URL())
	}
}

// TestFirstTenant: a hub that is open asks for credentials when it gets its first tenant, at the same
// address, and cuts who has none.
func TestFirstTenant(t *testing.T) {
	for _, first := range []string{"a", "n@"} {
		t.Run(first, func(t *testing.T) {
			store := newStore(t)
			h := start(t, Options{Store: store})
			url := h.URL()
			before := mustDial(t, url, "")
			creds := tenants(t, store, first)
			before.closed()
			if _, err := dial(t, url, ""); err == nil {
				t.Error("who has no credentials is let in")
			}
			for _, path := range creds {
				mustDial(t, url, path)
			}
			if url != h.URL() {
				t.Errorf("%s, then %s", url, h.URL())
			}
		})
	}
}

// TestAdd: the files of a new tenant have the right modes, none is written over, and names are unique.
func TestAdd(t *testing.T) {
	store := newStore(t)
	creds := tenants(t, store, "a", "n@", "m@a")
	for path, want := range map[string]os.FileMode{store: 0o700, filepath.Join(store, credsName): 0o700,
		filepath.Join(store, keysName): 0o700, creds["a"]: 0o600, creds["n"]: 0o600, creds["m"]: 0o600,
		filepath.Join(store, keysName, fleetName): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v, want %04o", path, info.Mode(), err, want)
		}
	}
	if creds["a"] != filepath.Join(store, "creds", "a.creds") {
		t.Errorf("%s", creds["a"])
	}
	old := filepath.Join(store, credsPath("old"))
	if err := os.WriteFile(old, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(store, keysName, fleetName))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, tenant, want string }{
		{"a", "", "there is a tenant or node with this name"},
		{"n", "a", "there is a tenant or node with this name"},
		{"m", "", "there is a tenant or node with this name"},
		{"x", "none", "there is no such tenant"},
		{"x", "n", "there is no such tenant"},
		{"old", "", "is not overwritten"},
		{"", "", "a name has 1 to 64"},
		{"a.b", "", "a name has 1 to 64"},
		{"../a", "", "a name has 1 to 64"},
		{"*", "", "a name has 1 to 64"},
		{">", "", "a name has 1 to 64"},
		{"a b", "", "a name has 1 to 64"},
		{"a\n", "", "a name has 1 to 64"},
		{"ä", "", "a name has 1 to 64"},
		{strings.Repeat("x", 65), "", "a name has 1 to 64"},
	} {
		t.Run(test.name+" "+test.tenant, func(t *testing.T) {
			_, err := AddNode(t.Context(), store, test.name, test.tenant)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if test.tenant == "" {
				if _, err := AddTenant(t.Context(), store, test.name); err == nil ||
					!strings.Contains(err.Error(), test.want) {
					t.Errorf("tenant: %v, want %q", err, test.want)
				}
			}
		})
	}
	after, err := os.ReadFile(filepath.Join(store, keysName, fleetName))
	if err != nil || string(after) != string(before) {
		t.Errorf("the keys have changed: %v", err)
	}
	if text, err := os.ReadFile(old); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := AddTenant(t.Context(), store, strings.Repeat("x", 64)); err != nil {
		t.Error(err)
	}
}

// TestAddAtOnce: commands that change the store at once all succeed, and the hub lets in every user.
func TestAddAtOnce(t *testing.T) {
	store := newStore(t)
	h := start(t, Options{Store: store})
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		all.Go(func() {
			path, err := AddTenant(t.Context(), store, name)
			if err != nil {
				t.Error(name, err)
				return
			}
			if _, err := dial(t, h.URL(), path); err != nil {
				t.Error(name, err)
			}
		})
	}
	all.Wait()
}

// TestRemove: a removal closes the connections of the user at once, removes the credentials, and no other
// user notices.
func TestRemove(t *testing.T) {
	store := newStore(t)
	h := start(t, Options{Store: store})
	creds := tenants(t, store, "a", "b", "n@", "m@a", "o@b", "p@")
	var live = map[string]*client{}
	saved := map[string]string{}
	for name, path := range creds {
		live[name] = mustDial(t, h.URL(), path)
		text, err := os.ReadFile(path)
		saved[name] = filepath.Join(t.TempDir(), name)
		if err := errors.Join(err, os.WriteFile(saved[name], text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := live["a"].put("x", "1"); err != nil {
		t.Fatal(err)
	}
	gone := func(names ...string) {
		t.Helper()
		for _, name := range names {
			live[name].closed()
			if _, err := dial(t, h.URL(), saved[name]); err == nil {
				t.Errorf("%s is let in", name)
			}
			if _, err := os.Stat(creds[name]); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: %v", creds[name], err)
			}
			delete(live, name)
		}
		for _, c := range live {
			c.flush()
		}
	}
	if err := RemoveNode(t.Context(), store, "o"); err != nil {
		t.Fatal(err)
	}
	gone("o")
	if err := RemoveNode(t.Context(), store, "n"); err != nil {
		t.Fatal(err)
	}
	gone("n")
	if err := RemoveTenant(t.Context(), store, "a"); err != nil {
		t.Fatal(err)
	}
	gone("a", "m")
	left, err := filepath.Glob(filepath.Join(store, dataName, "*"))
	if err != nil || len(left) != 2 { // NODES, b
		t.Errorf("%q, %v", left, err)
	}
	for _, test := range []struct {
		name string
		err  error
	}{{"a tenant as a node", RemoveNode(t.Context(), store, "b")},
		{"a node as a tenant", RemoveTenant(t.Context(), store, "p")},
		{"a removed one", RemoveTenant(t.Context(), store, "a")},
		{"a path", RemoveNode(t.Context(), store, "../x")}} {
		if test.err == nil || !strings.Contains(test.err.Error(), "there is no such") {
			t.Errorf("%s: %v", test.name, test.err)
		}
	}
	again := tenants(t, store, "a", "n@")
	if c := mustDial(t, h.URL(), again["a"]); c.get("x") != "" {
		t.Error("a new tenant has what the old one of its name has stored")
	}
	if err := errors.Join(RemoveTenant(t.Context(), store, "a"), RemoveTenant(t.Context(), store, "b"),
		RemoveNode(t.Context(), store, "n"), RemoveNode(t.Context(), store, "p")); err != nil {
		t.Fatal(err)
	}
	if _, err := dial(t, h.URL(), ""); err == nil {
		t.Error("the last removal has opened the hub")
	}
}

// TestReadCreds: a file of credentials says whom it is for.
func TestReadCreds(t *testing.T) {
	store := newStore(t)
	creds := tenants(t, store, "a", "m@a", "n@")
	tenant, shared := accountOf(t, store, "a"), accountOf(t, store, sharedAccount)
	for name, want := range map[string]User{"a": {Name: "a", Account: tenant},
		"m": {Name: "m", Node: true, Account: tenant},
		"n": {Name: "n", Node: true, Shared: true, Account: shared}} {
		if got, err := ReadCreds(creds[name]); err != nil || got != want {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
	bad := filepath.Join(t.TempDir(), "bad")
	for _, text := range []string{"", "x",
		"-----BEGIN NATS USER JWT-----\nx.y.z\n------END NATS USER JWT------\n",
		strings.Repeat("x", 1<<17)} {
		if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadCreds(bad); err == nil {
			t.Errorf("%.20q: %+v", text, got)
		}
	}
	_, err := ReadCreds(filepath.Join(t.TempDir(), "none"))
	if err == nil || !strings.Contains(err.Error(), "none") {
		t.Error(err)
	}
	if err := os.Chmod(creds["a"], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadCreds(creds["a"]); err == nil || !strings.Contains(err.Error(), "everybody") {
		t.Errorf("a file that everybody reads: %v", err)
	}
}
