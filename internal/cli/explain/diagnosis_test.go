// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/linux/plan"
)

func TestDiagnose(t *testing.T) {
	fine := Check{Name: "user namespaces", OK: true, Detail: "made one", Needed: true}
	native := []LevelCheck{{Level: "native", Available: true}}
	tests := []struct {
		name   string
		checks []Check
		levels []LevelCheck
		level  string // empty means none
		says   []string
	}{
		{name: "nothing is known", says: []string{"is not available"}},
		{name: "all is there", checks: []Check{fine}, levels: native, level: "native", says: []string{"ok       user namespaces  made one", "is available (level: native)"}},
		{name: "something extra is missing", checks: []Check{fine, {Name: "cgroups", Detail: "not writable", Fix: "log in"}}, levels: native, level: "native",
			says: []string{"missing  cgroups", "fix: log in"}},
		{name: "something needed is missing", checks: []Check{{Name: "Landlock", Detail: "off", Fix: "boot with it", Needed: true}, fine},
			levels: []LevelCheck{{Level: "native", Why: "no Landlock", Fix: "get it"},
				{Level: "bwrap", Why: "not installed"}, {Level: "landlock", Available: true}},
			says: []string{"MISSING  Landlock", "fix: boot with it", "Fix what is MISSING, or add --level landlock",
				"native    not available: no Landlock", "fix: get it", "landlock  available"}},
		{name: "only bubblewrap works", checks: []Check{{Name: "Landlock", Detail: "off", Fix: "boot with it", Needed: true}, fine},
			levels: []LevelCheck{{Level: "native", Why: "no Landlock"},
				{Level: "bwrap", Available: true, Lacks: []plan.Lack{{Wall: "w", Why: "a wall is missing"}}}},
			level: "bwrap", says: []string{"missing  Landlock", "is available (level: bwrap)",
				"- a wall is missing"}},
		{name: "the level of macOS", checks: []Check{fine}, levels: []LevelCheck{{Level: "seatbelt", Available: true}}, level: "seatbelt", says: []string{"(level: seatbelt)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := Diagnose(tt.checks, tt.levels)
			if d.OK != (tt.level != "") || d.Level != cmp.Or(tt.level, "none") {
				t.Errorf("ok %v, level %s; want %q", d.OK, d.Level, tt.level)
			}
			for _, s := range tt.says {
				if !strings.Contains(d.String(), s) {
					t.Errorf("%q is not in\n%s", s, d)
				}
			}
		})
	}
}
