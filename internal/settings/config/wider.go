// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
)

// opensNothing are the settings and the flags of one run that open nothing, whatever their value. Variables
// are none of them: where a rule leads a command outside, they can have it run other programs.
var opensNothing = []string{
	"approval_wait", "ask_in_console", "login", "max_output", "quiet", "shell", "tty", "verbose",
	"--command", "--interactive", "--json", "--jsonl", "--jsonl-drop", "--justification", "--prefix-rule",
}

// Wider returns the name of a setting or flag by which one run may do more than another one, or something
// else: the settings that hold for the run are e, and those of the other one than. Empty means that it may
// do no more.
func (r *Run) Wider(e *Effective, other *Run, than *Effective) string {
	for _, f := range RunFlags() {
		if f.row.Name == "" && !slices.Contains(opensNothing, f.Name()) &&
			!slices.Equal(r.values(f), other.values(f)) {
			return f.Name()
		}
	}
	for _, k := range Keys() {
		if !slices.Contains(opensNothing, k.Name) && e.wider(k, than) {
			return k.Name
		}
	}
	return ""
}

// values are the words of a flag that was given.
func (r *Run) values(f *Flag) (words []string) {
	for _, w := range r.given {
		if w == f.Name() || strings.HasPrefix(w, f.Name()+"=") {
			words = append(words, w)
		}
	}
	return words
}

// wider reports whether a key opens more than it does in others, or changes what has no order.
func (e *Effective) wider(k *Key, than *Effective) bool {
	got, bound := e.Values[k.Name], than.Values[k.Name]
	missing := func(in Value) func(string) bool {
		return func(text string) bool { return !slices.Contains(in.Texts(), text) }
	}
	switch {
	case k.Name == "sandbox":
		return !covers(than.Base, e.Base)
	case slices.Equal(got.Texts(), bound.Texts()):
		return false
	case k.Name == "read" && slices.ContainsFunc(bound.Texts(), missing(got)):
		return true // it is a bound for writing, too
	case k.Order == Opens:
		return slices.ContainsFunc(got.Texts(), missing(bound))
	case k.Order == Narrows && k.Name != "rules": // rules can lead outside
		return slices.ContainsFunc(bound.Texts(), missing(got))
	case k.Order == None || k.IsList():
		return true
	case k.Order == Smaller && bound.Text() == "":
		return false // any number is less than none
	}
	return k.wider(got.Text(), bound.Text())
}
