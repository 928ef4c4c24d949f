// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/network"
)

// keyUpstream names the proxy by which hosts are reached.
const keyUpstream = "network.upstream"

// Upstream returns the proxy by which allowed hosts are reached; nil for none. The error is a
// [*network.UpstreamError], or a [*CeilingError]: all that is allowed goes to that proxy, so where a
// ceiling lists hosts, it lists the proxy, or names it.
func (e *Effective) Upstream() (*network.Upstream, error) {
	v := e.Values[keyUpstream]
	u, err := network.ParseUpstream(v.Text(), e.config.variable)
	if bad := new(network.UpstreamError); errors.As(err, &bad) && bad.Source != "" {
		return nil, fmt.Errorf("%w, or set %s", err, keyUpstream)
	}
	if err != nil || len(v.Settings) > 0 && v.Settings[0].Origin.Layer == Managed {
		return u, err
	}
	for _, p := range u.Proxies() {
		var over *CeilingError
		if errors.As(e.Permits([]string{"host:" + p.Authority()}), &over) {
			return nil, &CeilingError{Setting{p.String(),
				Origin{Layer: Environment, File: "the upstream proxy"}}, keyUpstream, over.By}
		}
	}
	return u, nil
}

// variable returns the value of a variable that names a proxy.
func (c *Config) variable(name string) string {
	list := c.in.Proxies
	if list == nil {
		list = c.in.Environ
	}
	for _, v := range slices.Backward(list) {
		if rest, ok := strings.CutPrefix(v, name+"="); ok {
			return rest
		}
	}
	return ""
}

// upstreamNote says which proxy the environment names; empty if it names none, or nothing asks it.
func (e *Effective) upstreamNote() string {
	if e.Values[keyUpstream].Text() != network.UpstreamEnvironment {
		return ""
	}
	u, err := e.Upstream()
	switch {
	case err != nil:
		return keyUpstream + ": " + err.Error()
	case u == nil:
		return ""
	}
	return keyUpstream + ": the environment names " + u.String()
}
