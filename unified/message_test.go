// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"errors"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestMessagesPrint gives the words of an attacker to everything that makes a sentence.
func TestMessagesPrint(t *testing.T) {
	place := func(q Request) error {
		_, err := new(Tools).command(&q)
		return err
	}
	for _, word := range testenv.Hostile() {
		cause := errors.New(word)
		lines := 1 + strings.Count(word, "\n") // a reason may have more than one
		testenv.Printed(t, notCreated(cause).Error(), lines)
		testenv.Printed(t, failed(word, nil).Error(), lines)
		testenv.Printed(t, ExecText(word, cause), 2*lines-1)
		testenv.Printed(t, WriteText(cause), lines)
		for _, err := range []error{
			place(Request{Command: "x", Dir: "\x00" + word}),
			place(Request{Command: "x", EnvironmentID: word + "."}), interrupted(1, cause),
			tooManyOf(1, []Info{{Command: word}}, nil),
			badArgument("exec_command", "", word, nil), badArgument("exec_command", word, word, nil),
		} {
			testenv.Printed(t, err.Error(), 1)
		}
		var b strings.Builder
		r := &Response{Notices: []string{word},
			Denials: []sandbox.Denial{{Access: sandbox.Access{Op: sandbox.Write, Path: word},
				Source: sandbox.Notified}}}
		r.writeFacts(&b)
		testenv.Printed(t, b.String(), 2)
	}
}
