// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/rules"
)

var update = flag.Bool("update", false, "write testdata/paths.golden")

// peer is the tables of the peer's approvals, cell by cell, by section, row and column. Texts are
// what clients see; CMD and PREFIX stand for the command and for what a rule matched.
var peer = map[string]string{
	// 3.1: what becomes of what rules and heuristics say.
	"3.1 forbidden":                                                 "forbid: `CMD` rejected: policy forbids commands starting with `PREFIX`",
	"3.1 prompt by a rule, never":                                   "forbid: approval required by policy, but AskForApproval is set to Never",
	"3.1 prompt by a rule, granular rules=false":                    "forbid: approval required by policy rule, but AskForApproval::Granular.rules is false",
	"3.1 prompt by a rule, otherwise":                               "ask: `CMD` requires approval by policy",
	"3.1 prompt not by a rule, granular sandbox_approval=false":     "forbid: approval required by policy, but AskForApproval::Granular.sandbox_approval is false",
	"3.1 prompt for a forced rm, granular sandbox_approval=false":   "forbid: rm -f style commands are not permitted. Use a safer approach",
	"3.1 prompt not by a rule, otherwise":                           "ask",
	"3.1 allow":                                                     "skip",
	"3.2 safe, untrusted":                                           "allow",
	"3.2 safe, on-request and granular":                             "as plain",
	"3.2 safe, never":                                               "allow",
	"3.2 dangerous, untrusted":                                      "prompt",
	"3.2 dangerous, on-request and granular":                        "prompt",
	"3.2 dangerous, never":                                          "forbidden",
	"3.2 plain, untrusted":                                          "prompt",
	"3.2 plain, on-request and granular, unrestricted":              "allow",
	"3.2 plain, on-request and granular, external":                  "allow",
	"3.2 plain, on-request and granular, restricted, asks for more": "prompt",
	"3.2 plain, on-request and granular, restricted":                "allow",
	"3.2 plain, never":                                              "allow",
	"3.4 forced rm":                                                 "forbid: `CMD` rejected: rm -f style commands are not permitted. Use a safer approach",
	"4 denied reads, require_escalated":                             "use_default",
	"4 denied reads, with_additional_permissions":                   "with_additional_permissions",
	"6.1 on denial, untrusted":                                      "ask",
	"6.1 on denial, on-request":                                     "return",
	"6.1 on denial, granular sandbox_approval=true":                 "ask",
	"6.1 on denial, granular sandbox_approval=false":                "return",
	"6.1 on denial, never":                                          "return",
	"6.1 on denial, danger-full-access and external":                "return",
	"6.2 on-request":                                                "ask",
	"6.2 untrusted":                                                 "ask",
	"6.2 granular sandbox_approval=true":                            "ask",
	"6.2 granular sandbox_approval=false":                           "refuse",
	"6.2 never":                                                     "forbid: approval policy is Never; reject command — you cannot ask for escalated permissions if the approval policy is Never",
	"11 with_additional_permissions, on-request":                    "ask",
	"11 with_additional_permissions, untrusted":                     "forbid: approval policy is UnlessTrusted; reject command — you cannot request additional permissions unless the approval policy is OnRequest",
	"11 with_additional_permissions, granular":                      "forbid: approval policy is Granular; reject command — you cannot request additional permissions unless the approval policy is OnRequest",
	"11 with_additional_permissions, never":                         "forbid: approval policy is Never; reject command — you cannot request additional permissions unless the approval policy is OnRequest",
}

// The differences to the peer, each with its reason.
const (
	// [P] 0047: what a sandbox that restricts files contains is not asked about.
	contained = "a forced rm in a sandbox that restricts files is as any command, except under untrusted"
	// [P] 0047: a question that opens nothing only tires.
	nothing = "where there is no sandbox there is none to leave, and nothing more to have"
	// [P] 0039, users.md 2: an allow never takes a command out of the sandbox.
	allowStays = "an allow and a wish for more: the wish is asked about"
	// [P] 0047: its network and its processes are restricted, which leaving opens.
	opens = "to leave a sandbox that restricts no file is asked about as any other"
	// [P] 0039: rules are not dodged by spelling.
	spelling = "prompts and forbids count in scripts that are more than plain commands"
	// [P] 0039: the rule is the cause, and no other answer helps.
	ruleFirst = "what a rule forbids, or wants a question about that is not asked, is refused with the rule's text"
	// [P] 6.2 asks under untrusted and granular to leave; more is less than that.
	moreAsks = "more permissions are asked about under untrusted, and under granular with request_permissions"
	// choices.md: the narrow grant may be asked about after a denial that is a fact.
	narrow = "on-request asks for the least grant after a denial"
	// choices.md: only outside is barred by hard denials.
	narrowDenies = "where something is denied for good the least grant of something else may be asked about"
	// [P] 15: the policy of the seeds asks to leave the sandbox.
	asksOutside = "on-failure is granular with every question, so that a denial may lead outside"
)

var differences = []string{asksOutside, contained, nothing, allowStays, opens, spelling, ruleFirst, moreAsks,
	narrow, narrowDenies}

// overruled are cells of the peer that a difference replaces wholly.
var overruled = map[string]string{"11 with_additional_permissions, untrusted": moreAsks}

// A cell is one question.
type cell struct {
	rule, kind string // what a rule says, and what heuristics say
	complex    bool
	policy     string
	granular   approval.Granular
	place      Place
	denies     bool
	wish       Wish

	command, prefix string // as texts have it, and what a rule matches of it
}

func (c cell) String() string {
	policy := c.policy
	if policy == "granular" {
		policy = fmt.Sprintf("granular rules=%t sandbox_approval=%t request_permissions=%t", c.granular.Rules,
			c.granular.SandboxApproval, c.granular.RequestPermissions)
	}
	form := map[bool]string{false: "plain script", true: "complex script"}[c.complex]
	return fmt.Sprintf("rule %s, %s, %s; %s; %s, denies=%t; wish %s", c.rule, c.kind, form, policy,
		[...]string{"restricted", "unrestricted", "external", "full"}[c.place], c.denies,
		[...]string{"none", "more", "outside"}[c.wish])
}

// cells returns every combination.
func cells() (all []cell) {
	policies := []cell{{policy: "untrusted"}, {policy: "on-request"}, {policy: "on-failure"},
		{policy: "never"}}
	for i := range 8 {
		policies = append(policies, cell{policy: "granular",
			granular: approval.Granular{Rules: i&1 > 0, SandboxApproval: i&2 > 0,
				RequestPermissions: i&4 > 0}})
	}
	for _, c := range policies {
		for _, c.rule = range []string{"none", "allow", "outside", "prompt", "forbid"} {
			for _, c.kind = range []string{"safe", "plain", "dangerous"} {
				for i := range 4 * 4 * 3 {
					c.complex, c.denies, c.place, c.wish = i&1 > 0, i&2 > 0, Place(i>>2&3), Wish(i>>4)
					c.prefix = map[string]string{"safe": "cat", "plain": "make",
						"dangerous": "rm -f"}[c.kind] + " " + c.rule
					c.command = rules.JoinWords(bash(c.script()))
					all = append(all, c)
				}
			}
		}
	}
	return all
}

// cellRules give the commands of cells their rules.
const cellRules = `
def each(words):
    prefix_rule(words + ["allow"])
    prefix_rule(words + ["outside"], sandbox = "outside")
    prefix_rule(words + ["prompt"], "prompt")
    prefix_rule(words + ["forbid"], "forbidden")

each(["cat"])
each(["make"])
each(["rm", "-f"])
`

func (c cell) script() string {
	if c.complex {
		return c.prefix + " > x"
	}
	return c.prefix
}

// question returns what the judge is asked.
func (c cell) question(t testing.TB, set *rules.Set) Question {
	policy := c.granular.Policy()
	if c.policy != "granular" {
		var err error
		if policy, err = approval.Parse(c.policy); err != nil {
			t.Fatal(err)
		}
	}
	return Question{Command: bash(c.script()), Rules: set, Approval: policy, SafeList: true, Place: c.place,
		Denies: c.denies, Wish: c.wish}
}

// A sheet is the peer's tables with the differences that are on.
type sheet struct {
	cells map[string]string
	off   string // a difference that does not count
}

func (s *sheet) on(difference string) bool { return s.off != difference }

// want is what becomes of a cell: answer and text, and what a denial may lead to.
func (s *sheet) want(c cell) (answer string, retry Retry) {
	if c.policy == "on-failure" {
		c.policy = "on-request" // 1: its alias
		if s.on(asksOutside) {
			c.policy, c.granular = "granular", approval.Granular{Rules: true, SandboxApproval: true,
				RequestPermissions: true}
		}
	}
	if c.complex && (c.rule == "allow" || c.rule == "outside" || !s.on(spelling)) {
		c.rule = "none" // 3.1: the argv itself
	}
	if c.complex && c.kind == "safe" {
		c.kind = "plain" // 3.2: known safe, and parse not complex
	}
	if c.denies && c.wish == Leave && s.cells["4 denied reads, require_escalated"] == "use_default" ||
		c.denies && c.wish == More &&
			s.cells["4 denied reads, with_additional_permissions"] == "use_default" {
		c.wish = Stay
	}
	unconfined := c.place >= External || c.rule == "outside" && !c.denies // 4: Skip(bypass)
	if unconfined && s.on(nothing) {
		c.wish = Stay
	}
	answer = s.answer(c)
	if strings.HasPrefix(answer, "forbid") {
		return answer, RetryNone
	}
	column := c.policy
	switch {
	case unconfined:
		column = "danger-full-access and external"
	case c.policy == "granular":
		column = fmt.Sprintf("granular sandbox_approval=%t", c.granular.SandboxApproval)
	}
	switch {
	case c.wish == Leave: // 4: the first attempt has no sandbox
		return answer, RetryNone
	case c.policy == "on-request" && !unconfined &&
		s.cells["6.1 on denial, on-request"] == "return" && s.on(narrow):
		if c.denies && !s.on(narrowDenies) {
			return answer, RetryNone
		}
		return answer, RetryNarrow
	case s.cells["6.1 on denial, "+column] != "ask":
		return answer, RetryNone
	case c.denies && s.on(narrowDenies):
		return answer, RetryNarrow
	case c.denies: // 6, G6
		return answer, RetryNone
	}
	return answer, RetryOutside
}

// answer is sections 6.2, 11, 3.2 and 3.1.
func (s *sheet) answer(c cell) string {
	ruled := ""
	switch {
	case c.rule == "forbid":
		ruled = s.cells["3.1 forbidden"]
	case c.rule == "prompt" && c.policy == "never":
		ruled = s.cells["3.1 prompt by a rule, never"]
	case c.rule == "prompt" && c.policy == "granular" && !c.granular.Rules:
		ruled = s.cells["3.1 prompt by a rule, granular rules=false"]
	case c.rule == "prompt":
		ruled = s.cells["3.1 prompt by a rule, otherwise"]
	case c.rule == "allow", c.rule == "outside":
		ruled = s.cells["3.1 allow"]
	}
	if strings.HasPrefix(ruled, "forbid") && s.on(ruleFirst) {
		return ruled
	}
	wished := s.wished(c)
	switch {
	case strings.HasPrefix(wished, "forbid"):
		return wished
	case ruled == "skip" && wished == "ask" && s.on(allowStays):
		return "ask"
	case ruled != "":
		return ruled
	}
	text := s.unruled(c, wished)
	if wished == "ask" && text == "skip" && (c.place == Restricted || s.on(opens)) {
		return "ask"
	}
	return text
}

// wished is what becomes of the wish: "", "ask", or a refusal.
func (s *sheet) wished(c cell) string {
	switch c.wish {
	case Stay:
		return ""
	case Leave:
		column := c.policy
		if column == "granular" {
			column += fmt.Sprintf(" sandbox_approval=%t", c.granular.SandboxApproval)
		}
		if text := s.cells["6.2 "+column]; text != "refuse" {
			return text
		}
		return s.unasked(c)
	case More:
	}
	if s.on(moreAsks) && (c.policy == "untrusted" || c.policy == "granular" &&
		c.granular.RequestPermissions) {
		return "ask"
	}
	return s.cells["11 with_additional_permissions, "+c.policy]
}

// unasked is the refusal where granular does not ask about the sandbox.
func (s *sheet) unasked(c cell) string {
	if c.kind == "dangerous" && c.rule == "none" {
		return s.cells["3.1 prompt for a forced rm, granular sandbox_approval=false"]
	}
	return s.cells["3.1 prompt not by a rule, granular sandbox_approval=false"]
}

// unruled is what becomes of a command that no rule is about.
func (s *sheet) unruled(c cell, wished string) string {
	if c.kind == "dangerous" && c.place == Restricted && c.policy != "untrusted" && c.wish != Leave &&
		s.on(contained) {
		c.kind = "plain"
	}
	column := c.policy
	if column == "on-request" || column == "granular" {
		column = "on-request and granular"
	}
	said := ""
	if c.kind != "plain" {
		said = s.cells["3.2 "+c.kind+", "+column]
	}
	if c.kind == "plain" || said == "as plain" {
		if column == "on-request and granular" {
			switch {
			case c.place == Restricted && c.wish != Stay:
				column += ", restricted, asks for more"
			case c.place == Restricted:
				column += ", restricted"
			case c.place == External:
				column += ", external"
			default:
				column += ", unrestricted"
			}
		}
		said = s.cells["3.2 plain, "+column]
	}
	switch {
	case said == "allow":
		return s.cells["3.1 allow"]
	case said == "forbidden":
		return s.cells["3.4 forced rm"]
	case c.policy == "granular" && !c.granular.SandboxApproval &&
		(c.wish != More || wished != "ask" || c.kind == "dangerous"):
		return s.unasked(c)
	}
	return s.cells["3.1 prompt not by a rule, otherwise"]
}

// wrong returns how many decisions are not those of the sheet, and the first of them.
func (s *sheet) wrong(all []cell, decided []Decision) (n int, first string) {
	for i, c := range all {
		want, retry := s.want(c)
		want = strings.ReplaceAll(strings.ReplaceAll(want, "PREFIX", c.prefix), "CMD", c.command)
		d := decided[i]
		got := textOf(d)
		if want == "ask" && d.Answer == Ask && d.Reason != "" {
			got = want // the peer gives no reason
		}
		if got != want || d.Retry != retry || d.state == 0 {
			if n++; n == 1 {
				first = fmt.Sprintf("%v:\n%s, retry %d, want\n%s, retry %d (%s)", c, got, d.Retry, want,
					retry, d.Path())
			}
		}
	}
	return n, first
}

// decideAll asks the judge about every cell.
func decideAll(t testing.TB, all []cell, set *rules.Set) (decided []Decision) {
	for _, c := range all {
		q := c.question(t, set)
		decided = append(decided, Judge(&q))
	}
	return decided
}

// TestEveryCell: every combination is decided as the peer's tables say, but for the differences;
// and the tables here decide: a test with one cell changed, or without one difference, fails.
func TestEveryCell(t *testing.T) {
	set, all := load(t, cellRules), cells()
	decided := decideAll(t, all, set)
	if n, first := (&sheet{cells: peer}).wrong(all, decided); n > 0 {
		t.Fatalf("%d of %d: %s", n, len(all), first)
	}
	flips := 0
	for name := range peer {
		off := overruled[name]
		before, _ := (&sheet{cells: peer, off: off}).wrong(all, decided)
		for _, value := range []string{"skip", "ask", "forbid: x", "allow", "prompt", "forbidden",
			"use_default", "return"} {
			if value == peer[name] || strings.HasPrefix(peer[name], value+":") {
				continue
			}
			changed := maps.Clone(peer)
			changed[name] = value
			if n, _ := (&sheet{cells: changed, off: off}).wrong(all, decided); n != before {
				flips++
				break
			}
		}
	}
	if flips != len(peer) {
		t.Errorf("%d of %d cells of the peer's tables decide", flips, len(peer))
	}
	for _, name := range differences {
		n, _ := (&sheet{cells: peer, off: name}).wrong(all, decided)
		if n == 0 {
			t.Errorf("the difference %q is none", name)
		}
		t.Logf("%4d cells: %s", n, name)
	}
	t.Logf("%d cells, %d of %d cells of the peer's tables decide", len(all), flips, len(peer))
}

// TestTableMutants: no row of the judge's table can have another answer, or be left out.
func TestTableMutants(t *testing.T) {
	set, all := load(t, cellRules), cells()
	seen := map[state][2]int{}
	for _, d := range decideAll(t, all, set) {
		by, retry := settle(d.state)
		seen[d.state] = [2]int{by, retry}
	}
	differs := func() (is bool) {
		defer func() { is = is || recover() != nil }() // no row is left for a state
		for s, want := range seen {
			if by, retry := settle(s); by != want[0] || retry != want[1] {
				return true
			}
		}
		return false
	}
	const last = leaves
	kept, cleared, set1, gone := 0, 0, 0, 0
	whens := []*state{}
	for i := range table {
		whens = append(whens, &table[i].when)
	}
	for i := range retries {
		whens = append(whens, &retries[i].when)
	}
	for i, when := range whens {
		old := *when
		for bit := state(1); bit <= last; bit <<= 1 {
			// The last row of a table takes all that is left, so that settle ends.
			if ends := i == len(table)-1 || i == len(whens)-1; ends && old&bit != 0 {
				continue
			}
			*when = old ^ bit
			switch {
			case !differs():
				kept++
			case old&bit != 0:
				cleared++
			default:
				set1++
			}
		}
		if i != len(table)-1 && i != len(whens)-1 {
			*when = 0
			if differs() {
				gone++
			} else {
				t.Errorf("row %d can be left out", i)
			}
		}
		*when = old
	}
	t.Logf("%d states; of the bits %d cleared and %d added are noticed, %d have no effect; %d rows left out are noticed", len(seen), cleared, set1, kept, gone)
}

// TestAnswerMutants: no row can have another answer or text, or lead to another question later.
func TestAnswerMutants(t *testing.T) {
	set, all := load(t, cellRules), cells()
	decides, leads := map[int]cell{}, map[int]cell{} // by row, one cell
	for i, d := range decideAll(t, all, set) {
		by, retry := settle(d.state)
		decides[by] = all[i]
		if d.Answer != Forbid {
			leads[retry] = all[i]
		}
	}
	noticed := func(c cell) int {
		n, _ := (&sheet{cells: peer}).wrong([]cell{c}, decideAll(t, []cell{c}, set))
		return n
	}
	if len(decides) != len(table) || len(leads) != len(retries) {
		t.Fatalf("%d of %d, and %d of %d rows decide a cell", len(decides), len(table),
			len(leads), len(retries))
	}
	mutants := 0
	for i, c := range decides {
		row := &table[i]
		old := *row
		for _, row.answer = range []Answer{Forbid, Ask, Skip} {
			if row.answer != old.answer {
				if mutants++; noticed(c) == 0 {
					t.Errorf("row %d can be %v", i, row.answer)
				}
			}
		}
		*row = old
		if old.answer == Forbid {
			row.reason, row.says = "x", nil
			if mutants++; noticed(c) == 0 {
				t.Errorf("row %d can have another text", i)
			}
		}
		*row = old
	}
	for i, c := range leads {
		row := &retries[i]
		old := row.retry
		for _, row.retry = range []Retry{RetryNone, RetryNarrow, RetryOutside} {
			if row.retry != old {
				if mutants++; noticed(c) == 0 {
					t.Errorf("row %d of retries can be %v", i, row.retry)
				}
			}
		}
		row.retry = old
	}
	t.Logf("%d mutants are noticed", mutants)
}

// TestPaths: each row is a readable sentence. The golden file has how many cells a row decides.
func TestPaths(t *testing.T) {
	set, all := load(t, cellRules), cells()
	lines := map[string]int{}
	example := map[string]string{}
	for i, d := range decideAll(t, all, set) {
		line := fmt.Sprintf("%s: %s", [...]string{"forbid", "ask", "skip"}[d.Answer], d.Path())
		if lines[line]++; lines[line] == 1 {
			example[line] = all[i].String()
		}
	}
	var b strings.Builder
	for _, line := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintf(&b, "%s\n  %d cells, such as %s\n", line, lines[line], example[line])
	}
	name := filepath.Join("testdata", "paths.golden")
	if *update {
		if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil || string(want) != b.String() {
		t.Errorf("%v, or the paths are\n%s", err, b.String())
	}
}
