// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"strings"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// The built-in profiles, the default first. Each but the last is a mode of
// --sandbox under the name that configurations give it.
var profileWords = []string{":workspace", ":read-only", ":danger-full-access", profileMinimal}

// profileMinimal is the profile that shows the platform's own files and the
// workspace, and nothing else.
const profileMinimal = ":minimal"

// takeProfile takes a value of --profile.
func (o *runOptions) takeProfile(v string) error {
	for _, w := range profileWords {
		if w == v {
			o.profile = v
			return nil
		}
	}
	words := quote(v) + " is none of " + strings.Join(profileWords, ", ")
	if strings.HasPrefix(v, ":") {
		return errors.New(words + hint(v, profileWords, ""))
	}
	return errors.New(words + "; profiles of a configuration are not in this version")
}

// preset returns the policy of --sandbox or --profile before anything is added.
func (o *runOptions) preset() sandbox.Policy {
	switch {
	case o.profile == profileMinimal:
		return minimalPolicy()
	case o.sandbox == "read-only", o.profile == ":read-only":
		return sandbox.ReadOnly()
	case o.sandbox == "full-access", o.sandbox == "danger-full-access", o.profile == ":danger-full-access":
		return sandbox.FullAccess()
	}
	return sandbox.WorkspaceWrite()
}

// minimalPolicy reads the platform's own files, writes the workspace and the
// temporary folders, and shows nothing else.
func minimalPolicy() sandbox.Policy {
	return sandbox.Policy{}.WithEntries(
		sandbox.SpecialEntry(sandbox.TokenProjectRoots, sandbox.LevelWrite),
		sandbox.SpecialEntry(sandbox.TokenSlashTmp, sandbox.LevelWrite),
		sandbox.SpecialEntry(sandbox.TokenTmpDir, sandbox.LevelWrite))
}
