// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import "github.com/sallyport-dev/sallyport/executor"

// SurvivorsListed is how many survivors the JSON forms describe one by one; the
// others are counted.
const SurvivorsListed = 20

// Survived says that processes outlived their command and were ended. It comes
// before [Exited], and only when there were any.
type Survived struct {
	Survivors []executor.Survivor
	By        string // by what means they were ended: executor.ByNamespace and the like
}

// Kind returns "survived".
func (Survived) Kind() string { return "survived" }
func (Survived) body()        {}

// MarshalJSON returns the members survivors (how many), survivor_list (pid, name
// and command of the first 20) and survivors_by.
func (b Survived) MarshalJSON() ([]byte, error) {
	return encode(struct {
		Survivors int              `json:"survivors"`
		List      []survivorDetail `json:"survivor_list"`
		By        string           `json:"survivors_by,omitempty"`
	}{len(b.Survivors), survivorList(b.Survivors), b.By})
}

type survivor struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

func survivors(ss []executor.Survivor) []survivor {
	out := make([]survivor, 0, len(ss))
	for _, s := range ss {
		out = append(out, survivor{s.PID, s.Name})
	}
	return out
}

type survivorDetail struct {
	PID     int    `json:"pid"`
	Name    string `json:"name"`
	Command string `json:"command"`
}

// survivorList describes the first ones; nil when there are none.
func survivorList(ss []executor.Survivor) []survivorDetail {
	var out []survivorDetail
	for _, s := range ss[:min(len(ss), SurvivorsListed)] {
		out = append(out, survivorDetail{s.PID, s.Name, s.Command})
	}
	return out
}
