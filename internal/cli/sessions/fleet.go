// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/fleet"
	"github.com/sallyport-dev/sallyport/internal/fleet/bus"
	"github.com/sallyport-dev/sallyport/internal/fleet/gateway"
	"github.com/sallyport-dev/sallyport/internal/fleet/hub"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
)

// hubTime is how long a hub that is not there is tried, and how long it may take to answer.
const hubTime = 10 * time.Second

// A fleetSite is a connection to the hub of a fleet, with a gateway of this process.
type fleetSite struct {
	conn    *bus.Conn
	gateway *gateway.Gateway
}

// fleet connects to the hub that flags name.
func (o *Options) fleet(ctx context.Context, env *Env) (*fleetSite, error) {
	target, labels, err := fleetTarget(&o.target)
	if err != nil {
		return nil, err
	}
	b := bus.Options{URL: target, Name: "sallyport", Timeout: hubTime, Creds: credentials(env, &o.target),
		CAFlag: "--remote-tls-ca"}
	of, err := hub.ReadCreds(b.Creds)
	if err != nil {
		return nil, explain.NewError("%v", err)
	}
	if o.target.CA != "" {
		b.CA = absolute(env, o.target.CA)
	}
	s := new(fleetSite)
	if s.conn, err = of.Connect(ctx, b); err != nil {
		return nil, explain.NewError("%v", err)
	}
	ready, cancel := context.WithTimeout(ctx, hubTime+o.target.Queue)
	defer cancel()
	s.gateway, err = gateway.New(ready, s.conn, gateway.Options{Queue: o.target.Queue, Labels: labels,
		Narrow: o.narrow})
	if err != nil {
		s.conn.Close()
		return nil, explain.NewError("%v", err)
	}
	return s, nil
}

// credentials returns the file with the credentials for the hub; empty for none.
func credentials(env *Env, s *config.Server) string {
	name := cmp.Or(s.Creds, env.Variable(args.CredsVariable))
	if name == "" || !s.IsFleet() {
		return ""
	}
	return absolute(env, name)
}

// fleetTarget returns the URL of a hub, and the labels that nodes must have.
func fleetTarget(s *config.Server) (target string, labels map[string]string, err error) {
	target, query, _ := strings.Cut(s.URL, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", nil, explain.NewError("--remote: invalid labels: %v; use nats://HOST?label=KEY=VALUE", err)
	}
	for name := range values {
		if name != "label" {
			return "", nil, explain.NewError("--remote: unknown %q; use nats://HOST?label=KEY=VALUE", name)
		}
	}
	if labels, err = fleet.ParseLabels(values["label"]); err == nil {
		err = bus.CheckURL(target)
	}
	if err != nil {
		return "", nil, explain.NewError("--remote: %v", err)
	}
	return target, labels, nil
}

// Close ends the connections of the gateway, and that to the hub.
func (s *fleetSite) Close() {
	_ = s.gateway.Shutdown(context.Background()) // it has no error
	s.conn.Close()
}

// dial returns a client of the gateway, which ends with it.
func (s *fleetSite) dial(ctx context.Context, url string, opts wire.ClientOptions) (client, error) {
	c, err := dial(ctx, wire.ClientTarget{URL: url, Dial: s.gateway.Dial}, opts)
	if err != nil {
		s.Close()
		if refused := new(wire.Error); errors.As(err, &refused) { // no gateway elsewhere is meant
			err = explained(refused, "")
		}
		return nil, err
	}
	return fleetClient{c, s}, nil
}

// A fleetClient is a client of a gateway of this process.
type fleetClient struct {
	client
	site *fleetSite
}

// Close ends both.
func (c fleetClient) Close() error {
	err := c.client.Close()
	c.site.Close()
	return err
}

// open returns a stream to the gateway, which ends with it.
func (s *fleetSite) open() wire.Stream {
	near, far := wire.Pipe()
	go func() {
		_ = s.gateway.Serve(far, "", nil) // the reader sees the end
		s.Close()
	}()
	return near
}
