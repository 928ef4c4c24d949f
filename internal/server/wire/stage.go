// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"errors"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/strict"
)

// RunStage is the stage of a run: in JSON true for a new one, or the name of one of the workspace. The zero
// value, false, is none.
type RunStage struct {
	Staged bool
	Name   string // empty for a new one
}

// MarshalJSON implements [json.Marshaler].
func (s RunStage) MarshalJSON() ([]byte, error) {
	if s.Name != "" {
		return json.Marshal(s.Name)
	}
	return json.Marshal(s.Staged)
}

// errStageName is for the name that is not one.
var errStageName = errors.New("stage must not be empty; use true for a new stage")

// UnmarshalJSON implements [json.Unmarshaler]. Null is none.
func (s *RunStage) UnmarshalJSON(data []byte) error {
	*s = RunStage{}
	switch data[0] {
	case 'n', 'f':
		return nil
	case 't':
		s.Staged = true
		return nil
	case '"':
		if err := json.Unmarshal(data, &s.Name); err != nil || s.Name == "" {
			return errStageName
		}
		s.Staged = true
		return nil
	}
	return errors.New("stage: invalid type: " + strict.TypeName(data) +
		", expected true, false or the name of a stage")
}

// Staging returns what an owner asks for; nil for no stage.
func (s RunStage) Staging(owner string) *executor.Staging {
	if !s.Staged {
		return nil
	}
	return &executor.Staging{Name: s.Name, Owner: owner}
}

// ProcessStage is the stage of a process, as in [executor.Staging].
type ProcessStage struct {
	Name string   `json:"name,omitempty" rule:"nonnull"`
	ID   string   `json:"id,omitempty" rule:"nonnull"`
	_    struct{} `rule:"strict"`
}

// StageOutcome is an [executor.Staged].
type StageOutcome struct {
	executor.Staged
	Total   int               `json:"changesTotal"`
	Changes []executor.Change `json:"changes"`
}

// maxStaged is how many bytes of changes an [Outcome] has, in JSON: it is a part of a message.
const maxStaged = 2 << 20

func stagedOf(s *executor.Staged) *StageOutcome {
	if s == nil {
		return nil
	}
	list, _ := Fit(s.Changes, maxStaged)
	return &StageOutcome{Staged: *s, Total: s.Total, Changes: list}
}

func (s *StageOutcome) staged() *executor.Staged {
	if s == nil {
		return nil
	}
	made := s.Staged
	made.Total, made.Changes = s.Total, s.Changes
	return &made
}

// Fit returns the first elements of a list whose JSON has at most so many bytes, never nil, and how many are
// left out.
func Fit[T any](list []T, most int) (fits []T, omitted int) {
	for i := range list {
		text, _ := json.Marshal(&list[i]) // plain values always encode
		if most -= len(text) + 1; most < 0 {
			return list[:i:i], len(list) - i
		}
	}
	if list == nil {
		list = []T{}
	}
	return list, 0
}
