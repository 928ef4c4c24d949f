// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/network"
)

type inspector struct{}

func (inspector) InspectsTLS() {}

// TestInspectedHost: a server on another machine is not told to let TLS pass that would be opened here.
func TestInspectedHost(t *testing.T) {
	for _, protocol := range []network.Protocol{network.HTTPSConnect, network.SOCKS5TCP,
		network.TransparentTCP} {
		for mode, want := range map[network.Mode]wire.PolicyWord{
			network.Limited: {Type: "deny", Reason: "mitm_required"}, network.Full: {Type: "allow"},
		} {
			p, err := network.New(network.Config{Mode: mode, Inspector: inspector{},
				Entries: []network.Entry{{Pattern: "a.b"}}})
			if err != nil {
				t.Fatal(err)
			}
			h := &hosts{spec: executor.Spec{Network: network.NewLive(p)}}
			if got := h.decide(t.Context(), &wire.HostRequest{Protocol: protocol.String(), Host: "a.b",
				Port: 443}); got != want {
				t.Errorf("%s in %s: %+v, want %+v", protocol, mode, got, want)
			}
		}
	}
}
