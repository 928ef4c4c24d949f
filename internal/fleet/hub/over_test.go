// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/fleet/bus"
)

// TestRemovedIsOver: a connection whose credentials are removed ends for good, so that its process can say
// so.
func TestRemovedIsOver(t *testing.T) {
	store := filepath.Join(t.TempDir(), "hub")
	ctx := context.Background()
	tenant, err := AddTenant(ctx, store, "a")
	if err != nil {
		t.Fatal(err)
	}
	node, err := AddNode(ctx, store, "n", "a")
	if err != nil {
		t.Fatal(err)
	}
	h, err := Start(ctx, Options{Listen: "127.0.0.1:0", Store: store})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, remove := range []struct {
		what, creds string
		do          func() error
	}{
		{"node", node, func() error { return RemoveNode(ctx, store, "n") }},
		{"tenant", tenant, func() error { return RemoveTenant(ctx, store, "a") }},
	} {
		t.Run(remove.what, func(t *testing.T) {
			of, err := ReadCreds(remove.creds)
			if err != nil {
				t.Fatal(err)
			}
			c, err := of.Connect(ctx, bus.Options{URL: h.URL(), Creds: remove.creds, Name: "test"})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := remove.do(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-c.Over():
			case <-time.After(time.Minute):
				t.Fatal("it goes on")
			}
			if !errors.Is(c.Err(), bus.ErrCredentials) {
				t.Error(c.Err())
			}
		})
	}
}
