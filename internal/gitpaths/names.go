// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gitpaths

import "strings"

// A use says what a name in a git directory may be.
type use uint8

const (
	useFile  use = iota + 1 // a file whose values have a form
	useTree                 // a directory of data: names in it are not looked at, but links are
	useState                // a directory with names of its own in the table
	useShut                 // closed by other means while a command runs
)

// A known is a name that git or a tool of its own writes in a git directory.
type known struct {
	use  use
	form form // of a file; nil is any content
	why  string
	// whole says that git cannot go on without the file: its directory is harmful then.
	whole bool
}

// Why values are harmful.
const (
	whyName     = "git does not make a file of this name; other programs may obey it"
	whyForm     = "it has a value that git does not write there, and that other programs may obey"
	whyStrategy = "git rebase --continue would run the program git-merge-STRATEGY for the strategy that it names"
	whyOption   = "git rebase --continue would give it to another program as an option"
	whyTodo     = "git rebase --continue would run the commands in its list"
	whyPrompt   = "the prompt of a shell shows it, and may run what is in it"
	whyIndex    = "git checkout would write to a path outside of the work tree, or in .git, that it names"
)

// gitNames are the names in the git directory of a work tree, with the form of the values that
// git writes there (git 2.30 to 2.55). Names in a directory of state follow a slash. What is
// not listed is not git's.
var gitNames = map[string]known{
	"HEAD": {use: useFile, form: head, why: whyPrompt}, "ORIG_HEAD": {use: useFile, form: pseudoRef}, "FETCH_HEAD": {use: useFile},
	"MERGE_HEAD": {use: useFile, form: objects}, "CHERRY_PICK_HEAD": {use: useFile, form: pseudoRef}, "REVERT_HEAD": {use: useFile, form: pseudoRef},
	"REBASE_HEAD": {use: useFile, form: pseudoRef}, "AUTO_MERGE": {use: useFile, form: pseudoRef}, "BISECT_HEAD": {use: useFile, form: pseudoRef},
	"BISECT_EXPECTED_REV": {use: useFile, form: pseudoRef}, "NOTES_MERGE_PARTIAL": {use: useFile, form: pseudoRef}, "NOTES_MERGE_REF": {use: useFile, form: head},
	"MERGE_AUTOSTASH": {use: useFile, form: objects}, "MERGE_MODE": {use: useFile, form: oneOf("no-ff")}, "shallow": {use: useFile, form: objects},
	"MERGE_MSG": {use: useFile}, "SQUASH_MSG": {use: useFile}, "COMMIT_EDITMSG": {use: useFile}, "TAG_EDITMSG": {use: useFile},
	"NOTES_EDITMSG": {use: useFile}, "EDIT_DESCRIPTION": {use: useFile}, "REPLACE_EDITOBJ": {use: useFile}, "ADD_EDIT.patch": {use: useFile},
	"addp-hunk-edit.diff": {use: useFile}, "PULLREQ_EDITMSG": {use: useFile}, "GITGUI_MSG": {use: useFile}, "GITGUI_EDITMSG": {use: useFile}, "GITGUI_BCK": {use: useFile},
	"MERGE_RR":     {use: useFile, form: rerereNames, why: "git rerere would write to the file outside of the work tree that it names"},
	"BISECT_START": {use: useFile, form: branch, why: "git bisect reset would give it to git checkout as an option"},
	"BISECT_NAMES": {use: useFile, form: quotedLines, why: "git bisect visualize of older versions would run it in a shell"},
	"BISECT_LOG":   {use: useFile, form: bisectLog, why: "git bisect replay of older versions would run it in a shell"},
	"BISECT_TERMS": {use: useFile, form: terms, why: whyForm},
	"BISECT_RUN":   {use: useFile}, "BISECT_ANCESTORS_OK": {use: useFile, form: nothing}, "BISECT_FIRST_PARENT": {use: useFile, form: nothing},
	"BISECT_RESET_WHEN_FOUND": {use: useFile, form: plainWord},
	"index":                   {use: useFile}, "packed-refs": {use: useFile}, "packed-refs.new": {use: useFile}, "gc.pid": {use: useFile, form: plainWord}, "gc.log": {use: useFile},
	"description": {use: useFile}, "rebased-patches": {use: useFile}, "locked": {use: useFile}, "history-split.index": {use: useFile},
	"objects": {use: useTree}, "refs": {use: useTree}, "logs": {use: useTree}, "reftable": {use: useTree}, "rr-cache": {use: useTree}, "lost-found": {use: useTree},
	"NOTES_MERGE_WORKTREE": {use: useTree}, "subtree-cache": {use: useTree}, "fsmonitor--daemon": {use: useTree}, "lfs": {use: useTree}, "annex": {use: useTree},
	"svn": {use: useTree}, "filter-repo": {use: useTree}, "worktrees": {use: useTree}, // each is looked at as a git directory
	commonName: {use: useShut}, gitdirName: {use: useShut}, configName: {use: useShut}, worktreeName: {use: useShut}, hooksName: {use: useShut},
	"info": {use: useShut}, "modules": {use: useShut}, "branches": {use: useShut}, "remotes": {use: useShut},
	"rebase-merge": {use: useState}, "rebase-apply": {use: useState}, "sequencer": {use: useState},

	"rebase-merge/git-rebase-todo": {use: useFile, form: todo, why: whyTodo, whole: true}, "rebase-merge/git-rebase-todo.backup": {use: useFile},
	"rebase-merge/done": {use: useFile}, "rebase-merge/dropped": {use: useFile},
	"rebase-merge/msgnum": {use: useFile, form: number, why: whyPrompt}, "rebase-merge/end": {use: useFile, form: number, why: whyPrompt},
	"rebase-merge/message": {use: useFile}, "rebase-merge/message-squash": {use: useFile}, "rebase-merge/message-fixup": {use: useFile},
	"rebase-merge/current-fixups": {use: useFile, form: fixups, why: whyForm}, "rebase-merge/patch": {use: useFile},
	"rebase-merge/author-script": {use: useFile, form: authorScript, why: "scripts read it as a part of a shell script"},
	"rebase-merge/amend":         {use: useFile, form: objects, why: whyForm}, "rebase-merge/stopped-sha": {use: useFile, form: objects, why: whyForm},
	"rebase-merge/rewritten-list": {use: useFile, form: objects, why: whyForm}, "rebase-merge/rewritten-pending": {use: useFile, form: objects, why: whyForm},
	"rebase-merge/squash-onto": {use: useFile, form: objects, why: whyForm}, "rebase-merge/refs-to-delete": {use: useFile, form: refNames, why: whyForm},
	"rebase-merge/update-refs": {use: useFile, form: refsAndObjects, why: whyForm},
	"rebase-merge/orig-head":   {use: useFile, form: objects, why: whyForm}, "rebase-merge/head": {use: useFile, form: objects, why: whyForm},
	"rebase-merge/onto": {use: useFile, form: objects, why: whyForm}, "rebase-merge/head-name": {use: useFile, form: branchHead, why: whyPrompt},
	"rebase-merge/autostash": {use: useFile, form: objects, why: whyForm}, "rebase-merge/interactive": {use: useFile, form: nothing, why: whyForm},
	"rebase-merge/quiet": {use: useFile, form: oneOf("t"), why: whyForm}, "rebase-merge/verbose": {use: useFile, form: oneOf("t"), why: whyForm},
	"rebase-merge/signoff": {use: useFile, form: oneOf("--signoff"), why: whyForm}, "rebase-merge/cdate_is_adate": {use: useFile, form: nothing, why: whyForm},
	"rebase-merge/ignore_date": {use: useFile, form: nothing, why: whyForm}, "rebase-merge/trailer": {use: useFile},
	"rebase-merge/strategy": {use: useFile, form: strategy, why: whyStrategy}, "rebase-merge/strategy_opts": {use: useFile, form: strategyWords, why: whyOption},
	"rebase-merge/gpg_sign_opt":            {use: useFile, form: oneOf("-S", "--no-gpg-sign"), why: whyOption},
	"rebase-merge/allow_rerere_autoupdate": {use: useFile, form: oneOf("--rerere-autoupdate", "--no-rerere-autoupdate"), why: whyOption},
	"rebase-merge/reschedule-failed-exec":  {use: useFile, form: nothing, why: whyForm}, "rebase-merge/no-reschedule-failed-exec": {use: useFile, form: nothing, why: whyForm},
	"rebase-merge/drop_redundant_commits": {use: useFile, form: nothing, why: whyForm}, "rebase-merge/keep_redundant_commits": {use: useFile, form: nothing, why: whyForm},

	"rebase-apply/next": {use: useFile, form: number, why: whyPrompt}, "rebase-apply/last": {use: useFile, form: number, why: whyPrompt},
	"rebase-apply/author-script": {use: useFile, form: authorScript, why: "scripts read it as a part of a shell script"},
	"rebase-apply/final-commit":  {use: useFile}, "rebase-apply/info": {use: useFile}, "rebase-apply/patch": {use: useFile}, "rebase-apply/msg": {use: useFile},
	"rebase-apply/msg-clean": {use: useFile}, "rebase-apply/final-message": {use: useFile}, "rebase-apply/patch-merge-index": {use: useFile},
	"rebase-apply/original-commit": {use: useFile, form: objects, why: whyForm}, "rebase-apply/abort-safety": {use: useFile, form: objects, why: whyForm},
	"rebase-apply/rewritten": {use: useFile, form: objects, why: whyForm}, "rebase-apply/orig-head": {use: useFile, form: objects, why: whyForm},
	"rebase-apply/onto": {use: useFile, form: objects, why: whyForm}, "rebase-apply/head": {use: useFile, form: objects, why: whyForm},
	"rebase-apply/head-name": {use: useFile, form: branchHead, why: whyPrompt}, "rebase-apply/autostash": {use: useFile, form: objects, why: whyForm},
	"rebase-apply/rebasing": {use: useFile, form: nothing, why: whyForm}, "rebase-apply/applying": {use: useFile, form: nothing, why: whyForm},
	"rebase-apply/threeway": {use: useFile, form: flag, why: whyForm}, "rebase-apply/quiet": {use: useFile, form: flag, why: whyForm},
	"rebase-apply/sign": {use: useFile, form: flag, why: whyForm}, "rebase-apply/utf8": {use: useFile, form: flag, why: whyForm},
	"rebase-apply/keep": {use: useFile, form: flag, why: whyForm}, "rebase-apply/messageid": {use: useFile, form: flag, why: whyForm},
	"rebase-apply/scissors": {use: useFile, form: flag, why: whyForm}, "rebase-apply/dirtyindex": {use: useFile, form: flag, why: whyForm},
	"rebase-apply/verbose": {use: useFile, form: flag, why: whyForm}, "rebase-apply/no_inbody_headers": {use: useFile, form: flag, why: whyForm},
	"rebase-apply/rerere-autoupdate": {use: useFile, form: flag, why: whyForm},
	"rebase-apply/quoted-cr":         {use: useFile, form: oneOf("nowarn", "warn", "strip", ""), why: whyForm},
	"rebase-apply/signoff":           {use: useFile, form: oneOf("--signoff"), why: whyForm},
	"rebase-apply/apply-opt": {
		use: useFile, form: applyWords, whole: true,
		why: "git am --continue would give these options to git apply, which can write to any file",
	},
	"rebase-apply/strategy": {use: useFile, form: strategy, why: whyStrategy}, "rebase-apply/strategy_opts": {use: useFile, form: strategyWords, why: whyOption},
	"rebase-apply/gpg_sign_opt":            {use: useFile, form: oneOf("-S", "--no-gpg-sign"), why: whyOption},
	"rebase-apply/allow_rerere_autoupdate": {use: useFile, form: oneOf("--rerere-autoupdate", "--no-rerere-autoupdate"), why: whyOption},

	"sequencer/todo": {use: useFile, form: todo, why: "its list has commands that git does not write there", whole: true},
	"sequencer/head": {use: useFile, form: objects, why: whyForm}, "sequencer/abort-safety": {use: useFile, form: objects, why: whyForm},
	"sequencer/opts": {
		use: useFile, form: sequencerOpts,
		why: "git cherry-pick --continue would run the merge strategy, or give the options to one, that it names",
	},
}

// lookUp returns what is known of a name in a git directory, or in a directory of state in it.
func lookUp(name string) (known, bool) {
	if k, ok := gitNames[name]; ok {
		return k, true
	}
	dir, base, deep := strings.Cut(name, "/")
	if !deep {
		dir, base = "", name
	}
	if strings.HasPrefix(base, ".sallyport-quarantine-") {
		return known{use: useFile}, true // moved aside, where nothing looks for it
	}
	if locked, ok := strings.CutSuffix(base, ".lock"); ok { // git does not read these, it renames them
		k, listed := gitNames[strings.TrimSuffix(name, ".lock")]
		ok = listed && (k.use == useFile || locked == configName || locked == worktreeName) || temporary(dir, locked)
		return known{use: useFile}, ok
	}
	return known{use: useFile}, temporary(dir, base) || editorsFile(dir, base)
}

// temporary reports whether a name in a git directory, or in one of state in it, is one of those
// that git makes with numbers or random letters. None of these files is read by its name.
func temporary(dir, base string) bool {
	switch dir {
	case "":
		return numbered(base, "sharedindex.", "sharedindex_", "index.", "index.stash.", "next-index-", "shallow_", "fast_import_crash_")
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
		k, ok := gitNames[join2(dir, name)]
		if !ok || k.use != useFile || k.form != nil && !k.whole {
			continue
		}
		return rest != base || strings.Trim(strings.TrimPrefix(base, name), wordChars+".") == "" && base[len(name)] == '.'
	}
	random, ok := strings.CutPrefix(base, "sed")
	if python, isTmp := strings.CutPrefix(base, "tmp"); isTmp {
		return len(python) == 8 && strings.Trim(python, wordChars) == ""
	}
	return digits(base) || ok && len(random) == 6 && strings.Trim(random, wordChars) == "" ||
		len(base) == 8 && strings.Trim(base, wordChars) == "" && strings.ContainsAny(base, upperOrDigit) // perl
}

// upperOrDigit are characters that random names have, and that no name which is obeyed has.
const upperOrDigit = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

func join2(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
