// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/nats-io/jwt/v2"

	"github.com/sallyport-dev/sallyport/internal/fleet/bus"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// The tags of users that are nodes.
const (
	nodeTag   = "node"
	sharedTag = "shared"
)

// A User is whom credentials are for.
type User struct {
	Name   string
	Node   bool // a node, and else a tenant
	Shared bool // a node that serves every tenant
	// Account is the public key of the account.
	Account string
}

// Connect is [bus.Connect] for what the credentials of o are for.
func (u *User) Connect(ctx context.Context, o bus.Options) (*bus.Conn, error) {
	o.Account = u.Account
	if u.Node { // it may not see the answers of others
		o.Inbox = "_INBOX." + u.Name
	}
	return bus.Connect(ctx, o) //nolint:wrapcheck // it says what failed
}

// ReadCreds returns whom a file of credentials is for, as the file says: the hub alone checks signatures.
// One that everybody can read is an error. Without a file, which is an empty path, it is the zero User.
func ReadCreds(path string) (User, error) {
	if path == "" {
		return User{}, nil
	}
	if err := bus.CheckCreds(path); err != nil {
		return User{}, err
	}
	const most = 64 << 10
	b, more, err := safefile.Read(path, most)
	var c *jwt.UserClaims
	token := ""
	if err == nil && !more {
		token, err = jwt.ParseDecoratedJWT(b)
	}
	if err == nil {
		c, err = jwt.DecodeUserClaims(token)
	}
	if err != nil {
		return User{}, fmt.Errorf("cannot use the credentials %s: %w; `sallyport fleet add-tenant` and "+
			"`add-node` write such files", text.Word(path), err)
	}
	return User{c.Name, slices.Contains(c.Tags, nodeTag), slices.Contains(c.Tags, sharedTag),
		cmp.Or(c.IssuerAccount, c.Issuer)}, nil
}
