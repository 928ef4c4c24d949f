// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/reach"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestShellInReach: nobody is asked about a script of a shell that commands can change, and it does
// not leave the sandbox.
func TestShellInReach(t *testing.T) {
	ws := t.TempDir()
	text, err := os.ReadFile("/bin/sh")
	if err == nil {
		err = errors.Join(os.Mkdir(ws+"/bin", 0o700), os.WriteFile(ws+"/bin/sh", text, 0o700))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, shell, rule string
		leave, asked      bool
	}{
		{"a wish to leave", ws + "/bin/sh", "", true, false},
		{"a rule that asks", ws + "/bin/sh", `prefix_rule(["tool"], "prompt")`, false, false},
		{"a wish to leave, out of reach", "/bin/sh", "", true, true},
		{"a rule that asks, out of reach", "/bin/sh", `prefix_rule(["tool"], "prompt")`, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := false
			r := &Runner{
				Policy: sandbox.WorkspaceWrite(), Approval: approval.OnRequest,
				Rules: rules.Load(rules.Host{Dir: ws}, rules.Source{Name: "r", Text: []byte(c.rule)}),
				Approver: approval.Func(func(_ context.Context, q *approval.Request) (approval.Decision, error) {
					asked = true
					return q.Decide(approval.Denied), nil
				}),
			}
			defer r.Close()
			_, err := r.Run(t.Context(), &Cmd{Script: "tool", Shell: c.shell, Dir: ws, Unsandboxed: c.leave})
			if in := new(reach.Error); !errors.Is(err, ErrRefused) || asked != c.asked || errors.As(err, &in) == c.asked {
				t.Errorf("asked %v: %v", asked, err)
			}
		})
	}
}
