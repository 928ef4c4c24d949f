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

	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// How many sessions there may be.
const (
	// DefaultMaxSessions is how many sessions may be alive when MaxSessions is 0.
	DefaultMaxSessions = 64
	// noticeSessions is from how many of 64 on replies say that there are many.
	noticeSessions = 60
	// keptSessions is how many ended sessions are still known.
	keptSessions = 64
)

// Identities of sessions: numbers that are short and easy to repeat.
const (
	firstID = 1000
	lastID  = 99_999
)

// A SessionInfo is what a list of sessions shows.
type SessionInfo struct {
	ID       string    `json:"id"`
	Run      string    `json:"run"` // as in events
	CallerID string    `json:"caller_id,omitempty"`
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

// A TooManySessionsError reports that the session limit is reached. No session was ended
// for the new one.
type TooManySessionsError struct {
	Max        int
	Candidates []SessionInfo // the live sessions, the one that was idle for longest first
}

// Error returns one sentence that names the first candidates.
func (e *TooManySessionsError) Error() string {
	if len(e.Candidates) == 0 {
		return fmt.Sprintf("sallyport: session limit (%d) reached by sessions that are starting; try again when one has ended", e.Max)
	}
	const named = 3
	var ids []string
	for _, c := range e.Candidates[:min(named, len(e.Candidates))] {
		ids = append(ids, fmt.Sprintf("%s (%s, idle for %v)", c.ID, text.Line(strings.Join(c.Args, " ")),
			time.Since(c.LastUsed).Round(time.Second)))
	}
	return fmt.Sprintf("sallyport: session limit (%d) reached; end one first, such as %s", e.Max,
		strings.Join(ids, ", "))
}

// sessions is the table of a Runner. The zero sessions is empty.
type sessions struct {
	process.Table[*Session]
	bounds sync.Once

	mu   sync.Mutex
	used map[int]struct{} // every number that was given
	next int              // for sequential numbers
}

// reserve takes a place and a number, or refuses.
func (t *sessions) reserve(most int, sequential bool) (*process.Place[*Session], string, error) {
	t.bounds.Do(func() { t.Ended, t.Drop = keptSessions, (*Session).drop })
	most = cmp.Or(most, DefaultMaxSessions)
	place, err := t.Reserve(most)
	if err != nil {
		return nil, "", &TooManySessionsError{Max: most, Candidates: t.idle()}
	}
	return place, strconv.Itoa(t.number(sequential)), nil
}

// number draws a number that was never given. When half of the range is used, the
// range grows tenfold, so a draw takes two tries on average.
func (t *sessions) number(sequential bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
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

// idle lists the live sessions, the one that was idle for longest first.
func (t *sessions) idle() []SessionInfo {
	live, _ := t.List()
	return infos(live, func(a, b SessionInfo) int {
		return cmp.Or(a.LastUsed.Compare(b.LastUsed), strings.Compare(a.ID, b.ID))
	})
}

// infos lists sessions in an order.
func infos(list []*Session, order func(a, b SessionInfo) int) []SessionInfo {
	out := make([]SessionInfo, len(list))
	for i, s := range list {
		out[i] = s.Info()
	}
	slices.SortFunc(out, order)
	return out
}

// drop frees what is retained of the output of ended sessions outside of memory.
func (t *sessions) drop() {
	_, ended := t.List()
	for _, s := range ended {
		s.drop()
	}
}

// notice returns a sentence if there are many sessions; else it is empty.
func (t *sessions) notice(most int) string {
	most = cmp.Or(most, DefaultMaxSessions)
	_, n, _ := t.Count()
	if n < max(most*noticeSessions/DefaultMaxSessions, 1) || most < 2 {
		return ""
	}
	return fmt.Sprintf("%d of at most %d sessions are alive; reuse sessions, or end those that are not needed", n, most)
}

// Session returns the session with an identity, alive or ended, and whether it is known.
// Of ended sessions that were not closed, the last 64 are.
func (r *Runner) Session(id string) (*Session, bool) { return r.sessions.Find(id) }

// Sessions lists the sessions, alive or ended, by their number.
func (r *Runner) Sessions() []SessionInfo {
	live, ended := r.sessions.List()
	return infos(append(ended, live...), func(a, b SessionInfo) int {
		return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), strings.Compare(a.ID, b.ID))
	})
}
