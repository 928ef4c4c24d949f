// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/network"
)

// requestRules are the tables of network.mitm.rules.
var requestRules = &table{
	what: "a rule for requests",
	members: []member{
		{name: "hosts", list: true, help: "Patterns of hosts, to which no other requests pass than those that a rule permits."},
		{name: "methods", list: true, help: "The methods that are permitted. By default all."},
		{name: "paths", list: true, help: "Paths that are permitted, with what is below them. By default all."},
		{name: "query", list: true, help: "NAME=VALUE that the query must have. Behind pattern: a VALUE may have *."},
		{name: "headers", list: true, help: "NAME: VALUE that the headers must have. Behind pattern: a VALUE may have *."},
		{name: "strip", list: true, help: "Headers that the server does not get."},
		{name: "set", list: true, help: "NAME: VALUE of headers that the server gets. {NAME} in a VALUE is the value of that credential."},
	},
	required: []string{"hosts"},
}

// RequestRules returns the rules about requests in the order of the settings. Values that are set have
// {NAME} for credentials, which are those of [Effective.Credentials].
func (e *Effective) RequestRules() ([]network.RequestRule, error) {
	var out []network.RequestRule
	var at []Origin
	for _, s := range e.Values["network.mitm.rules"].Settings {
		name, member, values := cutMember(s.Text)
		i := slices.IndexFunc(out, func(r network.RequestRule) bool { return r.Name == name })
		if i < 0 {
			i, out, at = len(out), append(out, network.RequestRule{Name: name, Source: s.Origin.Place()}),
				append(at, s.Origin)
		}
		if err := addMember(&out[i], member, values); err != nil {
			return nil, s.Origin.fail("network.mitm.rules.%s: %v", name, err)
		}
	}
	credentials, err := e.Credentials()
	if err != nil {
		return nil, err
	}
	for i, r := range out {
		for _, h := range r.Set {
			name, ok := Reference(h.Value)
			if ok && !slices.ContainsFunc(credentials, func(c Credential) bool { return c.Name == name }) {
				return nil, at[i].fail("network.mitm.rules.%s sets {%s}, and there is no [network.credentials.%s]; add it", r.Name, name, name)
			}
		}
		if len(r.Hosts) == 0 {
			return nil, at[i].fail("network.mitm.rules.%s has no hosts; add them", r.Name)
		}
	}
	return out, nil
}

// Reference returns the name of the credential in the value of a header that is set.
func Reference(value string) (name string, ok bool) {
	_, rest, ok := strings.Cut(value, "{")
	if !ok {
		return "", false
	}
	name, _, ok = strings.Cut(rest, "}")
	return name, ok
}

// addMember adds one member to a rule.
func addMember(r *network.RequestRule, member string, values []string) (err error) {
	lists := map[string]*[]string{"hosts": &r.Hosts, "methods": &r.Methods, "paths": &r.Paths,
		"strip": &r.Strip}
	if to := lists[member]; to != nil {
		*to = values
		return nil
	}
	by := map[string]string{"query": "=", "headers": ":", "set": ":"}[member]
	if to := map[string]*[]network.Pair{"query": &r.Query, "headers": &r.Headers,
		"set": &r.Set}[member]; to != nil {
		*to, err = pairs(values, by)
	}
	return err
}

// pairs splits names from values.
func pairs(values []string, by string) (out []network.Pair, err error) {
	for _, v := range values {
		name, value, ok := strings.Cut(v, by)
		if !ok {
			return nil, fmt.Errorf("%s has no %q; write NAME%sVALUE", quoted(v), by, by)
		}
		out = append(out, network.Pair{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)})
	}
	return out, nil
}

// checkRequestRule checks one member of a rule.
func checkRequestRule(text string) error {
	if err := requestRules.check(text); err != nil {
		return err
	}
	name, member, values := cutMember(text)
	r := network.RequestRule{Name: name, Hosts: []string{"*"}}
	if err := addMember(&r, member, values); err != nil {
		return err
	}
	_, err := network.New(network.Config{Rules: []network.RequestRule{r}})
	return err
}
