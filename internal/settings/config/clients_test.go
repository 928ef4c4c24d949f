// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestClientLimits: a client's process gets the limits of the ceiling.
func TestClientLimits(t *testing.T) {
	p := newPlace(t)
	c, err := (&world{managed: "limits.memory = '1MiB'\nlimits.cpus = 2\nlimits.pids = 40\nlimits.disk = '2MiB'\nlimits.output = '3MiB'\nlimits.timeout = '4s'"}).load(t, p)
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.Client(&Wish{Name: "process/start", Policy: sandbox.ReadOnly()})
	if err != nil {
		t.Fatal(err)
	}
	limits, most := e.Limits()
	if want := (executor.Resources{Memory: 1 << 20, CPUs: 2, PIDs: 40, Disk: 2 << 20,
		Output: 3 << 20}); limits != want || most != 4*time.Second {
		t.Errorf("%+v, %v", limits, most)
	}
}
