// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"regexp"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Asks returns the word of [approval.Request.Requires] for a write to a path, or a connection to the unix
// socket there, that a program waits for. It is empty for what is not asked about: what is denied for good,
// by an entry of the policy, as a protected name, as a store of secrets or because programs outside run or obey
// it later ([grants.Shut]), and what programs go on without.
func (r *DeniedRun) Asks(op sandbox.Op, name, program string) string {
	own := *r // it may be called from several goroutines at once
	r = &own
	r.look()
	d := sandbox.Denial{Access: sandbox.Access{Op: op, Path: name}, Errno: "EROFS", Source: sandbox.Notified,
		Program: program}
	if op == sandbox.Connect {
		d.Access, d.Errno = sandbox.Access{Op: op, Addr: name, Net: "unix"}, "EACCES"
	}
	write := sandbox.Grant{Path: name, Level: sandbox.LevelWrite}
	exit := 0
	if writesIndex().MatchString(strings.Join(r.Args, " ")) {
		exit = 1 // a command that does not get what it needs
	}
	switch {
	case grants.Shut(name, false), r.Habit(&d, exit) != "", r.never(&d) != "", r.setting(&d),
		strings.HasSuffix(r.rule(&d), "(protected)"),
		r.Policy.With(write).LevelAt(name) != sandbox.LevelWrite: // an entry denies it
		return ""
	case op == sandbox.Connect:
		if gs, ok := sandbox.ParseGrants(r.service(&d)); ok {
			return approval.Requirements(false, gs)[0]
		}
	}
	return approval.Requirements(false, []sandbox.Grant{write})[0]
}

// writesIndex finds commands of git that fail if they cannot write the index. Others refresh it if they can:
// which one a command is, its exit code says later.
var writesIndex = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(indexWriters) })

const indexWriters = `\bgit(\s+-[Cc]\s+\S+|\s+-\S+)*\s+(add|am|apply|checkout|cherry-pick|commit|merge|mv|` +
	`pull|read-tree|rebase|reset|restore|revert|rm|sparse-checkout|stash|switch|update-index)\b`
