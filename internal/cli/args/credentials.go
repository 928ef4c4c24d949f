// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/net/intercept"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// loadCredentials reads the values of credentials and makes their dummies. A variable that is not set is no
// credential. Files with values are closed to the command.
func (o *Options) loadCredentials(env *Env, e *config.Effective) error {
	settings, err := e.Credentials()
	if err != nil {
		return explain.NewError("%v", err)
	}
	var list []intercept.Credential
	for _, s := range settings {
		c := intercept.Credential{Name: s.Name, Env: s.Env, Hosts: s.Hosts, Where: s.Where, Shape: s.Shape}
		if s.File == "" {
			c.Value = []byte(env.Variable(s.Env))
		} else if err := o.readFile(env, e, &s, &c); err != nil {
			return err
		}
		if len(c.Value) > 0 || s.File != "" {
			list = append(list, c)
		}
	}
	o.secrets, err = intercept.NewCredentials(list, intercept.IsPublicSuffix)
	var bad *intercept.CredentialError
	if errors.As(err, &bad) {
		return explain.NewError("network.credentials.%s: %s", bad.Name, bad.Reason)
	}
	return err
}

// readFile gets the value of a credential from its file, which is closed to the command.
func (o *Options) readFile(env *Env, e *config.Effective, s *config.Credential,
	c *intercept.Credential) error {
	path := Absolute(s.File, env.Dir, env.Variable("HOME"))
	o.Denied = append(o.Denied, path)
	if err := fixed(e, s.Name, path); err != nil {
		return err
	}
	txt, err := readSecret(path)
	if err != nil {
		return explain.NewError("network.credentials.%s: cannot read %s: %v; correct file", s.Name,
			text.Word(path), explain.SystemCause(err))
	}
	if s.Find == nil {
		c.Value = bytes.TrimRight(txt, "\r\n")
		return nil
	}
	c.File = &intercept.CredentialFile{Path: hostfacts.RealPath(path), Text: txt, Find: s.Find,
		Basic: s.Basic}
	if c.Value, err = c.File.Value(); err != nil {
		clear(txt)
		return explain.NewError("network.credentials.%s: %s: %v", s.Name, text.Word(path), err)
	}
	return nil
}

// fixed returns an error if commands can have the path of a credential lead to another file, whose content
// would then be sent. The file itself is closed to them, wherever it is.
func fixed(e *config.Effective, name, path string) error {
	a := e.Area()
	a.Policy = a.Policy.WithEntries(sandbox.PathEntry(hostfacts.RealPath(path), sandbox.LevelDeny))
	return reach.New(a).Decides("network.credentials."+name, path)
}

var (
	errOtherNames = errors.New("it has other names (hard links), by which commands could read it; remove them")
	errTooLarge   = errors.New("it is larger than 64 KiB")
)

// readSecret reads a file with a value.
func readSecret(path string) ([]byte, error) {
	const most = 64 << 10 // bytes: more than a credential may have
	f, err := safefile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if safefile.Names(f) > 1 {
		return nil, errOtherNames
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && len(text) > most {
		clear(text)
		err = errTooLarge
	}
	return text, err
}

// Close overwrites the values of credentials, and removes a recording that did not begin. The commands must
// have ended.
func (o *Options) Close() {
	o.secrets.Close()
	o.dropRecording()
}

// expand puts dummies of credentials into the headers that rules set; the values take their places on
// the way to the hosts that may have them. A header whose credential has no value is not set.
func (o *Options) expand(rules []network.RequestRule) []network.RequestRule {
	for i := range rules {
		var set []network.Pair
		for _, h := range rules[i].Set {
			if name, ok := config.Reference(h.Value); ok {
				dummy := o.secrets.Dummy(name)
				if dummy == "" {
					continue
				}
				h.Value = strings.ReplaceAll(h.Value, "{"+name+"}", dummy)
			}
			set = append(set, h)
		}
		rules[i].Set = set
	}
	return rules
}
