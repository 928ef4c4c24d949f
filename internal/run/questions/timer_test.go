// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package questions

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestTimer: time that is paused does not count.
func TestTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var timer PausedTimer
		timer.Pause(true)
		fired := make(chan time.Duration, 1)
		timer.Start(10*time.Second, func() { fired <- time.Since(start) })
		<-time.After(time.Minute)
		timer.Pause(false)
		<-time.After(4 * time.Second)
		timer.Pause(true)
		timer.Pause(true)
		<-time.After(time.Hour)
		timer.Pause(false)
		if at := <-fired; at != time.Hour+time.Minute+10*time.Second {
			t.Errorf("fired after %v", at)
		}
		timer.Pause(true) // it has fired
		timer.Pause(false)
		timer.Stop()
		if left := timer.Left(); left != 1 {
			t.Errorf("%v are left of one that has fired", left)
		}

		var never PausedTimer
		never.Start(0, func() { t.Error("called") })
		never.Pause(true)
		never.Pause(false)
		var stopped PausedTimer
		stopped.Start(time.Second, func() { t.Error("called") })
		stopped.Pause(true)
		stopped.Stop()
		stopped.Pause(false)
		<-time.After(time.Hour)
		var used PausedTimer
		used.Start(time.Minute, func() { t.Error("called") })
		<-time.After(20 * time.Second)
		used.Stop()
		<-time.After(time.Hour)
		if a, b, c := never.Left(), stopped.Left(), used.Left(); a != 0 || b != time.Second ||
			c != 40*time.Second {
			t.Errorf("%v, %v and %v are left, want 0s, 1s and 40s", a, b, c)
		}
	})
}

// TestTimers: timers that were started before a pause and in it stand still together.
func TestTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var timers Timers
		fired := make(chan time.Duration, 2)
		fire := func() { fired <- time.Since(start) }
		defer timers.Start(10*time.Second, fire)()
		<-time.After(4 * time.Second)
		timers.Pause(true)
		defer timers.Start(time.Second, fire)()
		never := timers.Start(time.Second, func() { t.Error("called") })
		never()
		if !timers.Paused() {
			t.Error("it is not paused")
		}
		<-time.After(time.Hour)
		timers.Pause(false)
		if a, b := <-fired, <-fired; a != time.Hour+5*time.Second || b != time.Hour+10*time.Second {
			t.Errorf("fired after %v and %v", a, b)
		}
		if timers.Paused() {
			t.Error("it is paused")
		}
	})
}
