// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"slices"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// TestAskWrites: the member askWrites is the flag.
func TestAskWrites(t *testing.T) {
	s := &Server{opts: Options{Dir: "/w"}}
	for ask, want := range map[bool][]string{true: {"--ask-writes", "true"}, false: {"true"}} {
		q, err := s.runRequest(&wire.RunStart{Args: []string{"true"}, AskWrites: ask})
		if err != nil || !slices.Equal(q.Args, want) {
			t.Errorf("%v: %q, %v", ask, q.Args, err)
		}
	}
}
