// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"strings"
)

// cgroups makes a group with all limits that groups can enforce here, and removes it.
// Limits for which there is no group are enforced by something else, which it names:
// nothing is refused for that.
func (d *doctor) cgroups(context.Context) (string, error) {
	groups := &d.groups
	if err := groups.Check(); err != nil {
		const mend = "start it as root, or in a group of its own (systemd-run --user --scope -p Delegate=yes)"
		return "", &lackError{err.Error() + "; limits: " + groups.Describe(), mend}
	}
	return fmt.Sprintf("made in %s; limits: %s", strings.Join(groups.Where(), ", "), groups.Describe()), nil
}
