// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/fleet/bus"
)

// TestForgedReplies: a node that has the engine answer at a subject which the node may not use is not heard
// there as if another node had spoken, but what the hub passes from one account to another is heard.
func TestForgedReplies(t *testing.T) {
	store := newStore(t)
	h := start(t, Options{Store: store})
	creds := tenants(t, store, "a", "evil@", "good@", "m@a")
	id := accountOf(t, store, "a")
	good, err := bus.Connect(t.Context(),
		bus.Options{URL: h.URL(), Creds: creds["good"], Inbox: "_INBOX.good"})
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close()
	heard := map[string]chan string{"sp.all.*.up.good.*": make(chan string, 100),
		"sp.all.*.ask.*": make(chan string, 100)}
	for subject, each := range heard {
		stop, err := good.Subscribe(subject, func(_ string, data []byte) { each <- string(data) })
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
	}
	if err := good.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	evil := mustDial(t, h.URL(), creds["evil"])
	const frame = "a frame of evil"
	if answer := evil.call("_INBOX.evil", "$KV.nodes.evil", frame); !strings.Contains(answer, `"seq":`) {
		t.Fatal(answer)
	}
	to := "sp.all." + id + ".up.good.C"
	evil.pub("$JS.API.DIRECT.GET.KV_nodes.$KV.nodes.evil", to, "")
	evil.pub("$KV.nodes.evil", to, "x")
	evil.pub("$JS.API.STREAM.INFO.KV_nodes", to, "")
	evil.call("_INBOX.evil", "$JS.API.STREAM.INFO.KV_nodes", "") // those before have been answered
	a := mustDial(t, h.URL(), creds["a"])
	a.pub("sp.all.up.good.C", "", "of a client")
	a.pub("sp.all.ask.C", "", "of a client")
	a.flush()
	for subject, each := range heard {
		for {
			got := <-each
			if got == frame {
				t.Error("the node heard what another one has had the hub say")
			}
			// An answer of the hub without headers is JSON, which is no frame.
			if strings.HasPrefix(got, "{") {
				continue
			}
			if got != "of a client" {
				t.Errorf("%s: %q", subject, got)
			}
			break
		}
	}
}
