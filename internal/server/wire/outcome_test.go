// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/executor"
)

// TestOutcomeFailures: a client gets the hosts that were not reached as the server has them.
func TestOutcomeFailures(t *testing.T) {
	t.Parallel()
	want := []executor.NetworkFailure{
		{Host: "192.0.2.1", Port: 81, Error: "connection refused", Count: 2},
		{Host: "gone.invalid", Port: 443, Name: true, Error: "no such host", Count: 1},
	}
	text, err := json.Marshal(OutcomeOf(&executor.Exit{NetworkFailures: want}))
	if err != nil {
		t.Fatal(err)
	}
	var told Outcome
	if err := json.Unmarshal(text, &told); err != nil {
		t.Fatal(err)
	}
	var exit executor.Exit
	told.Complete(&exit)
	if diff := cmp.Diff(want, exit.NetworkFailures); diff != "" {
		t.Error(diff)
	}
}
