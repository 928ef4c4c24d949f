// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Asks returns the word of [approval.Request.Requires] for a write to a path, or a connection to the unix
// socket there, that a program waits for. It is empty for what is not asked about: what is denied for good,
// by an entry of the policy or as a protected name, and what programs go on without.
func (r *DeniedRun) Asks(op sandbox.Op, name, program string) string {
	own := *r
	own.Executor = nil // the executor that asks can do it; the proof would take milliseconds
	d := sandbox.Denial{Access: sandbox.Access{Op: op, Path: name}, Errno: "EROFS", Source: sandbox.Notified,
		Program: program}
	if op == sandbox.Connect {
		d.Access, d.Errno = sandbox.Access{Op: op, Addr: name, Net: "unix"}, "EACCES"
	}
	own.look()
	if own.Habit(&d, 0) != "" {
		return ""
	}
	ds := []sandbox.Denial{d}
	own.Complete(ds)
	write := sandbox.Grant{Path: name, Level: sandbox.LevelWrite}
	switch d = ds[0]; {
	case d.NoGrant, strings.HasSuffix(d.Rule, "(protected)"),
		own.Policy.With(write).LevelAt(name) != sandbox.LevelWrite: // an entry denies it
		return ""
	case op == sandbox.Connect:
		gs, _ := sandbox.ParseGrants(d.Grant)
		if i := slices.IndexFunc(gs, func(g sandbox.Grant) bool { return g.Name != "" }); i >= 0 {
			return approval.Requirements(false, gs[i:i+1])[0]
		}
	}
	return approval.Requirements(false, []sandbox.Grant{write})[0]
}
