// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"errors"
	"testing"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/rules"
)

// planted is a Site where a word means another program than it says.
type planted struct{ named, outside bool }

var errPlanted = errors.New("planted")

func site(ok bool) error {
	if ok {
		return nil
	}
	return errPlanted
}

func (p planted) Named([]string) error   { return site(p.named) }
func (p planted) Outside([]string) error { return site(p.outside) }

// TestSite: a program that commands can change is none that a rule or the safe list means; what
// shells run themselves is no program.
func TestSite(t *testing.T) {
	set := rules.Load(rules.Host{Dir: "/w"}, rules.Source{Name: "r", Text: []byte(`
prefix_rule(["tool"], sandbox = "outside")
prefix_rule(["./deploy.sh"], sandbox = "outside")
prefix_rule(["make"])
`)})
	for _, c := range []struct {
		name    string
		command []string
		policy  approval.Policy
		site    Site
		where   rules.Sandbox
		answer  Answer
		held    bool
	}{
		{"as it is meant", []string{"tool"}, approval.OnRequest, planted{true, true}, rules.Outside, Skip, false},
		{"planted", []string{"tool"}, approval.OnRequest, planted{false, false}, rules.Unsaid, Skip, true},
		{"what it runs is planted", []string{"tool"}, approval.OnRequest, planted{true, false}, rules.Unsaid, Skip, true},
		{"a relative path", []string{"./deploy.sh"}, approval.OnRequest, planted{false, false}, rules.Unsaid, Skip, true},
		{"in a script", []string{"/opt/bin/bash", "-c", "tool"}, approval.OnRequest, planted{true, true}, rules.Outside, Skip, false},
		{"a planted shell", []string{"bash", "-c", "tool"}, approval.OnRequest, planted{true, false}, rules.Unsaid, Skip, true},
		{"allowed", []string{"make"}, approval.Untrusted, planted{true, true}, rules.Unsaid, Skip, false},
		{"allowed, planted", []string{"make"}, approval.Untrusted, planted{false, false}, rules.Unsaid, Ask, false},
		{"safe", []string{"cat", "x"}, approval.Untrusted, planted{true, true}, rules.Unsaid, Skip, false},
		{"safe, elsewhere", []string{"/opt/bin/cat", "x"}, approval.Untrusted, planted{true, true}, rules.Unsaid, Skip, false},
		{"safe, planted", []string{"cat", "x"}, approval.Untrusted, planted{false, false}, rules.Unsaid, Ask, false},
		{"safe in a script of a planted shell", []string{"bash", "-c", "cd x"}, approval.Untrusted, planted{false, false}, rules.Unsaid, Ask, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Judge(&Question{Command: c.command, Rules: set, Host: rules.Host{Dir: "/w"},
				Approval: c.policy, SafeList: true, Site: c.site})
			if d.Where != c.where || d.Answer != c.answer || (d.Held != nil) != c.held {
				t.Errorf("%v, %v, %v", d.Where, d.Answer, d.Held)
			}
		})
	}
}
