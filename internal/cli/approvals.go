// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/server/listen"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
)

const (
	approvalsHelp = `List open questions of running processes, and approvals that are remembered for
a session or permanently.

  sallyport approvals [--json]
  sallyport approvals revoke ID

revoke removes a rule from rules/default.rules, or makes a process forget an
approval. IDs may be shortened. The exit code is 1 if an ID is unknown.
`
	approveHelp = `Approve an open question of a running process, which sallyport approvals lists.

  sallyport approve ID [--session | --rule] [--path DIR]

An ID may be shortened. The exit code is 1 if there is no such question or it
was answered. A command in a sandbox cannot answer.
`
	denyHelp = `Deny an open question of a running process, which sallyport approvals lists.

  sallyport deny ID [--message TEXT]

An ID may be shortened. The exit code is 1 if there is no such question or it
was answered.
`
)

func approvalsFlags(o *options) []syntax.Flag { return []syntax.Flag{o.jsonFlag()} }

func approveFlags(o *options) []syntax.Flag {
	return []syntax.Flag{
		{Long: "session", Set: syntax.SetOn(&o.session), Help: "also when this is asked again in its session"},
		{Long: "rule", Set: syntax.SetOn(&o.rule), Help: "also in later runs: remember the offered rule or host"},
		{Long: "path", Value: "DIR", Set: syntax.SetText(&o.path),
			Help: "open the offered directory for a command that waits"},
	}
}

func denyFlags(o *options) []syntax.Flag {
	return []syntax.Flag{{Long: "message", Value: "TEXT", Set: syntax.SetText(&o.message),
		Help: "a message to the caller"}}
}

func approvalsCommand(_ context.Context, env *Env, o *options, words []string) error {
	switch {
	case len(words) == 1 && words[0] == "revoke":
		return explain.NewError("revoke needs an ID: sallyport approvals revoke ID")
	case len(words) > 0 && words[0] != "revoke":
		return explain.NewError("unknown argument %s%s", syntax.QuoteFlag(words[0]),
			syntax.NearestClause(words[0], []string{"revoke"}, "see sallyport help approvals"))
	case len(words) > 0 && o.json:
		return explain.NewError("--json is for the list: sallyport approvals --json")
	}
	list, err := listen.ListQuestions(dirs.DefaultRules(env.Variable))
	if err != nil {
		return err
	}
	if len(words) == 0 {
		return env.answer(list, o.json, true)
	}
	rule, err := list.Forget(words[1])
	if rule == "" {
		return unanswered(words[1], err)
	}
	return env.note(args.RulesKind, map[string]any{"action": "revoked", "rule": rule})
}

// answering returns the function that gives an answer, or the one that flags choose.
func answering(usual approval.Answer) func(context.Context, *Env, *options, []string) error {
	return func(_ context.Context, _ *Env, o *options, words []string) error {
		answer := usual
		switch {
		case len(words) == 0 || words[0] == "":
			return explain.NewError("the ID of a question is missing; sallyport approvals lists them")
		case o.session && o.rule:
			return explain.NewError("--session and --rule cannot be combined; use one of them")
		case o.session:
			answer = approval.ApprovedForSession
		case o.rule:
			answer = approval.ApprovedRule
		}
		list, err := listen.ListQuestions("")
		if err != nil {
			return err
		}
		return unanswered(words[0], list.Answer(words[0], answer, o.message, o.path))
	}
}

// unanswered returns the error for an ID with which nothing was done.
func unanswered(id string, err error) error {
	var none *listen.QuestionIDError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &none):
		return explain.ErrorWith(explain.CodeNo, sallyport.EndFailed, explain.OneLine(err),
			"sallyport approvals lists what is open")
	}
	return explain.ErrorWith(explain.CodeNo, sallyport.EndFailed, text.Word(id)+": "+explain.OneLine(err), "")
}

// approvalWords completes the words of approvals.
func approvalWords(before []string) (syntax.FlagKind, []candidate) {
	if !slices.Contains(before, "revoke") {
		return syntax.Words, []candidate{{"revoke"}}
	}
	return candidatesOf((*listen.QuestionListing).Remembered)
}

// openIDs are the IDs of open questions.
func openIDs([]string) (syntax.FlagKind, []candidate) {
	return candidatesOf((*listen.QuestionListing).Open)
}

func candidatesOf(ids func(*listen.QuestionListing) []candidate) (syntax.FlagKind, []candidate) {
	list, err := listen.ListQuestions(dirs.DefaultRules(System().Variable))
	if err != nil {
		return syntax.Words, nil // what cannot be read is not offered
	}
	return syntax.Words, ids(list)
}
