// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tty

import (
	"slices"
	"testing"
)

// TestBeside: a message of ours waits while a question is on the terminal, and one that would be out of date
// then is not printed.
func TestBeside(t *testing.T) {
	c, err := OpenConsole(nil, nil, nil, false, false)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	say := func(text string) func() { return func() { said = append(said, text) } }
	c.Beside(say("before"))
	if !c.Unless(say("also before")) {
		t.Error("nothing is open, and it is not printed")
	}
	c.Around(func() {
		c.Beside(say("after"))
		if c.Unless(say("never")) {
			t.Error("printed over a question")
		}
		say("answer")()
	})
	if want := []string{"before", "also before", "answer", "after"}; !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
}
