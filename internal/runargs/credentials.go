// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runargs

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/config"
	"github.com/sallyport-dev/sallyport/internal/credswap"
	"github.com/sallyport-dev/sallyport/internal/failure"
	"github.com/sallyport-dev/sallyport/internal/plainfile"
	"github.com/sallyport-dev/sallyport/internal/printable"
	"github.com/sallyport-dev/sallyport/internal/suffixes"
	"github.com/sallyport-dev/sallyport/network"
)

// loadCredentials reads the values of credentials and makes their dummies. A variable that is not set is no
// credential. Files with values are closed to the command.
func (o *Options) loadCredentials(env *Env, e *config.Effective) error {
	settings, err := e.Credentials()
	if err != nil {
		return failure.New("%v", err)
	}
	var list []credswap.Credential
	for _, s := range settings {
		c := credswap.Credential{Name: s.Name, Env: s.Env, Hosts: s.Hosts, Where: s.Where, Shape: s.Shape}
		if s.File == "" {
			c.Value = []byte(env.Variable(s.Env))
		} else {
			path := Absolute(s.File, env.Dir, env.Variable("HOME"))
			o.Denied = append(o.Denied, path)
			if c.Value, err = readSecret(path); err != nil {
				return failure.New("network.credentials.%s: cannot read %s: %v; correct file", s.Name, printable.Word(path), failure.Cause(err))
			}
		}
		if len(c.Value) > 0 || s.File != "" {
			list = append(list, c)
		}
	}
	o.secrets, err = credswap.New(list, suffixes.IsPublic)
	var bad *credswap.Error
	if errors.As(err, &bad) {
		return failure.New("network.credentials.%s: %s", bad.Name, bad.Reason)
	}
	return err
}

// readSecret reads a file with a value, without the end of its line.
func readSecret(path string) ([]byte, error) {
	const most = 64 << 10 // bytes: more than a credential may have
	f, err := plainfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most))
	return bytes.TrimRight(text, "\r\n"), err
}

// Close overwrites the values of credentials. The commands must have ended.
func (o *Options) Close() { o.secrets.Close() }

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
