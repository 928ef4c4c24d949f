// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gitstate

import (
	"strings"
	"sync"
)

// A Use says what a name in a git directory may be.
type Use uint8

const (
	File  Use = iota + 1 // a file whose values have a form
	Tree                 // a directory of data: names in it are not looked at, but links are
	State                // a directory with names of its own in the table
	Shut                 // closed by other means while a command runs
)

// A Name is a name that git or a tool of its own writes in a git directory.
type Name struct {
	Use  Use
	Form Form   // of a file; nil is any content
	Why  string // why values without the form are harmful; empty where there is no form
	// Whole says that git cannot go on without the file: its directory is harmful then.
	Whole bool
}

// Why values are harmful.
const (
	whyForm     = "it has a value that git does not write there, and that other programs may obey"
	whyStrategy = "git rebase --continue would run the program git-merge-STRATEGY for the strategy that it names"
	whyOption   = "git rebase --continue would give it to another program as an option"
	whyTodo     = "git rebase --continue would run the commands in its list"
	whyPrompt   = "the prompt of a shell shows it, and may run what is in it"
)

// gitNames are the names in the git directory of a work tree, with the form of the values that
// git writes there (git 2.30 to 2.55). Names in a directory of state follow a slash. What is
// not listed is not git's.
var gitNames = sync.OnceValue(func() map[string]Name {
	return map[string]Name{
		"HEAD": {Use: File, Form: head, Why: whyPrompt}, "ORIG_HEAD": {Use: File, Form: pseudoRef}, "FETCH_HEAD": {Use: File},
		"MERGE_HEAD": {Use: File, Form: objects}, "CHERRY_PICK_HEAD": {Use: File, Form: pseudoRef}, "REVERT_HEAD": {Use: File, Form: pseudoRef},
		"REBASE_HEAD": {Use: File, Form: pseudoRef}, "AUTO_MERGE": {Use: File, Form: pseudoRef}, "BISECT_HEAD": {Use: File, Form: pseudoRef},
		"BISECT_EXPECTED_REV": {Use: File, Form: pseudoRef}, "NOTES_MERGE_PARTIAL": {Use: File, Form: pseudoRef}, "NOTES_MERGE_REF": {Use: File, Form: head},
		"MERGE_AUTOSTASH": {Use: File, Form: objects}, "MERGE_MODE": {Use: File, Form: oneOf("no-ff")}, "shallow": {Use: File, Form: objects},
		"MERGE_MSG": {Use: File}, "SQUASH_MSG": {Use: File}, "COMMIT_EDITMSG": {Use: File}, "TAG_EDITMSG": {Use: File},
		"NOTES_EDITMSG": {Use: File}, "EDIT_DESCRIPTION": {Use: File}, "REPLACE_EDITOBJ": {Use: File}, "ADD_EDIT.patch": {Use: File},
		"addp-hunk-edit.diff": {Use: File}, "PULLREQ_EDITMSG": {Use: File}, "GITGUI_MSG": {Use: File}, "GITGUI_EDITMSG": {Use: File}, "GITGUI_BCK": {Use: File},
		"MERGE_RR":     {Use: File, Form: rerereNames, Why: "git rerere would write to the file outside of the work tree that it names"},
		"BISECT_START": {Use: File, Form: branch, Why: "git bisect reset would give it to git checkout as an option"},
		"BISECT_NAMES": {Use: File, Form: quotedLines, Why: "git bisect visualize of older versions would run it in a shell"},
		"BISECT_LOG":   {Use: File, Form: bisectLog, Why: "git bisect replay of older versions would run it in a shell"},
		"BISECT_TERMS": {Use: File, Form: terms},
		"BISECT_RUN":   {Use: File}, "BISECT_ANCESTORS_OK": {Use: File, Form: nothing}, "BISECT_FIRST_PARENT": {Use: File, Form: nothing},
		"BISECT_RESET_WHEN_FOUND": {Use: File, Form: plainWord},
		"index":                   {Use: File}, "packed-refs": {Use: File}, "packed-refs.new": {Use: File}, "gc.pid": {Use: File, Form: plainWord}, "gc.log": {Use: File},
		"description": {Use: File}, "rebased-patches": {Use: File}, "locked": {Use: File}, "history-split.index": {Use: File},
		"objects": {Use: Tree}, "refs": {Use: Tree}, "logs": {Use: Tree}, "reftable": {Use: Tree}, "rr-cache": {Use: Tree}, "lost-found": {Use: Tree},
		"NOTES_MERGE_WORKTREE": {Use: Tree}, "subtree-cache": {Use: Tree}, "fsmonitor--daemon": {Use: Tree}, "lfs": {Use: Tree}, "annex": {Use: Tree},
		"svn": {Use: Tree}, "filter-repo": {Use: Tree}, "worktrees": {Use: Tree}, // each is looked at as a git directory
		"commondir": {Use: Shut}, "gitdir": {Use: Shut}, "config": {Use: Shut}, "config.worktree": {Use: Shut}, "hooks": {Use: Shut},
		"info": {Use: Shut}, "modules": {Use: Shut}, "branches": {Use: Shut}, "remotes": {Use: Shut},
		"rebase-merge": {Use: State}, "rebase-apply": {Use: State}, "sequencer": {Use: State},

		"rebase-merge/git-rebase-todo": {Use: File, Form: todo, Why: whyTodo, Whole: true}, "rebase-merge/git-rebase-todo.backup": {Use: File},
		"rebase-merge/done": {Use: File}, "rebase-merge/dropped": {Use: File},
		"rebase-merge/msgnum": {Use: File, Form: number, Why: whyPrompt}, "rebase-merge/end": {Use: File, Form: number, Why: whyPrompt},
		"rebase-merge/message": {Use: File}, "rebase-merge/message-squash": {Use: File}, "rebase-merge/message-fixup": {Use: File},
		"rebase-merge/current-fixups": {Use: File, Form: fixups}, "rebase-merge/patch": {Use: File},
		"rebase-merge/author-script": {Use: File, Form: authorScript, Why: "scripts read it as a part of a shell script"},
		"rebase-merge/amend":         {Use: File, Form: objects}, "rebase-merge/stopped-sha": {Use: File, Form: objects},
		"rebase-merge/rewritten-list": {Use: File, Form: objects}, "rebase-merge/rewritten-pending": {Use: File, Form: objects},
		"rebase-merge/squash-onto": {Use: File, Form: objects}, "rebase-merge/refs-to-delete": {Use: File, Form: refNames},
		"rebase-merge/update-refs": {Use: File, Form: refsAndObjects},
		"rebase-merge/orig-head":   {Use: File, Form: objects}, "rebase-merge/head": {Use: File, Form: objects},
		"rebase-merge/onto": {Use: File, Form: objects}, "rebase-merge/head-name": {Use: File, Form: branchHead, Why: whyPrompt},
		"rebase-merge/autostash": {Use: File, Form: objects}, "rebase-merge/interactive": {Use: File, Form: nothing},
		"rebase-merge/quiet": {Use: File, Form: oneOf("t")}, "rebase-merge/verbose": {Use: File, Form: oneOf("t")},
		"rebase-merge/signoff": {Use: File, Form: oneOf("--signoff")}, "rebase-merge/cdate_is_adate": {Use: File, Form: nothing},
		"rebase-merge/ignore_date": {Use: File, Form: nothing}, "rebase-merge/trailer": {Use: File},
		"rebase-merge/strategy": {Use: File, Form: strategy, Why: whyStrategy}, "rebase-merge/strategy_opts": {Use: File, Form: strategyWords, Why: whyOption},
		"rebase-merge/gpg_sign_opt":            {Use: File, Form: oneOf("-S", "--no-gpg-sign"), Why: whyOption},
		"rebase-merge/allow_rerere_autoupdate": {Use: File, Form: oneOf("--rerere-autoupdate", "--no-rerere-autoupdate"), Why: whyOption},
		"rebase-merge/reschedule-failed-exec":  {Use: File, Form: nothing}, "rebase-merge/no-reschedule-failed-exec": {Use: File, Form: nothing},
		"rebase-merge/drop_redundant_commits": {Use: File, Form: nothing}, "rebase-merge/keep_redundant_commits": {Use: File, Form: nothing},

		"rebase-apply/next": {Use: File, Form: number, Why: whyPrompt}, "rebase-apply/last": {Use: File, Form: number, Why: whyPrompt},
		"rebase-apply/author-script": {Use: File, Form: authorScript, Why: "scripts read it as a part of a shell script"},
		"rebase-apply/final-commit":  {Use: File}, "rebase-apply/info": {Use: File}, "rebase-apply/patch": {Use: File}, "rebase-apply/msg": {Use: File},
		"rebase-apply/msg-clean": {Use: File}, "rebase-apply/final-message": {Use: File}, "rebase-apply/patch-merge-index": {Use: File},
		"rebase-apply/original-commit": {Use: File, Form: objects}, "rebase-apply/abort-safety": {Use: File, Form: objects},
		"rebase-apply/rewritten": {Use: File, Form: objects}, "rebase-apply/orig-head": {Use: File, Form: objects},
		"rebase-apply/onto": {Use: File, Form: objects}, "rebase-apply/head": {Use: File, Form: objects},
		"rebase-apply/head-name": {Use: File, Form: branchHead, Why: whyPrompt}, "rebase-apply/autostash": {Use: File, Form: objects},
		"rebase-apply/rebasing": {Use: File, Form: nothing}, "rebase-apply/applying": {Use: File, Form: nothing},
		"rebase-apply/threeway": {Use: File, Form: flag}, "rebase-apply/quiet": {Use: File, Form: flag},
		"rebase-apply/sign": {Use: File, Form: flag}, "rebase-apply/utf8": {Use: File, Form: flag},
		"rebase-apply/keep": {Use: File, Form: flag}, "rebase-apply/messageid": {Use: File, Form: flag},
		"rebase-apply/scissors": {Use: File, Form: flag}, "rebase-apply/dirtyindex": {Use: File, Form: flag},
		"rebase-apply/verbose": {Use: File, Form: flag}, "rebase-apply/no_inbody_headers": {Use: File, Form: flag},
		"rebase-apply/rerere-autoupdate": {Use: File, Form: flag},
		"rebase-apply/quoted-cr":         {Use: File, Form: oneOf("nowarn", "warn", "strip", "")},
		"rebase-apply/signoff":           {Use: File, Form: oneOf("--signoff")},
		"rebase-apply/apply-opt": {
			Use: File, Form: applyWords, Whole: true,
			Why: "git am --continue would give these options to git apply, which can write to any file",
		},
		"rebase-apply/strategy": {Use: File, Form: strategy, Why: whyStrategy}, "rebase-apply/strategy_opts": {Use: File, Form: strategyWords, Why: whyOption},
		"rebase-apply/gpg_sign_opt":            {Use: File, Form: oneOf("-S", "--no-gpg-sign"), Why: whyOption},
		"rebase-apply/allow_rerere_autoupdate": {Use: File, Form: oneOf("--rerere-autoupdate", "--no-rerere-autoupdate"), Why: whyOption},

		"sequencer/todo": {Use: File, Form: todo, Why: "its list has commands that git does not write there", Whole: true},
		"sequencer/head": {Use: File, Form: objects}, "sequencer/abort-safety": {Use: File, Form: objects},
		"sequencer/opts": {
			Use: File, Form: sequencerOpts,
			Why: "git cherry-pick --continue would run the merge strategy, or give the options to one, that it names",
		},
	}
})

// LookUp returns what is known of a name in a git directory, or in a directory of state in it.
func LookUp(name string) (Name, bool) {
	if k, ok := gitNames()[name]; ok {
		if k.Form != nil && k.Why == "" {
			k.Why = whyForm
		}
		return k, true
	}
	dir, base, deep := strings.Cut(name, "/")
	if !deep {
		dir, base = "", name
	}
	if strings.HasPrefix(base, ".sallyport-quarantine-") {
		return Name{Use: File}, true // quarantined, where nothing looks for it
	}
	if locked, ok := strings.CutSuffix(base, ".lock"); ok { // git does not read these, it renames them
		k, listed := gitNames()[strings.TrimSuffix(name, ".lock")]
		ok = listed && (k.Use == File || locked == "config" || locked == "config.worktree") ||
			temporary(dir, locked)
		return Name{Use: File}, ok
	}
	return Name{Use: File}, temporary(dir, base) || editorsFile(dir, base)
}

// temporary reports whether a name in a git directory, or in one of state in it, is one of those
// that git makes with numbers or random letters. None of these files is read by its name.
func temporary(dir, base string) bool {
	switch dir {
	case "":
		return numbered(base, "sharedindex.", "sharedindex_", "index.", "index.stash.", "next-index-",
			"shallow_", "fast_import_crash_")
	case "rebase-apply":
		return digits(base) // mails
	case "rebase-merge":
		return numbered(base, "patch-", "message.", "cmt.")
	}
	return false
}

// numbered reports whether a name is one of the prefixes with letters, digits, "_" or "-" behind.
func numbered(name string, prefixes ...string) bool {
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(name, p); ok && rest != "" && strings.Trim(rest, wordChars) == "" {
			return true
		}
	}
	return false
}

// editorsFile reports whether a name beside a file that git has people edit is one that editors,
// sed, perl and scripts make there: a copy of the file, or a new one that is renamed over it.
func editorsFile(dir, base string) bool {
	rest := strings.Trim(strings.TrimPrefix(base, "."), "~#")
	for name := rest; name != ""; name = name[:len(name)-1] { // the longest listed name it begins with
		k, ok := gitNames()[join2(dir, name)]
		if !ok || k.Use != File || k.Form != nil && !k.Whole {
			continue
		}
		return rest != base || strings.Trim(strings.TrimPrefix(base, name), wordChars+".") == "" &&
			base[len(name)] == '.'
	}
	random, ok := strings.CutPrefix(base, "sed")
	if python, isTmp := strings.CutPrefix(base, "tmp"); isTmp {
		return len(python) == 8 && strings.Trim(python, wordChars) == ""
	}
	return digits(base) || ok && len(random) == 6 && strings.Trim(random, wordChars) == "" ||
		// perl
		len(base) == 8 && strings.Trim(base, wordChars) == "" && strings.ContainsAny(base, upperOrDigit)
}

// upperOrDigit are characters that random names have, and that no name which is obeyed has.
const upperOrDigit = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

func join2(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
