// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Place is what confines a command, before rules change it. The zero Place is Restricted.
type Place uint8

// The places.
const (
	Restricted   Place = iota // a sandbox that restricts files
	Unrestricted              // a sandbox in which every file can be changed
	External                  // a sandbox that others built
	Full                      // none
	ruled                     // none, as rules say
)

// PlaceOf returns where a policy has commands run.
func PlaceOf(p sandbox.Policy) Place {
	switch {
	case p.Mode() == sandbox.External:
		return External
	case p.Mode() == sandbox.Full:
		return Full
	case p.LevelAt("/") == sandbox.LevelWrite:
		return Unrestricted
	}
	return Restricted
}

// A Wish is what the caller asks for beside the run itself.
type Wish uint8

// The wishes.
const (
	Stay  Wish = iota // nothing
	More              // permissions that the policy does not have
	Leave             // to run outside the sandbox
)

// Retry is what may be asked after an attempt that was denied something and failed.
type Retry uint8

// What may be asked.
const (
	RetryNone    Retry = iota // nothing: the result stays as it is
	RetryNarrow               // to run it again with the least grants that allow what was denied
	RetryOutside              // the same, or outside the sandbox where no grant helps
)

// A state is what a decision depends on: one bit of each group.
type state uint32

const (
	// What is known of the command.
	forbidden state = 1 << iota // by a rule
	prompted                    // a rule prompts for it, or may be about it
	dangerous                   // it removes without asking, and no rule is about that
	allowed                     // by rules, in all its parts
	safe                        // in all its parts, by rules or known to read only
	plain                       // none of these

	// The approval policy, and which questions it leaves open.
	untrusted
	onRequest
	granular
	never
	asksRules
	noRules
	asksSandbox
	noSandbox
	asksMore
	noMore

	// Where it runs, and whether something is denied there for good.
	inRestricted
	inUnrestricted
	inExternal
	inFull
	inRuled
	denying
	open

	// What the caller asks for that has an effect.
	stays
	wantsMore
	leaves

	anyCommand  = forbidden | prompted | notRuled
	notRuled    = dangerous | allowed | safe | plain
	anyPolicy   = untrusted | onRequest | granular | never
	anyQuestion = asksRules | noRules | asksSandbox | noSandbox | asksMore | noMore
	anyPlace    = inRestricted | inUnrestricted | inExternal | inFull | inRuled | denying | open
	anyWish     = stays | wantsMore | leaves

	notSandbox = inUnrestricted | inExternal | inFull | inRuled | denying | open
)

// A row decides where each bit of a state is one of its own. Why is a clause for people.
type row struct {
	when   state
	answer Answer
	reason string                          // or, where it names the command:
	says   func(*Question, *reader) string //
	why    string
}

// The texts of refusals are those that clients of codex know. People read them in other words.
const (
	NeverAsks   = "approval required by policy, but AskForApproval is set to Never"
	RulesOff    = "approval required by policy rule, but AskForApproval::Granular.rules is false"
	SandboxOff  = "approval required by policy, but AskForApproval::Granular.sandbox_approval is false"
	NeverMore   = "approval policy is Never" + noGrants
	NeverLeaves = "approval policy is Never; reject command — you cannot ask for escalated permissions if the approval policy is Never"
	noGrants    = "; reject command — you cannot request additional permissions unless the approval policy is OnRequest"
	noForce     = "rm -f style commands are not permitted. Use a safer approach"
)

// table is every decision: the first row that fits decides. The usual case comes first, then what
// does not run, what is asked about, and what runs. The wish to leave counts as danger does, because the
// sandbox answers neither.
var table = []row{
	{plain | onRequest | granular | never | anyQuestion | inRestricted | denying | open | stays, Skip, "", nil, "no rule is against it, and it stays in the sandbox"},

	{forbidden | anyPolicy | anyQuestion | anyPlace | anyWish, Forbid, "", (*Question).rejected, "a rule forbids it"},
	{prompted | never | anyQuestion | anyPlace | anyWish, Forbid, NeverAsks, nil, "rules want a question about it, and never asks none"},
	{prompted | granular | noRules | asksSandbox | noSandbox | asksMore | noMore | anyPlace | anyWish, Forbid, RulesOff, nil, "rules want a question about it, and this granular policy asks none for rules"},
	{notRuled | never | anyQuestion | anyPlace | leaves, Forbid, NeverLeaves, nil, "it asks to leave the sandbox, and never asks no question"},
	{notRuled | never | anyQuestion | anyPlace | wantsMore, Forbid, NeverMore, nil, "it asks for more than its sandbox allows, and never asks no question"},
	{anyCommand | granular | anyQuestion&^asksMore | anyPlace | wantsMore, Forbid, "approval policy is Granular" + noGrants, nil, "it asks for more than its sandbox allows, and this granular policy asks nothing about that"},
	{dangerous | granular | anyQuestion&^asksSandbox | anyPlace | leaves, Forbid, noForce, nil, "it removes without asking, outside the sandbox, and this granular policy asks nothing about that"},
	{dangerous | granular | anyQuestion&^asksSandbox | notSandbox | anyWish, Forbid, noForce, nil, "it removes without asking, no sandbox here protects the files, and this granular policy asks nothing about that"},
	{anyCommand | granular | anyQuestion&^asksSandbox | anyPlace | leaves, Forbid, SandboxOff, nil, "it asks to leave the sandbox, and this granular policy asks nothing about that"},
	{dangerous | never | anyQuestion | notSandbox | anyWish, Forbid, "", (*Question).removes, "it removes without asking, no sandbox here protects the files, and never asks no question"},

	{prompted | anyPolicy | anyQuestion | anyPlace | anyWish, Ask, "", (*Question).requires, "rules want a question about it"},
	{dangerous | untrusted | anyQuestion | anyPlace | anyWish, Ask, "", (*Question).force, "it removes without asking, and untrusted asks about that in a sandbox as well"},
	{dangerous | anyPolicy | anyQuestion | notSandbox | anyWish, Ask, "", (*Question).force, "it removes without asking, and no sandbox here protects the files"},
	{dangerous | anyPolicy | anyQuestion | anyPlace | leaves, Ask, "", (*Question).force, "it removes without asking, outside the sandbox"},
	{plain | untrusted | anyQuestion | anyPlace | anyWish, Ask, "", (*Question).unknown, "untrusted asks about all that rules do not allow and that is not known to read only"},
	{anyCommand | anyPolicy | anyQuestion | anyPlace | leaves, Ask, "it asks to run outside the sandbox", nil, "it asks to leave the sandbox"},
	{anyCommand | anyPolicy | anyQuestion | anyPlace | wantsMore, Ask, "it asks for more than its sandbox allows", nil, "it asks for more than its sandbox allows"},

	{allowed | anyPolicy | anyQuestion | inRuled | open | stays, Skip, "", nil, "rules allow all of it outside the sandbox"},
	{allowed | anyPolicy | anyQuestion | anyPlace | stays, Skip, "", nil, "rules allow all of it"},
	{safe | anyPolicy | anyQuestion | anyPlace | stays, Skip, "", nil, "all of it is allowed by rules or known to read only"},
	{dangerous | anyPolicy | anyQuestion | anyPlace | stays, Skip, "", nil, "it removes without asking, and its sandbox protects the files"},
	{plain | anyPolicy | anyQuestion | anyPlace | stays, Skip, "", nil, "no rule is against it, and it asks for nothing"},
}

// retries is what a denial may lead to, for commands that may run.
var retries = []struct {
	when  state
	retry Retry
	why   string
}{
	{anyCommand | anyPolicy | anyQuestion | anyPlace&^(inRestricted|inUnrestricted) | anyWish, RetryNone, ""},
	{anyCommand | anyPolicy | anyQuestion | anyPlace | leaves, RetryNone, ""},
	{anyCommand | anyPolicy | anyQuestion&^asksSandbox | anyPlace | anyWish, RetryNone, "; what it is denied stays denied"},
	{anyCommand | onRequest | anyQuestion | anyPlace | anyWish, RetryNarrow, "; if it is denied something and fails, the least grant is asked about"},
	{anyCommand | anyPolicy | anyQuestion | anyPlace&^open | anyWish, RetryNarrow, "; if it is denied something and fails, the least grant is asked about"},
	{anyCommand | anyPolicy | anyQuestion | anyPlace | anyWish, RetryOutside, "; if it is denied something and fails, the least grant is asked about, or to leave the sandbox"},
}

// settle returns the rows of the table for a state: the answer, and what a denial leads to.
func settle(s state) (by, retry int) {
	for s&^table[by].when != 0 {
		by++
	}
	if table[by].answer == Forbid {
		return by, 0
	}
	for s&^retries[retry].when != 0 {
		retry++
	}
	return by, retry
}

// Path says which row of the table decided, in a clause for people; empty where no row was
// needed, as for rules that do not load.
func (d *Decision) Path() string {
	if d.state == 0 {
		return ""
	}
	by, retry := settle(d.state)
	if table[by].answer == Forbid {
		return table[by].why
	}
	return table[by].why + retries[retry].why
}

// bits are those of the approval policy.
func bits(p approval.Policy) state {
	switch p = p.Known(); p {
	case approval.Never:
		return never | noRules | noSandbox | noMore
	case approval.OnRequest:
		return onRequest | asksRules | asksSandbox | asksMore
	case approval.Untrusted:
		return untrusted | asksRules | asksSandbox | asksMore
	}
	g, _ := p.Granular()
	s := granular | noRules | noSandbox | noMore
	for _, q := range []struct {
		on      bool
		yes, no state
	}{{g.Rules, asksRules, noRules}, {g.SandboxApproval, asksSandbox, noSandbox},
		{g.RequestPermissions, asksMore, noMore}} {
		if q.on {
			s = s&^q.no | q.yes
		}
	}
	return s
}

// around returns the place and what the caller asks for as far as it has an effect: where nothing
// confines the command there is nothing to ask for, and what is denied for good is not left.
func (q *Question) around(where rules.Sandbox) (state, Wish) {
	place, wish, hard := q.Place, q.Wish, open
	if q.bars() {
		hard = denying
	}
	switch where {
	case rules.Outside:
		place = ruled
	case rules.ReadOnly, rules.WorkspaceWrite:
		place = Restricted
	}
	if place >= External || wish == Leave && q.bars() {
		wish = Stay
	}
	return inRestricted<<place | hard | stays<<wish, wish
}
