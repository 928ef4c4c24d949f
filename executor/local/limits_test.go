// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
)

func TestRefusesLimits(t *testing.T) {
	var e Executor
	defer e.Close()
	var bad *executor.LimitError
	if _, err := e.Start(context.Background(), &executor.Spec{Args: []string{"true"},
		Resources: executor.Resources{PIDs: -1}}); !errors.As(err, &bad) {
		t.Errorf("%v", err)
	}
}
