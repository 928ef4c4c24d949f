// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// messages are the texts for people that have a word of others in them.
func messages(word string) map[string]string {
	name := "/w/" + word
	warnings := Policy{}.WithEntries(PathEntry(name, LevelWrite),
		SpecialEntry(":"+word, LevelRead)).Bind(Places{Dir: "/w"}).
		Warnings(name, func(string) string { return name })
	all := map[string]string{
		"unsupported": (&UnsupportedError{Need: name, Have: name, Hint: name}).Error(),
		"hidden":      (&HiddenError{What: word, Path: name}).Error(),
		"entry":       (&PolicyError{Entry: name, Reason: word}).Error(),
		"policy":      (&PolicyError{Reason: word}).Error(),
		"glob":        (&GlobError{Pattern: name, Reason: word}).Error(),
		"access":      Access{Op: Write, Path: name}.String(),
		"connect":     Access{Op: Connect, Addr: "@" + word}.String(),
		"denial":      Denial{Access: Access{Op: Write, Path: name}, Errno: word}.String(),
	}
	for i, w := range warnings {
		all[fmt.Sprint("warning ", i)] = w
	}
	return all
}

// TestMessagesPrint gives the words of an attacker to everything that makes a sentence.
func TestMessagesPrint(t *testing.T) {
	for _, word := range testenv.Hostile() {
		all := messages(word)
		if len(all) != 10 {
			t.Errorf("%d messages, want 10", len(all))
		}
		for name, text := range all {
			t.Run(name, func(t *testing.T) { testenv.Printed(t, text, 1) })
		}
	}
	if got, want := messages("é b")["denial"], "probably write /w/é b (é b, guessed)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
