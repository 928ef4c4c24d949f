// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/local"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// shortStage is how many characters of its ID name a stage at least.
const shortStage = 4

// ShortStage is the shortest beginning of the ID of a stage that no other one of all has, with at least 4
// characters.
func ShortStage(id string, all []executor.StageInfo) string {
	n := shortStage
	for _, s := range all {
		if s.ID == id {
			continue
		}
		for n < len(id) && strings.HasPrefix(s.ID, id[:min(n, len(id))]) {
			n++
		}
	}
	return text.Word(id[:min(n, len(id))])
}

// Staged says what the stage of a run holds: one line, empty for a stage without changes and for no stage.
// Where is what follows the ID of a stage of another machine, such as " on that server".
func Staged(s *executor.Staged, where string) string {
	if s == nil || s.Total == 0 {
		return ""
	}
	var all []executor.StageInfo
	if where == "" {
		all = Stages()
	}
	return fmt.Sprintf("%s staged (sallyport changes %s%s; then apply or discard)",
		Plural(s.Total, "change", "changes"), ShortStage(s.ID, all), where)
}

// Stages are those of this user, as far as they can be read.
func Stages() []executor.StageInfo {
	stager, ok := executor.As[executor.Stager](new(local.Executor))
	if !ok {
		return nil
	}
	all, _ := stager.Stages(context.Background())
	return all
}

// The bounds above which the doctor names a stage.
const (
	oldStage   = 7 * 24 * time.Hour
	largeStage = 1 << 30 // bytes
)

// forgotten returns the stages that are old or large; never nil.
func forgotten(all []executor.StageInfo, now time.Time) []executor.StageInfo {
	old := []executor.StageInfo{}
	for _, s := range all {
		if now.Sub(s.Created) > oldStage || s.Bytes > largeStage {
			old = append(old, s)
		}
	}
	return old
}

// Age writes how long something is ago: "5s", "3m", "30h", "9d".
func Age(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(int(d/time.Second), 0))
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/day)
}

// stagedThen says what a stage held at the end of a recorded run: it may be applied or discarded by now.
func stagedThen(s *executor.Staged) string {
	if s.Total == 0 {
		return text.Word(s.ID) + ", without changes."
	}
	return fmt.Sprintf("%s, %s staged (sallyport changes %[1]s; then apply or discard).", text.Word(s.ID),
		Plural(s.Total, "change", "changes"))
}
