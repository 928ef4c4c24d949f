// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"

	"github.com/sallyport-dev/sallyport/internal/linux"
	"github.com/sallyport-dev/sallyport/internal/plan"
)

// Levels runs a command at every level, each by itself, and says which of them
// can be had on this machine and what they hold. It starts short-lived processes
// and leaves nothing behind. When ctx ends, the levels that are left are reported
// as not tried. It blocks for some ten milliseconds.
func Levels(ctx context.Context) []LevelCheck {
	d := new(doctor)
	_, blind := d.observer(ctx)
	d.close()
	var out []LevelCheck
	for _, level := range []string{plan.LevelNative, plan.LevelBwrap, plan.LevelLandlock} {
		host := &linux.Host{Only: level}
		c := LevelCheck{Level: level}
		facts := *host.Facts()
		facts.Blind = blind != nil
		c.Holds, c.Lacks, c.Refuses = plan.Standing(&facts, level)
		if ctx.Err() != nil {
			c.Why = "not tried: " + context.Cause(ctx).Error()
		} else if _, err := wholeSandbox(ctx, host); err != nil {
			c.Why, c.Fix = cause(err)
		} else {
			c.Available = true
		}
		// What Close would report, a private folder that stays, is swept later.
		_ = host.Close()
		out = append(out, c)
	}
	return out
}
