// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/net/intercept"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

// A Credential is one of network.credentials. Its value is not read yet.
type Credential struct {
	Name string
	// Env is the variable of the command; File, if it is not empty, has the value in place of ours.
	Env, File string
	// Find, if it is not nil, finds the value in File, of which the command sees a copy. Basic is the form.
	Find         *regexp.Regexp
	Basic        bool
	Hosts, Where []string
	Shape        string
	// Origin is its first setting.
	Origin Origin
}

// credentials are the tables of network.credentials.
var credentials = &table{
	what: "a credential that commands use and do not get",
	members: []member{
		{name: "env", help: "The variable in which commands get a dummy. Without file it has the value, in the environment of sallyport."},
		{name: "file", help: "The file with the value. Commands cannot read it."},
		{name: "find", help: "A regular expression (RE2) with one group, the value in file. Commands see a copy of file with a dummy."},
		{name: "form", help: "What find finds: basic is the base64 of USER:PASSWORD, and the password is the value."},
		{name: "hosts", list: true, help: "Patterns of hosts that get the value."},
		{name: "where", list: true, words: intercept.CredentialPlaces, help: "Where in requests the dummy is replaced. By default header, basic and bearer."},
		{name: "shape", help: "How the value begins, and the dummy too. By default the prefixes of known services."},
	},
	required: []string{"hosts"},
}

// Credentials returns the credentials in the order of the settings.
func (e *Effective) Credentials() ([]Credential, error) {
	var out []Credential
	for _, s := range e.Values["network.credentials"].Settings {
		name, member, values := cutMember(s.Text)
		i := slices.IndexFunc(out, func(c Credential) bool { return c.Name == name })
		if i < 0 {
			i, out = len(out), append(out, Credential{Name: name, Origin: s.Origin})
		}
		switch c := &out[i]; member {
		case "env":
			c.Env = values[0]
		case "file":
			c.File = values[0]
		case "find":
			c.Find, _ = intercept.CheckCredentialFind(values[0]) // it was checked
		case "form":
			c.Basic = true
		case "hosts":
			c.Hosts = values
		case "where":
			c.Where = values
		case "shape":
			c.Shape = values[0]
		}
	}
	for _, c := range out {
		if missing := c.missing(); missing != "" {
			return nil, c.Origin.fail("network.credentials.%s has no %s; add it", c.Name, missing)
		}
	}
	return out, nil
}

// missing returns a member that a credential needs and does not have, or "".
func (c *Credential) missing() string {
	switch {
	case c.Env == "" && c.Find == nil:
		return "env"
	case len(c.Hosts) == 0:
		return "hosts"
	case c.Find != nil && c.File == "":
		return "file"
	case c.Basic && c.Find == nil:
		return "find"
	}
	return ""
}

// checkCredential checks one member of a credential.
func checkCredential(text string) error {
	if err := credentials.check(text); err != nil {
		return err
	}
	switch _, member, values := cutMember(text); {
	case member == "env" && strings.ContainsAny(values[0], "= "):
		return fmt.Errorf("%s is no name of a variable", quoted(values[0]))
	case member == "find":
		_, err := intercept.CheckCredentialFind(values[0])
		return err
	case member == "form" && values[0] != "basic":
		return fmt.Errorf("unknown form %s; it is basic", quoted(values[0]))
	case member == "hosts":
		_, err := intercept.CheckCredentialHosts(values, intercept.IsPublicSuffix)
		return err
	case member == "where":
		for _, word := range values {
			if !slices.Contains(intercept.CredentialPlaces, word) {
				return fmt.Errorf("unknown place %s%s", quoted(word),
					syntax.NearestClause(word, intercept.CredentialPlaces, ""))
			}
		}
	}
	return nil
}
