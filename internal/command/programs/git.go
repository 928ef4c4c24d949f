// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"strings"
	"sync"
)

// Git are the options of git that stand before its command and take a value.
var Git = Launcher{short: "Cc", long: []string{
	"git-dir", "work-tree", "namespace", "super-prefix", "config-env", "attr-source", "exec-path",
}}

// gitCommands are settings of git whose value is a command, without the name that may stand between
// their two parts.
var gitCommands = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, name := range strings.Fields(`browser.cmd browser.path core.alternaterefscommand core.askpass core.editor core.fsmonitor
		core.gitproxy core.pager core.sshcommand credential.helper diff.command diff.external diff.textconv difftool.cmd difftool.path
		filter.clean filter.process filter.smudge gc.recentobjectshook gpg.program gpg.defaultkeycommand guitool.cmd hook.command imap.tunnel
		instaweb.browser instaweb.httpd interactive.difffilter man.cmd man.path merge.driver mergetool.cmd mergetool.path receive.procreceiverefs
		remote.receivepack remote.uploadpack sendemail.cccmd sendemail.headercmd sendemail.sendmailcmd sendemail.smtpserver sendemail.tocmd
		sequence.editor submodule.update tar.command trailer.cmd trailer.command uploadpack.packobjectshook web.browser lfs.customtransfer`) {
		all[name] = true
	}
	return all
})

// gitFiles are settings of git whose value is a file or a directory with settings or code.
var gitFiles = map[string]bool{
	"core.hookspath": true, "core.attributesfile": true, "include.path": true, "includeif.path": true, "init.templatedir": true,
}

// gitQuiet are the commands of git that run none of their operands.
const gitQuiet = ` add am annotate apply archive bisect blame branch bugreport bundle cat-file check-attr check-ignore
	check-mailmap check-ref-format checkout checkout-index cherry cherry-pick citool clean clone column commit commit-graph
	commit-tree config count-objects credential describe diagnose diff diff-files diff-index diff-tree difftool fast-export
	fast-import fetch fetch-pack filter-branch fmt-merge-msg for-each-ref format-patch fsck gc get-tar-commit-id grep gui
	hash-object help index-pack init instaweb interpret-trailers lfs log ls-files ls-remote ls-tree mailinfo maintenance merge
	merge-base merge-file merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes pack-objects pack-refs patch-id
	prune prune-packed pull push range-diff read-tree rebase reflog remote repack replace request-pull rerere reset restore
	rev-list rev-parse revert rm send-email send-pack shortlog show show-branch show-index show-ref sparse-checkout stage
	stash status stripspace submodule switch symbolic-ref tag unpack-objects update-index update-ref var verify-commit
	verify-pack verify-tag version whatchanged worktree write-tree `

// GitCommand reports whether a setting of git, without the name that may stand between its two
// parts, has a command for its value.
func GitCommand(setting string) bool {
	return gitCommands()[setting] || strings.HasPrefix(setting, "pager.")
}

// GitFile reports whether the value of such a setting is a file or a directory with settings or code.
func GitFile(setting string) bool { return gitFiles[setting] }
