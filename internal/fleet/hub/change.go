// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/sallyport-dev/sallyport/internal/fleet/bus"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A NameError reports a name of a tenant or node that cannot be used.
type NameError struct{ Name, Why string }

// Error returns one sentence with the name and the reason.
func (e *NameError) Error() string { return text.Word(e.Name) + ": " + e.Why }

// CheckName returns a [*NameError] unless name may be that of a tenant or node.
func CheckName(name string) error {
	if !bus.Token(name) {
		return &NameError{name, "a name has 1 to 64 of the characters A-Z, a-z, 0-9, _ and -, which is not the first one"}
	}
	return nil
}

// AddTenant makes an account and returns the path of its credentials. Store is the directory of the hub,
// empty for [DefaultStore]. A hub that runs knows the tenant when AddTenant returns, and has let the
// credentials in; one that was open asks everybody for credentials from then on. It blocks for at most
// [Patience] while others change the store, and as long again for the hub.
func AddTenant(ctx context.Context, store, name string) (path string, err error) {
	return add(ctx, store, name, func(f *fleet) ([]byte, error) {
		a := &account{Name: name}
		if _, a.Seed, err = newKey(nkeys.PrefixByteAccount); err != nil {
			return nil, err
		}
		f.Tenants = append(f.Tenants, a)
		creds, _, err := newUser(a.Seed, name, nil)
		return creds, err
	})
}

// AddNode is [AddTenant] for a node of a tenant; an empty tenant means a node that serves every tenant.
func AddNode(ctx context.Context, store, name, tenant string) (path string, err error) {
	return add(ctx, store, name, func(f *fleet) ([]byte, error) {
		a := f.Shared
		if tenant != "" {
			i := f.tenant(tenant)
			if i < 0 {
				return nil, &NameError{tenant,
					"there is no such tenant; add it with `sallyport fleet add-tenant`"}
			}
			a = f.Tenants[i]
		}
		creds, key, err := newUser(a.Seed, name, func(c *jwt.UserClaims) { limitNode(c, tenant == "") })
		a.Nodes = append(a.Nodes, node{name, key})
		return creds, err
	})
}

// add adds a user to the fleet, writes its credentials and tells the hub. If something cannot be written,
// everything is as before.
func add(ctx context.Context, dir, name string, change func(*fleet) (creds []byte, err error)) (string,
	error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	s, err := openStore(dir)
	if err != nil {
		return "", err
	}
	defer s.close()
	f, old, err := s.load()
	if err != nil {
		return "", err
	}
	if a, _ := f.node(name); a != nil || f.tenant(name) >= 0 {
		return "", &NameError{name, "there is a tenant or node with this name"}
	}
	if err := f.prepare(); err != nil {
		return "", err
	}
	creds, err := change(f)
	if err != nil {
		return "", err
	}
	path, err := s.writeCreds(name, creds)
	if err != nil {
		return "", err
	}
	if err := s.save(f, old); err != nil {
		return "", errors.Join(err, s.removeCreds(name))
	}
	if err := tell(ctx, s.socket(), name); err != nil {
		return "", fmt.Errorf("%s was written, and the hub does not know it yet: %w", text.Word(path), err)
	}
	return path, nil
}

// RemoveTenant removes an account with its nodes and what it has stored, and their credentials. Connections
// to a hub that runs are closed when it returns. Store and blocking are as of [AddTenant].
func RemoveTenant(ctx context.Context, store, name string) error {
	return remove(ctx, store, func(f *fleet) ([]string, error) {
		i := f.tenant(name)
		if i < 0 {
			return nil, &NameError{name, "there is no such tenant"}
		}
		gone := []string{name}
		for _, n := range f.Tenants[i].Nodes {
			gone = append(gone, n.Name)
		}
		f.Tenants = slices.Delete(f.Tenants, i, i+1)
		return gone, nil
	})
}

// RemoveNode is [RemoveTenant] for a node.
func RemoveNode(ctx context.Context, store, name string) error {
	return remove(ctx, store, func(f *fleet) ([]string, error) {
		a, i := f.node(name)
		if a == nil {
			return nil, &NameError{name, "there is no such node"}
		}
		a.Revoked = append(a.Revoked, a.Nodes[i].Key)
		a.Nodes = slices.Delete(a.Nodes, i, i+1)
		return []string{name}, nil
	})
}

// remove removes users. What was removed stays so, also where the hub could not be told.
func remove(ctx context.Context, dir string, change func(*fleet) (gone []string, err error)) error {
	s, err := openStore(dir)
	if err != nil {
		return err
	}
	defer s.close()
	f, old, err := s.load()
	if err != nil {
		return err
	}
	gone, err := change(f)
	if err != nil {
		return err
	}
	if err := s.save(f, old); err != nil {
		return err
	}
	err = tell(ctx, s.socket(), "")
	for _, name := range gone {
		err = errors.Join(err, s.removeCreds(name))
	}
	return err
}
