// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// accountOf returns the public key of a tenant.
func accountOf(t *testing.T, store, name string) string {
	t.Helper()
	s, err := openStore(store)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	f, _, err := s.load()
	if err != nil {
		t.Fatal(err)
	}
	of := f.Shared
	if name != sharedAccount {
		of = f.Tenants[f.tenant(name)]
	}
	_, id, err := keyOf(of.Seed)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestSubjects: each message of the table arrives where it must, under the name that it has there, and at no
// other place.
func TestSubjects(t *testing.T) {
	store := newStore(t)
	h := start(t, Options{Store: store})
	creds := tenants(t, store, "a", "b", "m@a", "o@b", "n@", "p@")
	id := accountOf(t, store, "a")
	all := map[string]*client{}
	for name, path := range creds {
		all[name] = mustDial(t, h.URL(), path)
	}
	subscribe := func(name string, subjects ...string) {
		for _, s := range subjects {
			all[name].sub(s)
		}
	}
	for _, tenant := range []string{"a", "b"} {
		subscribe(tenant, "sp.>", id+".>")
	}
	for _, name := range []string{"m", "o"} {
		subscribe(name, "sp.own.up."+name+".*", "sp.own.ask.*")
	}
	for _, name := range []string{"n", "p"} {
		subscribe(name, "sp.all.*.up."+name+".*", "sp.all.*.ask.*")
	}
	for _, c := range all {
		if _, refused := c.flush(); refused != nil {
			t.Fatal(refused)
		}
	}
	for _, test := range []struct {
		from, subject string
		want          []string // NAME SUBJECT, sorted
	}{
		{"a", "sp.own.up.m.C", []string{"a sp.own.up.m.C", "m sp.own.up.m.C"}},
		{"a", "sp.own.up.o.C", []string{"a sp.own.up.o.C"}},
		{"a", "sp.own.ask.C", []string{"a sp.own.ask.C", "m sp.own.ask.C"}},
		{"a", "sp.all.up.n.C", []string{"a sp.all.up.n.C", "n sp.all." + id + ".up.n.C"}},
		{"a", "sp.all.ask.C",
			[]string{"a sp.all.ask.C", "n sp.all." + id + ".ask.C", "p sp.all." + id + ".ask.C"}},
		{"m", "sp.own.down.C.m", []string{"a sp.own.down.C.m"}},
		{"m", "sp.own.life.m", []string{"a sp.own.life.m"}},
		{"n", "sp.all." + id + ".down.C.n", []string{"a sp.all." + id + ".down.C.n"}},
		{"n", "sp.all.life.n", []string{"a sp.all.life.n", "b sp.all.life.n"}},
		// What a tenant names like another one's stays with it.
		{"b", "sp.all." + id + ".up.n.C", []string{"b sp.all." + id + ".up.n.C"}},
		{"b", "sp.all." + id + ".down.C.n", []string{"b sp.all." + id + ".down.C.n"}},
		{"b", "sp.all.down.C.n", []string{"b sp.all.down.C.n"}},
		{"b", "sp.all.life.n", []string{"b sp.all.life.n"}},
		{"b", "sp.own.life.m", []string{"b sp.own.life.m"}},
	} {
		t.Run(test.from+" "+strings.ReplaceAll(test.subject, id, "ID"), func(t *testing.T) {
			all[test.from].pub(test.subject, "", "x")
			if _, refused := all[test.from].flush(); refused != nil {
				t.Fatal(refused)
			}
			var got []string
			for name, c := range all {
				messages, _ := c.flush()
				for _, m := range messages {
					got = append(got, name+" "+m.subject)
				}
			}
			// A publisher hears itself only where its flush came first.
			got = append(got, test.from+" "+test.subject)
			slices.Sort(got)
			want := append(slices.Clone(test.want), test.from+" "+test.subject)
			slices.Sort(want)
			if got, want = slices.Compact(got), slices.Compact(want); !slices.Equal(got, want) {
				t.Errorf("%q\nwant %q", got, want)
			}
		})
	}
}

// TestEveryTenantAsks: what a tenant asks reaches each of many shared nodes, large messages too.
func TestEveryTenantAsks(t *testing.T) {
	store := newStore(t)
	h := start(t, Options{Store: store})
	creds := tenants(t, store, "a", "n@", "p@", "q@")
	var nodes []*client
	for _, name := range []string{"n", "p", "q"} {
		c := mustDial(t, h.URL(), creds[name])
		c.sub("sp.all.*.ask.*")
		c.flush()
		nodes = append(nodes, c)
	}
	a := mustDial(t, h.URL(), creds["a"])
	for range 100 {
		a.pub("sp.all.ask.C", "", strings.Repeat("x", 1000))
	}
	a.flush()
	for _, c := range nodes {
		if got, _ := c.flush(); len(got) != 100 || len(got[0].body) != 1000 {
			t.Errorf("%d messages, want 100", len(got))
		}
	}
}

// TestNodePermissions: a node publishes and hears only its own, and uses only its key of the bucket.
func TestNodePermissions(t *testing.T) {
	store := newStore(t)
	h := start(t, Options{Store: store})
	creds := tenants(t, store, "a", "m@a", "n@", "b")
	id := accountOf(t, store, "a")
	for _, test := range []struct {
		node         string
		pub, sub     []string // allowed
		nopub, nosub []string
	}{
		{node: "m", pub: []string{"sp.own.down.C.m", "sp.own.life.m", "$KV.nodes.m"},
			sub: []string{"sp.own.up.m.*", "sp.own.up.m.C", "sp.own.ask.*", "sp.own.life.m", "_INBOX.m.>"},
			nopub: []string{"sp.own.down.C.x", "sp.own.life.x", "sp.own.up.m.C", "sp.own.ask.C",
				"sp.all.up.n.C", "sp.all.ask.C", "sp.all.life.m", "sp.all.down.C.m", "$KV.nodes.x",
				"$KV.sessions.m", "x"}},
		{node: "n", pub: []string{"sp.all." + id + ".down.C.n", "sp.all.life.n", "$KV.nodes.n",
			"sp.all.NODES.up.n.C"},
			sub: []string{"sp.all.*.up.n.*", "sp.all." + id + ".up.n.C", "sp.all.*.ask.*", "sp.all.life.n",
				"sp.all.NODES.down.*.n", "_INBOX.n.>"},
			nopub: []string{"sp.all." + id + ".down.C.x", "sp.all.life.x", "sp.all." + id + ".up.n.C",
				"sp.all." + id + ".ask.C", "sp.all.NODES.up.x.C", "sp.all.NODES.ask.C", "sp.own.life.n",
				"$KV.nodes.x", "x"}},
	} {
		t.Run(test.node, func(t *testing.T) {
			c := mustDial(t, h.URL(), creds[test.node])
			nopub := append(test.nopub, "$JS.API.STREAM.DELETE.KV_nodes", "$JS.API.STREAM.UPDATE.KV_nodes",
				"$JS.API.STREAM.PURGE.KV_nodes", "$JS.API.STREAM.MSG.GET.KV_nodes", "$JS.API.STREAM.CREATE.x",
				"$JS.API.STREAM.NAMES", "$JS.API.CONSUMER.CREATE.KV_nodes", "$JS.API.DIRECT.GET.KV_nodes",
				"$JS.API.DIRECT.GET.KV_nodes.$KV.nodes.x", "$SYS.REQ.CLAIMS.UPDATE", "_INBOX.x.y")
			nosub := append(test.nosub, ">", "*", "sp.>", "sp.*.>", "sp.own.>", "sp.own.up.*.*",
				"sp.own.up.x.*",
				"sp.own.down.>", "sp.own.life.*", "sp.all.>", "sp.all.*.up.*.*", "sp.all.*.up.x.*",
				"sp.all.*.down.>", "sp.all.*.down.*.n", "sp.all.NODES.down.*.x", "sp.all.life.*",
				"sp.all.*.>", "_INBOX.>", "_INBOX.x.>", "$KV.>", "$JS.>", "$SYS.>")
			check := func(subjects []string, do func(string), allowed bool) {
				t.Helper()
				for _, s := range subjects {
					do(s)
					if _, refused := c.flush(); (refused == nil) != allowed {
						t.Errorf("%s: %q, allowed: %v", s, refused, allowed)
					}
				}
			}
			pub := func(s string) { c.pub(s, "", "x") }
			check(test.pub, pub, true)
			check(nopub, pub, false)
			check(test.sub, c.sub, true)
			check(nosub, c.sub, false)
		})
	}
}

// TestNodeBucket: a node reads and writes its key of the bucket that the hub has made, and cannot make it
// with rules of its own.
func TestNodeBucket(t *testing.T) {
	store := newStore(t)
	h := start(t, Options{Store: store})
	creds := tenants(t, store, "a", "m@a", "n@")
	for _, name := range []string{"m", "n"} {
		c := mustDial(t, h.URL(), creds[name])
		inbox := "_INBOX." + name
		for range 2 { // also when it is there
			if answer := c.call(inbox, "$KV.nodes."+name, "1"); !strings.Contains(answer, `"seq":`) {
				t.Error(answer)
			}
			answer := c.call(inbox, "$JS.API.STREAM.INFO.KV_nodes", "")
			if !strings.Contains(answer, `"KV_nodes"`) {
				t.Error(answer)
			}
			answer = c.call(inbox, "$JS.API.STREAM.CREATE.KV_nodes", nodesBucket)
			if strings.Contains(answer, `"error"`) {
				t.Error(answer)
			}
		}
		if answer := c.call(inbox, "$JS.API.DIRECT.GET.KV_nodes.$KV.nodes."+name, ""); answer != "1" {
			t.Errorf("%q", answer)
		}
		for _, rule := range []string{`"republish":{"src":"$KV.nodes.>","dest":"sp.own.up.m.>"}`,
			`"description":"x"`} {
			evil := strings.Replace(nodesBucket, `"storage"`, rule+`,"storage"`, 1)
			answer := c.call(inbox, "$JS.API.STREAM.CREATE.KV_nodes", evil)
			if !strings.Contains(answer, "already in use") {
				t.Errorf("%s: %s", rule, answer)
			}
		}
	}
}

// TestStreamsOfTenants: a tenant has streams of its own, in bounds, and does not see those of others.
func TestStreamsOfTenants(t *testing.T) {
	store := newStore(t)
	h := start(t, Options{Store: store})
	creds := tenants(t, store, "a", "b")
	a, b := mustDial(t, h.URL(), creds["a"]), mustDial(t, h.URL(), creds["b"])
	stream := func(c *client, name, more string) string {
		return c.call("_INBOX.x", "$JS.API.STREAM.CREATE."+name,
			fmt.Sprintf(`{"name":%q,"subjects":["%s.>"],"storage":"file"%s}`, name, name, more))
	}
	if answer := stream(a, "mine", ""); strings.Contains(answer, `"error"`) {
		t.Fatal(answer)
	}
	if err := a.put("x", "secret"); err != nil {
		t.Fatal(err)
	}
	if got := b.get("x"); got != "" {
		t.Errorf("b reads %q", got)
	}
	if answer := b.call("_INBOX.x", "$JS.API.STREAM.NAMES", ""); strings.Contains(answer, "mine") {
		t.Error(answer)
	}
	id := accountOf(t, store, "a")
	for name, answer := range map[string]string{
		"delete": b.call("_INBOX.x", "$JS.API.STREAM.DELETE.mine", ""),
		"memory": stream(b, "memory", `,"discard":"new","max_bytes":300000000`),
		"mirror": b.call("_INBOX.x", "$JS.API.STREAM.CREATE.m",
			`{"name":"m","storage":"file","mirror":{"name":"mine","external":{"api":"$JS.`+id+`.API"}}}`),
	} {
		if name != "mirror" && !strings.Contains(answer, `"error"`) ||
			strings.Contains(answer, `"messages":1`) {
			t.Errorf("%s: %s", name, answer)
		}
	}
	last := ""
	for i := range maxStreams + 1 {
		last = stream(b, fmt.Sprint("s", i), "")
	}
	if !strings.Contains(last, `"error"`) {
		t.Errorf("more than %d streams: %s", maxStreams, last)
	}
	if answer := stream(a, "other", ""); strings.Contains(answer, `"error"`) {
		t.Errorf("a has less because b has much: %s", answer)
	}
}
