// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"errors"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/run/runs"
)

// TestRunFailure: what an error of a run has beside its text.
func TestRunFailure(t *testing.T) {
	why := errors.New("why")
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"some was taken", &runs.Error{Reason: runs.InputFull, Err: why, Taken: 3}, `{"reason":"inputFull","taken":3}`},
		{"none was taken", &runs.Error{Reason: runs.InputFull, Err: why}, `{"reason":"inputFull","taken":0}`},
		{"the input was closed meanwhile", &runs.Error{Reason: runs.InputClosed, Err: why, Taken: 3}, `{"reason":"inputClosed","taken":3}`},
		{"no write", &runs.Error{Reason: runs.Ended, Err: why}, `{"reason":"ended"}`},
		{"a run that is not right", runs.NotRun(why), `{"reason":"invalid","exitCode":125}`},
		{"another error", why, ""},
	} {
		if got := string(runFailure(test.err).Data); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
