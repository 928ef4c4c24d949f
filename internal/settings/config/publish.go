// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/network"
)

// keyPublish names the ports of commands that this machine reaches.
const keyPublish = "network.publish"

// Publish returns the ports of commands that this machine reaches, each once. Where a command has the
// network of the host its ports are ports of this machine anyway, so those of files do not count there;
// those of flags do, and the command is refused.
func (e *Effective) Publish() []network.Publish {
	var ports []network.Publish
	seen, given := map[network.Publish]bool{}, e.layers[len(e.layers)-1].values[keyPublish]
	isGiven := func(text string) bool {
		return slices.ContainsFunc(given, func(s Setting) bool { return s.Text == text })
	}
	for _, s := range e.Values[keyPublish].Settings {
		p, err := network.ParsePublish(s.Text) // it was checked
		if err != nil || seen[p] || !isGiven(s.Text) && e.Values["network.mode"].Text() == NetHost {
			continue
		}
		seen[p] = true
		ports = append(ports, p)
	}
	return ports
}

func checkPublish(text string) error {
	_, err := network.ParsePublish(text)
	return err
}

// publishes reports whether an element of a ceiling permits a port. Both are compared as
// "PORT:HOSTPORT", so that no spelling of a port is another one.
func publishes(pattern, text string) bool {
	p, err := network.ParsePublish(text)
	if err != nil {
		return false
	}
	if one, err := network.ParsePublish(pattern); err == nil {
		return one == p
	}
	match, err := path.Match(pattern, fmt.Sprintf("%d:%d", p.Port, p.Host()))
	return match && err == nil && (pattern == "*" || strings.Contains(pattern, ":"))
}
