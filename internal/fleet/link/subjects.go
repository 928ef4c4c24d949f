// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"strings"
)

// Operator stands in the place of an account for clients of a shared node which are users of its own account.
// It is the name of no account of a tenant.
const Operator = "NODES"

// A Scope says for whom a node works.
type Scope string

// The scopes.
const (
	Own    Scope = "own" // for the account whose user it is
	Shared Scope = "all" // for all tenants; its account exports what others import
)

// An Address is that of a node.
type Address struct {
	Scope Scope
	Node  string
}

// Subjects of the messages, as a client in the account of a tenant names them. Between most of them and those
// of a shared node the hub puts the account, which no tenant can choose.
//
//	sp.SCOPE.up.NODE.CLIENT      frames to a node
//	sp.own.down.CLIENT.NODE      frames to a client
//	sp.all.ACCOUNT.down.CLIENT.NODE
//	sp.SCOPE.ask.CLIENT          calls to all nodes
//	sp.SCOPE.life.NODE           what a node says of itself
const prefix = "sp."

func (s Scope) subject(words ...string) string {
	return prefix + string(s) + "." + strings.Join(words, ".")
}

// Life is the subject on which nodes of a scope say that they live; an empty name is that of all nodes.
func (s Scope) Life(node string) string {
	if node == "" {
		node = "*"
	}
	return s.subject("life", node)
}

// A Peer is a client as a node knows it.
type Peer struct {
	Account string // of the tenant; empty for a node of one account
	Client  string
}

// down is where a node answers a peer.
func (s Scope) down(p Peer, node string) string {
	if s == Shared {
		return s.subject(p.Account, "down", p.Client, node)
	}
	return s.subject("down", p.Client, node)
}

// served returns the subjects on which a node gets frames.
func (s Scope) served(node string) []string {
	if s == Shared {
		return []string{s.subject("*", "up", node, "*"), s.subject("*", "ask", "*")}
	}
	return []string{s.subject("up", node, "*"), s.subject("ask", "*")}
}

// peer reads who has sent a message to a node.
func (s Scope) peer(subject string) (p Peer, ok bool) {
	words := strings.Split(subject, ".")
	if s == Shared {
		if len(words) < 5 {
			return p, false
		}
		p.Account, words = words[2], append(words[:2:2], words[3:]...)
	}
	p.Client = words[len(words)-1]
	return p, len(words) == 5 && words[2] == "up" || len(words) == 4 && words[2] == "ask"
}

// up is where a client sends to a node.
func (c *Client) up(to Address) string {
	if c.operator {
		return to.Scope.subject(Operator, "up", to.Node, c.transport.ID())
	}
	return to.Scope.subject("up", to.Node, c.transport.ID())
}

// downs are the subjects on which a client gets frames.
func (c *Client) downs() []string {
	if c.operator {
		return []string{Shared.subject(Operator, "down", c.transport.ID(), "*")}
	}
	subjects := []string{Own.subject("down", c.transport.ID(), "*")}
	if account := c.transport.Account(); account != "" {
		subjects = append(subjects, Shared.subject(account, "down", c.transport.ID(), "*"))
	}
	return subjects
}

// from reads which node has sent a message to a client.
func (c *Client) from(subject string) (a Address, ok bool) {
	words := strings.Split(subject, ".")
	if len(words) == 6 && words[1] == string(Shared) { // the account is that of this client: it gets no others
		words = append(words[:2:2], words[3:]...)
	}
	if len(words) != 5 {
		return a, false
	}
	return Address{Scope(words[1]), words[4]}, words[2] == "down"
}
