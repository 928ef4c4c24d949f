// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// How many sessions there are.
const (
	// DefaultMaxSessions is how many sessions may be alive when MaxSessions is 0.
	DefaultMaxSessions = 64
	// noticeSessions is how many of them make replies say that they are many, of 64.
	noticeSessions = 60
	// keptSessions is how many ended sessions can still be asked for.
	keptSessions = 64
)

// Identities of sessions: numbers that are easy to repeat, and short.
const (
	firstID = 1000
	lastID  = 99_999
)

// A SessionInfo is what a list of sessions shows.
type SessionInfo struct {
	ID       string    `json:"id"`
	Run      string    `json:"run"` // as in events
	Args     []string  `json:"argv"`
	Dir      string    `json:"cwd"`
	TTY      bool      `json:"tty"`
	Started  time.Time `json:"started"`
	LastUsed time.Time `json:"last_used"` // of the last start, write or wait
	Running  bool      `json:"running"`
	// ExitCode and Signal are those of its Result; -1 and 0 while it runs.
	ExitCode int `json:"exit_code"`
	Signal   int `json:"signal"`
}

// A TooManySessionsError refuses a start: as many sessions as are allowed are alive.
// Nothing was ended for the new one.
type TooManySessionsError struct {
	Max        int
	Candidates []SessionInfo // the live sessions, the one that was not used for longest first
}

// Error returns one sentence that names the first candidates.
func (e *TooManySessionsError) Error() string {
	if len(e.Candidates) == 0 {
		return fmt.Sprintf("sallyport: as many sessions are being started as there may be (%d); try again when one has ended", e.Max)
	}
	const named = 3
	var ids []string
	for i, c := range e.Candidates {
		if i == named {
			break
		}
		ids = append(ids, fmt.Sprintf("%s (%s, not used for %v)", c.ID, strings.Join(c.Args, " "), time.Since(c.LastUsed).Round(time.Second)))
	}
	return fmt.Sprintf("sallyport: %d sessions are alive, which is the most; end one first, such as %s", e.Max, strings.Join(ids, ", "))
}

// sessions is the table of a Runner. The zero value is empty.
type sessions struct {
	mu       sync.Mutex
	live     map[string]*Session
	reserved int // starts under way
	ended    []*Session
	used     map[int]struct{} // every number that was given
	next     int              // with sequentialIDs
}

// reserve takes a place and a number, or refuses. One of settle and release follows.
func (t *sessions) reserve(most int, sequential bool) (string, error) {
	if most == 0 {
		most = DefaultMaxSessions
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.live)+t.reserved >= most {
		return "", &TooManySessionsError{Max: most, Candidates: t.idleLocked()}
	}
	t.reserved++
	return strconv.Itoa(t.numberLocked(sequential)), nil
}

// numberLocked draws a number that was never given. When half of the range is used
// up it grows tenfold, so a draw takes two tries at the average.
func (t *sessions) numberLocked(sequential bool) int {
	if sequential {
		t.next = max(t.next+1, firstID)
		return t.next
	}
	if t.used == nil {
		t.used = make(map[int]struct{})
	}
	last := lastID
	for len(t.used) > (last-firstID)/2 {
		last = last*10 + 9
	}
	for {
		n := firstID + rand.IntN(last-firstID+1)
		if _, taken := t.used[n]; !taken {
			t.used[n] = struct{}{}
			return n
		}
	}
}

// idleLocked lists the live sessions, the one that was not used for longest first.
func (t *sessions) idleLocked() []SessionInfo {
	var out []SessionInfo
	for _, s := range t.live {
		out = append(out, s.Info())
	}
	slices.SortFunc(out, func(a, b SessionInfo) int {
		return cmp.Or(a.LastUsed.Compare(b.LastUsed), strings.Compare(a.ID, b.ID))
	})
	return out
}

// release gives a reserved place back.
func (t *sessions) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reserved--
}

// settle puts a session in its reserved place.
func (t *sessions) settle(s *Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reserved--
	if t.live == nil {
		t.live = make(map[string]*Session)
	}
	t.live[s.id] = s
}

// end moves a session to those that have ended; of these the oldest are forgotten.
func (t *sessions) end(s *Session) (forgotten []*Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live[s.id] != s {
		return nil // it was closed before
	}
	delete(t.live, s.id)
	t.ended = append(t.ended, s)
	if n := len(t.ended) - keptSessions; n > 0 {
		forgotten = slices.Clone(t.ended[:n])
		t.ended = slices.Delete(t.ended, 0, n)
	}
	return forgotten
}

// forget takes a session out of the table.
func (t *sessions) forget(s *Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live[s.id] == s {
		delete(t.live, s.id)
	}
	t.ended = slices.DeleteFunc(t.ended, func(e *Session) bool { return e == s })
}

// drop frees the output of all sessions. It stays known as far as it is in memory.
func (t *sessions) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.ended {
		s.drop()
	}
}

// notice says that there are many; empty when there are not.
func (t *sessions) notice(most int) string {
	if most == 0 {
		most = DefaultMaxSessions
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.live)
	if n < max(most*noticeSessions/DefaultMaxSessions, 1) || most < 2 {
		return ""
	}
	return fmt.Sprintf("%d sessions are alive, and %d are the most; use one again, or end those that are not needed", n, most)
}

// Session returns the session with an identity, alive or ended, and whether there is
// one. Of sessions that have ended and were not closed, the last 64 are kept.
func (r *Runner) Session(id string) (*Session, bool) {
	t := &r.sessions
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.live[id]; s != nil {
		return s, true
	}
	for _, s := range t.ended {
		if s.id == id {
			return s, true
		}
	}
	return nil, false
}

// Sessions lists the sessions, alive or ended, by their number.
func (r *Runner) Sessions() []SessionInfo {
	t := &r.sessions
	t.mu.Lock()
	all := slices.Clone(t.ended)
	for _, s := range t.live {
		all = append(all, s)
	}
	t.mu.Unlock()
	out := make([]SessionInfo, 0, len(all))
	for _, s := range all {
		out = append(out, s.Info())
	}
	slices.SortFunc(out, func(a, b SessionInfo) int {
		return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), strings.Compare(a.ID, b.ID))
	})
	return out
}
