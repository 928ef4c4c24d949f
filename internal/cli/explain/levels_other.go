// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package explain

import (
	"context"
	"runtime"

	"github.com/sallyport-dev/sallyport/internal/linux/plan"
)

// Levels reports the one level of this system, from the needed checks. Its walls are not
// listed: the table of walls is about Linux.
func Levels(ctx context.Context) []LevelCheck {
	l := LevelCheck{Level: plan.LevelNative, Available: true, Holds: []string{}, Lacks: []plan.Lack{},
		Refuses: []plan.Lack{}}
	if runtime.GOOS == "darwin" {
		l.Level = plan.LevelSeatbelt
	}
	for _, c := range Checks(ctx) {
		if c.Needed && !c.OK && l.Available {
			l.Available, l.Why, l.Fix = false, c.Detail, c.Fix
		}
	}
	return []LevelCheck{l}
}
