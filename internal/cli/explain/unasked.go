// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/command/judge"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// unasked are the texts for clients with which a question is refused that may not be asked, and what they
// say to a person.
var unasked = []struct{ text, words, fix string }{
	{judge.NeverAsks, "this command needs approval%s, and " + off, asking},
	{judge.NeverLeaves, "leaving the sandbox needs approval%s, and " + off, asking},
	{judge.NeverMore, "more permissions need approval%s, and " + off, asking},
	{judge.RulesOff, "this command needs approval%s, and approval has rules = false",
		"set rules = true there"},
	{judge.SandboxOff, "this command needs approval%s, and approval has sandbox_approval = false",
		"set sandbox_approval = true there"},
}

const (
	off    = "approval is never, which is the default without a terminal" // so the user need not have set it
	asking = "use -a on-request on a terminal, --approver PROG, or --approval-wait DUR"
)

// Unasked puts the text of an error about a question that may not be asked into words for people, with the
// reason of the rule, which may be nil, and says how to fix it. Other texts stay, without a fix.
func Unasked(said string, rule *sallyport.Rule) (words, fix string) {
	why := ""
	if rule != nil && rule.Justification != "" {
		why = " (" + text.Line(rule.Justification) + ")"
	}
	for _, u := range unasked {
		if strings.Contains(said, u.text) {
			return strings.Replace(said, u.text, strings.Replace(u.words, "%s", why, 1), 1), u.fix
		}
	}
	return said, ""
}

// Waiting says of a question for which there is no terminal who is asked, and for how long. Console says that
// one is open.
func Waiting(r *approval.Request, d time.Duration, console bool) string {
	id := ShellWord(r.ID)
	if console {
		return fmt.Sprintf("asks in the console, %.0f s left; sallyport approve %s and deny %s answer, too",
			d.Seconds(), id, id)
	}
	const words = "a question waits %v for sallyport approve %s, or deny %s; sallyport approvals shows it"
	return fmt.Sprintf(words, d, id, id)
}
