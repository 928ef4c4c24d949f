// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// noteEnvironment says that variables open something that the files do not: the tool that starts
// sallyport may have set them, and no one sees them in the files.
func (e *Effective) noteEnvironment() {
	var said []string
	say := func(k *Key, txt string) { said = append(said, k.Variable()+"="+text.Word(k.shown(txt))) }
	for _, k := range Keys() {
		for _, s := range e.Values[k.Name].Settings {
			switch {
			case s.Origin.Layer != Environment, s.Text == BuiltinReadOnly, k.Name == "read" &&
				e.Base != Minimal && e.Base != NoBase:
			case k.Name == "sandbox" && e.before != "" && (!covers(e.before, e.Base) || e.opens(s.Text)):
				say(k, s.Text)
			case k.Name == "rules", k.Name == "tmp" && s.Text == "host", k.Order == Opens:
				say(k, s.Text)
			}
		}
	}
	if len(said) > 0 {
		e.Notes = append(e.Notes, "the environment widens what commands may do: "+strings.Join(said, ", "))
	}
}

// opens reports whether a profile, if the text names one, opens something beside its mode.
func (e *Effective) opens(text string) bool {
	for p := e.config.profiles[text]; p != nil; {
		for name, v := range p.values {
			if k := Find(name); len(v) > 0 && (k.Order == Opens || name == "rules" ||
				name == "network.mode") {
				return true
			}
		}
		if p.extends == nil {
			return false
		}
		p = e.config.profiles[p.extends.Text]
	}
	return false
}
