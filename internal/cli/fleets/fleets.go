// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleets is the command fleet with its subcommands, each with flags and help of its own.
package fleets

import (
	"context"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

// Help is the help text of the command itself, above the list of subcommands.
const Help = `Run commands on many machines: a hub, nodes that run them, gateways for clients.

  sallyport fleet SUBCOMMAND [FLAGS] [ARG...]
`

// An Env is the environment of one invocation. Print prints for people on standard output, Say a message on
// standard error, and PrintJSON one object; all must be set.
type Env struct {
	*args.Env
	Print     func(text string) error
	PrintJSON func(v any) error
	Say       func(lines ...string)
	// FileHelper is that of execserver.Options.
	FileHelper []string
}

// Options are the flags of all subcommands.
type Options struct {
	hub    hubOptions
	store  string
	tenant string

	node    nodeOptions
	gateway gatewayOptions
	operate operateOptions
}

// A Verb is a subcommand.
type Verb struct {
	Name  string
	Short string // one line of the list
	Help  string // above the flags
	Words int    // how many words it takes at most
	// Flags are those of the subcommand, bound to o.
	Flags func(o *Options) []syntax.Flag
	Run   func(ctx context.Context, env *Env, o *Options, words []string) error
}

// Verbs returns the table, in the order of the list.
func Verbs() []Verb {
	return []Verb{
		{Name: "hub", Short: "serve the hub that all others connect to", Help: hubHelp, Flags: hubFlags,
			Run: runHub},
		{Name: "add-tenant", Short: "write credentials for a tenant", Help: addTenantHelp, Words: 1,
			Flags: storeFlags, Run: addTenant},
		{Name: "add-node", Short: "write credentials for a node", Help: addNodeHelp, Words: 1,
			Flags: addNodeFlags, Run: addNode},
		{Name: "remove-tenant", Short: "cut a tenant off, with its nodes", Help: removeTenantHelp, Words: 1,
			Flags: storeFlags, Run: removeTenant},
		{Name: "remove-node", Short: "cut a node off", Help: removeNodeHelp, Words: 1, Flags: storeFlags,
			Run: removeNode},
		{Name: "node", Short: "offer this machine", Help: nodeHelp, Flags: nodeFlags, Run: runNode},
		{Name: "gateway", Short: "serve the nodes as one exec-server", Help: gatewayHelp, Flags: gatewayFlags,
			Run: runGateway},
		{Name: "nodes", Short: "list the nodes", Help: nodesHelp, Flags: listFlags, Run: listNodes},
		{Name: "sessions", Short: "list the sessions", Help: sessionsHelp, Flags: listFlags, Run: listSessions},
		{Name: "drain", Short: "have a node end when nothing runs there any more", Help: drainHelp, Words: 1,
			Flags: drainFlags, Run: drain},
		{Name: "undrain", Short: "have a node take sessions again", Help: undrainHelp, Words: 1,
			Flags: operateFlags, Run: undrain},
		{Name: "kill", Short: "end a session", Help: killHelp, Words: 1, Flags: operateFlags, Run: kill},
	}
}
