// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/credswap"
	"github.com/sallyport-dev/sallyport/internal/nearest"
	"github.com/sallyport-dev/sallyport/internal/suffixes"
	"github.com/sallyport-dev/sallyport/internal/toml"
)

// A Credential is one of network.credentials. Its value is not read yet.
type Credential struct {
	Name string
	// Env is the variable of the command; File, if it is not empty, has the value in place of ours.
	Env, File    string
	Hosts, Where []string
	Shape        string
	// Origin is its first setting.
	Origin Origin
}

// members are what a credential has; true means a list.
var members = map[string]bool{"env": false, "file": false, "hosts": true, "where": true, "shape": false}

// Credentials returns the credentials in the order of the settings.
func (e *Effective) Credentials() ([]Credential, error) {
	var out []Credential
	for _, s := range e.Values["network.credentials"].Settings {
		name, member, value := cutMember(s.Text)
		i := slices.IndexFunc(out, func(c Credential) bool { return c.Name == name })
		if i < 0 {
			i, out = len(out), append(out, Credential{Name: name, Origin: s.Origin})
		}
		switch c := &out[i]; member {
		case "env":
			c.Env = value
		case "file":
			c.File = value
		case "hosts":
			c.Hosts = strings.Split(value, ",")
		case "where":
			c.Where = strings.Split(value, ",")
		case "shape":
			c.Shape = value
		}
	}
	for _, c := range out {
		missing := "env"
		if c.Env != "" {
			missing = "hosts"
		}
		if c.Env == "" || len(c.Hosts) == 0 {
			return nil, &FileError{c.Origin.File, c.Origin.Pos, fmt.Sprintf("network.credentials.%s has no %s; add it", c.Name, missing)}
		}
	}
	return out, nil
}

// cutMember splits the text of a setting.
func cutMember(text string) (name, member, value string) {
	name, value, _ = strings.Cut(text, "=")
	name, member, _ = strings.Cut(name, ".")
	return name, member, value
}

// checkCredential checks one member of a credential.
func checkCredential(text string) error {
	name, member, value := cutMember(text)
	if list, known := members[member]; name == "" || !known || list && value == "" {
		return fmt.Errorf("%s is no member of a credential", quoted(text))
	}
	switch {
	case value == "":
		return errEmpty
	case member == "env" && strings.ContainsAny(value, "= "):
		return fmt.Errorf("%s is no name of a variable", quoted(value))
	case member == "hosts":
		_, err := credswap.CheckHosts(strings.Split(value, ","), suffixes.IsPublic)
		return err
	case member == "where":
		for word := range strings.SplitSeq(value, ",") {
			if !slices.Contains(credswap.Places, word) {
				return fmt.Errorf("unknown place %s%s", quoted(word), nearest.Clause(word, credswap.Places, ""))
			}
		}
	}
	return nil
}

var errMember = errors.New("a credential has the members env, file, hosts, where and shape")

// member reads a member of a credential.
func (r *fileReader) member(k *Key, rest []string, i *toml.Item, add func(string, toml.Pos) error) error {
	v := &i.Value
	if len(rest) < 2 {
		return r.fail(v.Pos, "%s is a table; write [%s.NAME] and env and hosts below", i.Key(), k.Name)
	}
	list, known := members[rest[1]]
	switch {
	case strings.Trim(rest[0], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "":
		return r.fail(i.Pos, "%s: the name %s has other characters than letters, digits, - and _; leave them out", k.Name, quoted(rest[0]))
	case !known || len(rest) > 2:
		return r.fail(i.Pos, "unknown key %s; %v", i.Key(), errMember)
	case !list && v.Kind != toml.String:
		return r.fail(v.Pos, "%s is a string, not %s", i.Key(), v.Kind)
	case list && v.Kind != toml.Array:
		return r.fail(v.Pos, "%s is an array of strings, not %s", i.Key(), v.Kind)
	}
	text := v.Text
	if list {
		var all []string
		for _, e := range v.List {
			if e.Kind != toml.String || e.Text == "" || strings.Contains(e.Text, ",") {
				return r.fail(e.Pos, "%s is an array of strings without commas", i.Key())
			}
			all = append(all, e.Text)
		}
		if text = strings.Join(all, ","); text == "" {
			return r.fail(v.Pos, "%s is empty; leave it out, or name something", i.Key())
		}
	}
	return add(rest[0]+"."+rest[1]+"="+text, i.Pos)
}

// shownCredentials are the credentials as they were written.
func shownCredentials(v Value) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, text := range v.Texts() {
		name, member, value := cutMember(text)
		if out[name] == nil {
			out[name] = map[string]any{}
		}
		if out[name][member] = value; members[member] {
			out[name][member] = strings.Split(value, ",")
		}
	}
	return out
}

func credentialSchema() node {
	n := object("A credential that commands use and do not get.")
	text := func(help string) node { return node{"type": "string", "description": help} }
	list := func(help string, items node) node { return node{"type": "array", "description": help, "items": items} }
	n.put("env", text("The variable in which commands get a dummy. Without file it has the value, in the environment of sallyport."))
	n.put("file", text("The file with the value. Commands cannot read it."))
	n.put("hosts", list("Patterns of hosts that get the value.", node{"type": "string"}))
	n.put("where", list("Where in requests the dummy is replaced. By default header, basic and bearer.", node{"enum": credswap.Places}))
	n.put("shape", text("How the value begins, and the dummy too. By default the prefixes of known services."))
	n["required"] = []string{"env", "hosts"}
	return n
}
