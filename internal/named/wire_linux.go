// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package named

import (
	"encoding/json"

	"github.com/sallyport-dev/sallyport/sandbox"
	"github.com/sallyport-dev/sallyport/sandbox/wire"
)

// version is that of the form of the lines.
const version = 1

// What a call asks for.
const (
	doStart = "start" // of a keeper that has just started: open the sandbox, and join it
	doJoin  = "join"
	doList  = "list"
	doStop  = "stop" // the answer is the end of the connection, when the sandbox has ended
)

// A call is the line to a keeper.
type call struct {
	Version int    `json:"version"`
	Do      string `json:"do"`
	IdleMS  int64  `json:"idle_ms,omitempty"` // of a start
	Run     *run   `json:"run,omitempty"`     // of a start and of a join
}

// A run is the form of a Request.
type run struct {
	Name      string          `json:"name"`
	Workspace []byte          `json:"workspace"` // any bytes
	Policy    json.RawMessage `json:"policy"`
	Grants    []string        `json:"grants,omitempty"` // named ones, for which the form of policies has no place
	Openings  []string        `json:"openings,omitempty"`
}

// A reply is the line of a keeper. One of the members is set.
type reply struct {
	Gone        bool                      `json:"gone,omitempty"` // the sandbox is ending
	Refused     *RefusedError             `json:"refused,omitempty"`
	Unsupported *sandbox.UnsupportedError `json:"unsupported,omitempty"`
	Failed      string                    `json:"failed,omitempty"`
	Info        *Info                     `json:"info,omitempty"`
	Parts       *parts                    `json:"parts,omitempty"`
}

// parts are those of a shared sandbox. With the line come their files: the namespaces, the trees and the
// descriptor of the holder.
type parts struct {
	Network    sandbox.Network `json:"network"`
	Hosts      []string        `json:"hosts,omitempty"`
	Tmp        []byte          `json:"tmp"` // a path of any bytes
	Namespaces int             `json:"namespaces"`
	Trees      int             `json:"trees"`
	PIDs       bool            `json:"pids,omitempty"`
}

// encode returns the form of r.
func (r *Request) encode() (*run, error) {
	text, err := wire.MarshalProfileURI(withoutGrants(r.Policy))
	return &run{Name: r.Name, Workspace: []byte(r.Workspace), Policy: text, Grants: r.Policy.Named(), Openings: r.Openings}, err
}

// withoutGrants returns a managed policy without its named grants.
func withoutGrants(p sandbox.Policy) sandbox.Policy {
	if p.Unrestricted() {
		return sandbox.FullAccess().WithNetwork(sandbox.NetworkNone).WithNetwork(p.Network())
	}
	plain, err := sandbox.New(p.Mode(), p.Network(), p.Entries()...)
	if err != nil {
		return p // its form reports the same
	}
	return plain.WithGlobScanDepth(p.GlobScanDepth())
}

func (r *run) decode() (*Request, error) {
	p, err := wire.ParseProfile(r.Policy)
	if err != nil {
		return nil, err
	}
	for _, name := range r.Grants {
		p = p.With(sandbox.Grant{Name: name})
	}
	return &Request{Name: r.Name, Workspace: string(r.Workspace), Policy: p, Openings: r.Openings}, nil
}
