// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// The bounds of one account: a tenant cannot fill the disk or take the connections of the others.
const (
	maxStored      = 256 << 20 // bytes in all streams
	maxStreams     = 16
	maxConnections = 16 << 10
)

// sharedAccount is the name of the account of the nodes that serve every tenant.
const sharedAccount = "NODES"

// newKey returns a seed with a prefix of nkeys.
func newKey(prefix nkeys.PrefixByte) (nkeys.KeyPair, string, error) {
	pair, err := nkeys.CreatePair(prefix)
	if err != nil {
		return nil, "", err
	}
	seed, err := pair.Seed()
	return pair, string(seed), err
}

// prepare makes the keys that every fleet has, unless they are there.
func (f *fleet) prepare() error {
	if f.Operator != "" {
		return nil
	}
	var errs [3]error
	f.Shared = &account{Name: sharedAccount}
	_, f.Operator, errs[0] = newKey(nkeys.PrefixByteOperator)
	_, f.System, errs[1] = newKey(nkeys.PrefixByteAccount)
	_, f.Shared.Seed, errs[2] = newKey(nkeys.PrefixByteAccount)
	return errors.Join(errs[:]...)
}

// keyOf returns the pair of a seed, and its public key.
func keyOf(seed string) (pair nkeys.KeyPair, id string, err error) {
	if pair, err = nkeys.FromSeed([]byte(seed)); err == nil {
		id, err = pair.PublicKey()
	}
	if err != nil {
		return nil, "", fmt.Errorf("a key of the store is invalid: %w", err)
	}
	return pair, id, nil
}

// A set has the claims of a fleet.
type set struct {
	operator  *jwt.OperatorClaims
	token     string            // of the operator
	system    string            // public key
	tokens    map[string]string // of accounts, by public key
	shapes    map[string]string // the same without times and signatures, to tell changes
	operators nkeys.KeyPair
}

// claims makes the claims of all accounts anew, out of the keys.
func (f *fleet) claims() (*set, error) {
	pair, id, err := keyOf(f.Operator)
	if err != nil {
		return nil, err
	}
	s := &set{tokens: map[string]string{}, shapes: map[string]string{}, operators: pair}
	_, system, err := keyOf(f.System)
	if err != nil {
		return nil, err
	}
	_, shared, err := keyOf(f.Shared.Seed)
	if err != nil {
		return nil, err
	}
	s.system, s.operator = system, jwt.NewOperatorClaims(id)
	s.operator.Name, s.operator.SystemAccount = "sallyport", system
	if s.token, err = s.operator.Encode(pair); err != nil {
		return nil, err
	}
	all := []*jwt.AccountClaims{jwt.NewAccountClaims(system)}
	for _, a := range f.accounts() {
		_, id, err := keyOf(a.Seed)
		if err != nil {
			return nil, err
		}
		all = append(all, a.claims(id, shared))
	}
	for _, c := range all {
		s.shapes[c.Subject] = c.String()
		if s.tokens[c.Subject], err = c.Encode(pair); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// forever is a time until which no key is used again, also where clocks are wrong.
var forever = time.Unix(math.MaxInt32, 0)

// claims returns those of one account. Shared is the public key of the account NODES.
func (a *account) claims(id, shared string) *jwt.AccountClaims {
	c := jwt.NewAccountClaims(id)
	c.Name = a.Name
	c.Limits.Conn, c.Limits.LeafNodeConn = maxConnections, 0
	c.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: maxStored, Streams: maxStreams, Consumer: -1,
		MaxAckPending: -1}
	for _, key := range a.Revoked {
		c.RevokeAt(key, forever)
	}
	if id == shared {
		c.Exports.Add(
			&jwt.Export{Name: "up", Subject: "sp.all.*.up.>", Type: jwt.Service, AccountTokenPosition: 3},
			&jwt.Export{Name: "ask", Subject: "sp.all.*.ask.*", Type: jwt.Service, AccountTokenPosition: 3},
			&jwt.Export{Name: "down", Subject: "sp.all.*.down.>", Type: jwt.Stream, AccountTokenPosition: 3},
			&jwt.Export{Name: "life", Subject: "sp.all.life.*", Type: jwt.Stream})
		return c
	}
	of := func(kind jwt.ExportType, name, rest string) *jwt.Import {
		return &jwt.Import{Name: name, Account: shared, Type: kind,
			Subject:      jwt.Subject("sp.all." + id + rest),
			LocalSubject: jwt.RenamingSubject("sp.all" + rest)}
	}
	ask, down := of(jwt.Service, "ask", ".ask.*"), of(jwt.Stream, "down", ".down.>")
	ask.LocalSubject = "sp.all.ask.$1"
	// Clients know their account. The engine makes what renames a stream without a lock, at the first
	// subscription.
	down.LocalSubject = ""
	c.Imports.Add(of(jwt.Service, "up", ".up.>"), ask, down,
		&jwt.Import{Name: "life", Account: shared, Type: jwt.Stream, Subject: "sp.all.life.*"})
	return c
}

// limitNode lets a user use only the subjects of a node with its name, and its key in the bucket `nodes`.
func limitNode(c *jwt.UserClaims, shared bool) {
	name, p := c.Name, &c.Permissions
	c.Tags.Add(nodeTag)
	pub := jwt.StringList{"sp.own.down.*." + name, "sp.own.life." + name}
	sub := jwt.StringList{"sp.own.up." + name + ".*", "sp.own.ask.*", "sp.own.life." + name}
	if shared {
		c.Tags.Add(sharedTag)
		// No tenant is called NODES: these are calls about the node by who has its credentials.
		pub = jwt.StringList{"sp.all.*.down.*." + name, "sp.all.life." + name,
			"sp.all.NODES.up." + name + ".*"}
		sub = jwt.StringList{"sp.all.*.up." + name + ".*", "sp.all.*.ask.*", "sp.all.life." + name,
			"sp.all.NODES.down.*." + name}
	}
	p.Pub.Allow = append(pub, "$KV.nodes."+name, "$JS.API.INFO", "$JS.API.STREAM.INFO.KV_nodes",
		"$JS.API.STREAM.CREATE.KV_nodes", "$JS.API.DIRECT.GET.KV_nodes.$KV.nodes."+name)
	p.Sub.Allow = append(sub, "_INBOX."+name+".>")
}

// newUser makes credentials of a user of an account, and returns its public key. Limit may be nil: the user
// may use every subject of the account.
func newUser(accountSeed, name string, limit func(*jwt.UserClaims)) (creds []byte, key string, err error) {
	signer, _, err := keyOf(accountSeed)
	if err != nil {
		return nil, "", err
	}
	pair, seed, err := newKey(nkeys.PrefixByteUser)
	if err != nil {
		return nil, "", err
	}
	if key, err = pair.PublicKey(); err != nil {
		return nil, "", err
	}
	c := jwt.NewUserClaims(key)
	c.Name = name
	if limit != nil {
		limit(c)
	}
	token, err := c.Encode(signer)
	if err != nil {
		return nil, "", err
	}
	creds, err = jwt.FormatUserConfig(token, []byte(seed))
	return creds, key, err
}
