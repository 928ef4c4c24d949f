// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package accesses has people asked, while a command runs, about what its sandbox denies: the call waits for
// the answer. What is asked about and what an answer opens is decided here; the executor makes the call.
package accesses

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/questions"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

const (
	// maxAsked is how many questions about accesses one run has.
	maxAsked = 20
	// manySiblings is from how many paths in a directory on the directory is offered.
	manySiblings = 3
	// maxGranted bounds the list of what was granted.
	maxGranted = 1000
	// DefaultTime is how long a question is open where nothing else is said.
	DefaultTime = time.Minute
)

// Questions has accesses asked about for one command. Its fields must not change after the first call; its
// methods may be called from several goroutines at once. A nil Questions grants nothing.
type Questions struct {
	// Put puts the question that fill makes of a request, and returns its answer. It ends with ctx.
	Put func(ctx context.Context, fill func(*approval.Request)) (approval.Decision, error)
	// Bars reports whether something may not be asked about, in the words of [approval.Request].
	Bars func(required []string) bool
	// Word returns the word for what an access of a program to a path requires; empty for one that is not
	// asked about.
	Word func(op sandbox.Op, name, program string) string
	// Opened is told each access that is granted first, and what was required for it.
	Opened func(granted event.Granted, required string)
	// Remembered are the approvals for the session.
	Remembered func() []approval.Remembered
	// Questions are those of the command. Time is how long one is open; 0 means [DefaultTime].
	Questions *questions.Command
	Time      time.Duration
	// Staged says that what the command writes goes to a stage.
	Staged bool

	mu       sync.Mutex
	asked    int
	over     bool // more would have been asked
	aborted  bool // nothing more is asked
	siblings map[string][]string
	dirs     []string // approved as long as the command runs
	granted  []event.Granted
	omitted  int
}

// key is that of requests for the session: they are for all commands of an environment.
func key(environment string) string { return "waiting access\x00" + environment }

// subject is what one question is about.
type subject struct {
	op          sandbox.Op
	call, paths string
}

// An access is one call that waits, and what it requires.
type access struct {
	*executor.AccessQuestion
	required []string
}

// Decide is [executor.Spec.AskAccess].
func (s *Questions) Decide(ctx context.Context, q executor.AccessQuestion) bool {
	if s == nil || len(q.Paths) == 0 {
		return false
	}
	a := &access{AccessQuestion: &q}
	for _, name := range q.Paths {
		word := s.Word(q.Access.Op, name, q.Program)
		if word == "" {
			return false
		}
		a.required = append(a.required, word)
	}
	if s.Bars(a.required) {
		return false
	}
	if s.covers(a) {
		s.grant(a, approval.FromCache, 0)
		return true
	}
	if s.isAborted() {
		return false
	}
	start := time.Now()
	d, err := s.Questions.Ask(ctx, &questions.Question{
		Subject: subject{q.Access.Op, q.Call, strings.Join(q.Paths, "\x00")}, Time: s.time(), Serial: true,
		Put:      func(ctx context.Context) (approval.Decision, error) { return s.put(ctx, a) },
		Answered: func(d approval.Decision) { s.answered(a, d) },
		Keeps: func(d approval.Decision) bool {
			return d.Answer == approval.Denied || d.Answer == approval.Abort
		},
	})
	if err != nil || !d.Approves() {
		return false
	}
	s.grant(a, d.Source, time.Since(start))
	return true
}

func (s *Questions) time() time.Duration {
	if s.Time > 0 {
		return s.Time
	}
	return DefaultTime
}

// The errors of questions that are not asked: above the bound, and after an abort.
var (
	errMany    = errors.New("the command was asked about too often")
	errAborted = errors.New("an answer was abort")
)

func (s *Questions) isAborted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.aborted
}

// put asks about an access, unless an answer to a question before it covers it.
func (s *Questions) put(ctx context.Context, a *access) (approval.Decision, error) {
	if s.covers(a) {
		return approval.Decision{Answer: approval.Approved, Source: approval.FromCache}, nil
	}
	if s.isAborted() { // while it waited for its turn
		return approval.Decision{}, errAborted
	}
	dir, ok := s.count(a)
	if !ok {
		return approval.Decision{}, errMany
	}
	return s.Put(ctx, func(r *approval.Request) { s.fill(r, a, dir) })
}

// count counts a question, and returns the directory that is offered with it, or "". It is not ok above the
// bound.
func (s *Questions) count(a *access) (dir string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked == maxAsked {
		s.over = true
		return "", false
	}
	s.asked++
	if s.siblings == nil {
		s.siblings = map[string][]string{}
	}
	dir = path.Dir(a.Paths[0])
	for _, name := range a.Paths {
		at := path.Dir(name)
		if !slices.Contains(s.siblings[at], name) {
			s.siblings[at] = append(s.siblings[at], name)
		}
		if at != dir {
			dir = ""
		}
	}
	if a.Access.Op != sandbox.Write || dir == "/" || dir == "" || len(s.siblings[dir]) < manySiblings {
		return "", true
	}
	if word := s.Word(sandbox.Write, dir, a.Program); word == "" || s.Bars([]string{word}) {
		return "", true
	}
	return dir, true
}

// fill makes a request one about an access. Dir is offered as well, unless it is empty.
func (s *Questions) fill(r *approval.Request, a *access, dir string) {
	target := a.Access
	if target.Path == "" && target.Addr == "" {
		target.Path = a.Paths[0]
	}
	why := fmt.Sprintf("the sandbox denies %s (%s by process %d, %s)", target, a.Call, a.PID,
		text.Word(a.Program))
	if len(a.Paths) > 1 {
		why += ", for which both paths have to be open"
	}
	why += "; the command is waiting for the answer and has not been repeated"
	if s.Staged {
		why += "; it has a stage, and what is granted outside of the stage is real at once"
	}
	r.Kind, r.Reason, r.Waiting, r.Runs = approval.KindAccess, why, true, 0
	r.Requires, r.WaitMS = a.required, s.time().Milliseconds()
	if r.Key != "" { // else every question is reviewed anew
		r.Key = key(r.Environment)
	}
	for _, name := range []string{a.Paths[0], dir} {
		for _, answer := range []approval.Answer{approval.Approved, approval.ApprovedForSession} {
			if name != "" && slices.Contains(r.Available, answer) {
				r.Offers = append(r.Offers, approval.Offer{Answer: answer, Path: name})
			}
		}
	}
}

// answered notes what an answer is beyond one for the calls that wait.
func (s *Questions) answered(a *access, d approval.Decision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aborted = s.aborted || d.Answer == approval.Abort
	if d.Approves() && d.Path != "" && !slices.Contains(a.Paths, d.Path) && !slices.Contains(s.dirs, d.Path) {
		s.dirs = append(s.dirs, d.Path)
	}
}

// covers reports whether what was approved before opens an access: a directory for this command, or what was
// approved for the session.
func (s *Questions) covers(a *access) bool {
	s.mu.Lock()
	dirs := slices.Clone(s.dirs)
	s.mu.Unlock()
	var words []string
	for _, m := range s.Remembered() {
		if !m.Request.Waiting || m.Request.Key != key(m.Request.Environment) {
			continue
		}
		words = append(words, m.Request.Requires...)
		if d := m.Decision.Path; d != "" && !slices.Contains(m.Request.Requires, "write:"+d) {
			dirs = append(dirs, d)
		}
	}
	for i, name := range a.Paths {
		below := func(dir string) bool {
			return a.Access.Op == sandbox.Write && strings.HasPrefix(name, dir+"/")
		}
		if !slices.Contains(words, a.required[i]) && !slices.ContainsFunc(dirs, below) {
			return false
		}
	}
	return true
}

// grant notes what is granted, each path for itself.
func (s *Questions) grant(a *access, by approval.Source, waited time.Duration) {
	for i, name := range a.Paths {
		g := event.Granted{Op: a.Access.Op, Path: name, By: by, WaitedMS: waited.Milliseconds(), Call: a.Call}
		if s.note(g) {
			s.Opened(g, a.required[i])
		}
	}
}

// note adds to the list, and reports whether it is new there.
func (s *Questions) note(g event.Granted) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.granted, func(o event.Granted) bool {
		return g.By == approval.FromCache && o.By == g.By && o.Op == g.Op && o.Path == g.Path &&
			o.Call == g.Call
	})
	switch {
	case i >= 0:
		s.granted[i].More++
	case len(s.granted) == maxGranted:
		s.omitted++
	default:
		s.granted = append(s.granted, g)
		return true
	}
	return false
}

// Granted returns what was granted, in its order.
func (s *Questions) Granted() []event.Granted {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.granted)
}

// Asked reports whether anything was asked about: then the command is not run again, so that nothing happens
// twice that was granted.
func (s *Questions) Asked() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked > 0
}

// Notices are sentences for the result.
func (s *Questions) Notices() (list []string) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		list = append(list, fmt.Sprintf("the limit of %d questions about accesses was reached; what the "+
			"sandbox denied after that was denied without a question", maxAsked))
	}
	if s.aborted {
		list = append(list, "an answer was abort; what the sandbox denied after that was denied without a "+
			"question")
	}
	if s.omitted > 0 {
		list = append(list, fmt.Sprintf("%d more accesses were granted than are listed", s.omitted))
	}
	return list
}
