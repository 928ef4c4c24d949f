// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"os"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/linux/observer"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// granted is what named grants open of this machine. The nil granted is nothing.
type granted struct{ *grants.FoundServices }

// addServices finds the services and devices that the policy grants, and refuses the sockets
// where a command could connect to none or to all.
func (a *attempt) addServices(r *plan.Request, res *sandbox.Resolved) error {
	found, err := grants.FindServices(res.Named, os.Environ(), res.Network)
	if err != nil {
		return err
	}
	a.services = &granted{found}
	all := slices.Contains(a.spec.Allow, "unix")
	for _, s := range found.Sockets {
		restricted := s.To != s.File
		no := &sandbox.UnsupportedError{Need: "a judge of single unix sockets for the grant " + s.Grant}
		switch {
		case all && restricted:
			no.Have, no.Hint = "all of them are allowed, the one of the agent that gives keys away too",
				"do not allow unix"
		case all || a.level == plan.LevelNative && r.Observe:
			continue
		case a.level != plan.LevelNative:
			no.Have, no.Hint = "the "+a.level+" level has none", "use a machine with the native level"
		case r.Unobserved != "":
			no.Have, no.Hint = "the observer is not available: "+r.Unobserved, "leave the grant out"
		default:
			no.Have, no.Hint = "the observer is turned off", "turn the observer on"
		}
		if !restricted {
			no.Hint += ", or allow unix, which opens all sockets"
		}
		return a.refusal(no)
	}
	r.Env = found.Env(r.Env)
	for _, d := range found.Devices {
		r.Devices = append(r.Devices, d.Name)
	}
	return nil
}

// sockets are what the observer lets the command connect to.
func (g *granted) sockets() []observer.Socket {
	if g == nil {
		return nil
	}
	var out []observer.Socket
	for _, s := range g.Sockets {
		out = append(out, observer.Socket{File: s.File, To: s.To})
	}
	return out
}

// places are where services are that were not granted.
func (g *granted) places() []string {
	if g == nil {
		return nil
	}
	return g.Places
}

// close lets go of the sockets.
func (g *granted) close() {
	if g != nil {
		g.Close()
	}
}
