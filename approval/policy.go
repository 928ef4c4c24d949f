// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package approval says when a command needs an approval. Package sandbox defines what
// a command may access, and package rules which commands may run.
package approval

import (
	"encoding/json"
	"fmt"

	"github.com/sallyport-dev/sallyport/internal/strict"
)

// A Policy says when a command needs an approval, and whether one may be asked for. The zero
// Policy is OnRequest. Policies are comparable. One that is no constant and not made by
// [Granular.Policy] counts as Untrusted.
type Policy uint8

// The policies. Granular ones are made by [Granular.Policy].
const (
	// OnRequest asks where a rule prompts, where the caller asks for more than the sandbox allows,
	// and about what removes without asking where no sandbox protects the files.
	OnRequest Policy = iota
	// Untrusted asks about every command that no rule allows and that is not on the safe list.
	Untrusted
	// Never asks about nothing: what needs an approval is forbidden.
	Never

	granular Policy = 1 << 7 // with the bits below

	sandboxApproval    Policy = 1 << 0
	rules              Policy = 1 << 1
	skillApproval      Policy = 1 << 2
	requestPermissions Policy = 1 << 3
	mcpElicitations    Policy = 1 << 4

	everything = sandboxApproval | rules | skillApproval | requestPermissions | mcpElicitations
)

// Granular is OnRequest with a choice of questions. What may not be asked is forbidden; the
// zero Granular asks nothing.
type Granular struct {
	SandboxApproval    bool `json:"sandbox_approval"`    // to leave the sandbox
	Rules              bool `json:"rules"`               // where a rule prompts
	SkillApproval      bool `json:"skill_approval"`      // to run a skill
	RequestPermissions bool `json:"request_permissions"` // for more permissions
	MCPElicitations    bool `json:"mcp_elicitations"`    // of MCP servers
}

// Policy returns the policy that asks the questions of g.
func (g Granular) Policy() Policy {
	p := granular
	for _, q := range []struct {
		on  bool
		bit Policy
	}{
		{g.SandboxApproval, sandboxApproval}, {g.Rules, rules}, {g.SkillApproval, skillApproval},
		{g.RequestPermissions, requestPermissions}, {g.MCPElicitations, mcpElicitations},
	} {
		if q.on {
			p |= q.bit
		}
	}
	return p
}

// Granular returns the questions that the policy may ask, and whether it is a granular one.
// For the others these are none for Never and all for OnRequest and Untrusted.
func (p Policy) Granular() (questions Granular, is bool) {
	p = p.Known()
	return Granular{
		p.asks(sandboxApproval), p.asks(rules), p.asks(skillApproval), p.asks(requestPermissions),
		p.asks(mcpElicitations),
	}, p&granular != 0
}

// Known returns p, and Untrusted for a value that is no policy.
func (p Policy) Known() Policy {
	if p <= Never || p&^everything == granular {
		return p
	}
	return Untrusted
}

func (p Policy) asks(bit Policy) bool {
	if p&granular == 0 {
		return p != Never
	}
	return p&bit != 0
}

// names are the words of the policies without members.
var names = map[Policy]string{OnRequest: "on-request", Untrusted: "untrusted", Never: "never"}

// String returns "untrusted", "on-request", "granular" or "never".
func (p Policy) String() string {
	if p = p.Known(); p&granular != 0 {
		return "granular"
	}
	return names[p]
}

// Parse returns the Policy for a word: "untrusted", "on-request", "never", or "on-failure", an older
// one: it is the granular policy that asks every question, which is OnRequest, and also asks to leave
// the sandbox after a failure where no grant helps. Other granular policies have no word.
func Parse(word string) (Policy, error) {
	for p, name := range names {
		if word == name {
			return p, nil
		}
	}
	switch word {
	case "on-failure":
		return granular | everything, nil
	case "granular":
		return Untrusted, fmt.Errorf(`approval policy "granular" needs its members; give an object such as {"granular":{"rules":true}}`)
	}
	return Untrusted, fmt.Errorf("unknown approval policy %q; use untrusted, on-request or never", word)
}

// A granularForm is the JSON form of a granular policy. Reject is its older form, with what is
// refused.
type granularForm struct {
	_        struct{} `rule:"name=approval policy,strict"`
	Granular *members `json:"granular,omitempty"`
	Reject   *members `json:"reject,omitempty"`
}

// members are those of a granular policy, of which none is unknown.
type members struct {
	_ struct{} `rule:"name=granular,strict"`
	Granular
}

// MarshalJSON returns the word of String, and for a granular policy an object with the member
// "granular".
func (p Policy) MarshalJSON() ([]byte, error) {
	if g, is := p.Granular(); is {
		return json.Marshal(granularForm{Granular: &members{Granular: g}})
	}
	return json.Marshal(p.String())
}

// UnmarshalJSON reads the form of MarshalJSON and the alias "on-failure". Members that are left
// out are false. What it does not know is an error, and leaves p as it was.
//
// An object with the member "reject" is read as well, for clients of older versions; it is
// deprecated, and never written. True means there that a question is refused, and what is left
// out may be asked.
func (p *Policy) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		var word string
		if err := json.Unmarshal(data, &word); err != nil {
			return fmt.Errorf("approval policy: %w", err)
		}
		parsed, err := Parse(word)
		if err == nil {
			*p = parsed
		}
		return err
	}
	var form granularForm
	if err := strict.Unmarshal(data, &form); err != nil {
		return fmt.Errorf("approval policy: %w; use a word or an object with the member granular", err)
	}
	switch g, not := form.Granular, form.Reject; {
	case g != nil && not != nil:
		return fmt.Errorf("approval policy: it has granular and reject; leave reject out")
	case g != nil:
		*p = g.Policy()
	case not != nil:
		*p = not.Policy() ^ everything
	default:
		return fmt.Errorf("approval policy: the member granular is missing; use a word or an object with it")
	}
	return nil
}
