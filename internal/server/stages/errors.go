// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// reasons are the words by which clients know errors.
var reasons = []struct {
	word string
	err  error
}{
	{"unknownStage", executor.ErrNoStage}, {"noChange", executor.ErrNoChange},
	{"stageInUse", executor.ErrStageInUse}, {"notSynced", executor.ErrNotSynced},
}

// otherReason is the word for other errors of a stage.
const otherReason = "stage"

// failure returns the *wire.Error for an error of a stage; that of a context, and nil, stay as they are.
func failure(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return Failure(err)
}

// Failure returns the error for a request that failed because of a stage.
func Failure(err error) *wire.Error {
	made, r := &wire.Error{Code: wire.CodeInternal, Message: err.Error()}, wire.Refusal{Reason: otherReason}
	for _, known := range reasons {
		if errors.Is(err, known.err) {
			made.Code, r.Reason = wire.CodeInvalidRequest, known.word
		}
	}
	made.Data, _ = json.Marshal(r) // words always encode
	return made
}

// ErrorOf returns the *executor.StageError that a server answers with; nil for other errors.
func ErrorOf(err error) *executor.StageError {
	var answer *wire.Error
	if !errors.As(err, &answer) {
		return nil
	}
	word := wire.RefusalOf(answer).Reason
	if word == otherReason {
		return &executor.StageError{Why: answer.Message, Err: err}
	}
	for _, known := range reasons {
		if known.word == word {
			return &executor.StageError{Why: answer.Message, Err: errors.Join(known.err, err)}
		}
	}
	return nil
}
