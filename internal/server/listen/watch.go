// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// A QuestionWatch follows the open questions of all running processes of this user. It is made by
// [WatchQuestions]. Its methods may be called from several goroutines at once.
type QuestionWatch struct {
	life    context.Context
	end     context.CancelFunc
	unwatch func()
	changes runs.Changes
	work    sync.WaitGroup
	first   sync.WaitGroup // until each process that was there at the begin has answered, or has not
	ready   chan struct{}  // closed then

	mu      sync.Mutex
	looked  bool                       // once
	sockets map[string]*followed       // by path
	seen    map[string]time.Time       // when a question was listed first, by its ID
	over    map[string]approval.Source // who has answered questions, by their IDs
}

// A followed is a socket with what its process has answered last.
type followed struct {
	questionSocket
	listed *QuestionListing // nil before the first answer
	failed error            // why it could not be followed; nil if it could
	active bool             // it is followed, or that is tried
}

// WatchQuestions begins to follow the open questions. Close must be called. It is not supported on Windows.
func WatchQuestions() (*QuestionWatch, error) {
	state, err := dirs.Dir()
	if err != nil {
		return nil, err
	}
	root, err := safefile.MakeDirs(filepath.Join(state, socketsDir)) // else there is nothing to watch
	if err != nil {
		return nil, err
	}
	root.Close()
	var all []string
	for _, dir := range dirs.Existing() {
		all = append(all, filepath.Join(dir, socketsDir))
	}
	w := &QuestionWatch{ready: make(chan struct{}), sockets: map[string]*followed{},
		seen: map[string]time.Time{}, over: map[string]approval.Source{}}
	w.life, w.end = context.WithCancel(context.Background())
	w.unwatch, err = dirs.Watch(func() []string { return all },
		func() { _ = w.look() }) // a directory that cannot be read now may be after the next change
	if err != nil {
		w.end()
		return nil, fmt.Errorf("cannot watch for questions: %w", err)
	}
	if err := w.look(); err != nil {
		w.Close()
		return nil, err
	}
	w.work.Go(func() {
		w.first.Wait()
		close(w.ready)
	})
	return w, nil
}

// Close ends the watch.
func (w *QuestionWatch) Close() {
	w.mu.Lock()
	w.end() // nothing is followed from now on
	w.mu.Unlock()
	w.unwatch()
	w.work.Wait()
}

// look begins to follow the sockets that are not followed.
func (w *QuestionWatch) look() error {
	found, err := socketsIn(socketsDir)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.life.Err() != nil {
		return nil
	}
	first := !w.looked
	w.looked = true
	there := map[string]bool{}
	for _, d := range found {
		there[d.path] = true
		f := w.sockets[d.path]
		if f == nil {
			f = &followed{questionSocket: d}
			w.sockets[d.path] = f
		}
		if !f.active {
			f.active = true
			told := func() {}
			if first {
				w.first.Add(1)
				told = sync.OnceFunc(w.first.Done)
			}
			w.work.Go(func() { w.follow(f, told) })
		}
	}
	maps.DeleteFunc(w.sockets, func(path string, f *followed) bool { return !f.active && !there[path] })
	w.changes.Tell()
	return nil
}

// follow lists the questions of a process until it ends.
func (w *QuestionWatch) follow(f *followed, told func()) {
	defer told()
	err := f.with(w.life, func(ctx context.Context, c *wire.Client) error {
		for since := ""; ; {
			var list wire.QuestionList
			err := c.Call(ctx, "question/list", wire.ListWait{Since: since, WaitMs: math.MaxInt32}, &list)
			if err != nil {
				return err
			}
			now := new(QuestionListing)
			if err := now.take(f.questionSocket, &list); err != nil {
				return err
			}
			w.set(func() {
				f.listed, f.failed = now, nil
				w.answeredLocked(list.Answered...)
			})
			told()
			ctx = w.life
			if since = list.Version; since == "" { // of an older version, which cannot be waited for
				<-c.Done()
				return c.Err()
			}
		}
	})
	w.set(func() {
		f.failed, f.active = err, false
		if f.listed != nil || errors.Is(err, ErrUnknownQuestion) { // its process has ended
			delete(w.sockets, f.path)
		}
	})
}

// maxOver is how many answered questions are remembered at least, and half of how many at most.
const maxOver = 1024

// answeredLocked remembers who has answered questions.
func (w *QuestionWatch) answeredLocked(all ...wire.Answered) {
	if len(w.over) >= 2*maxOver {
		clear(w.over) // long ago: the processes that still tell are listed again at their next change
	}
	for _, a := range all {
		w.over[a.ID] = approval.Source(a.By)
	}
}

// Answer answers an open question, by the digest of what was shown. The error is as that of
// [QuestionListing.Answer] for a whole ID; an [*AnsweredError] also where the process has ended meanwhile.
func (w *QuestionWatch) Answer(a *wire.QuestionAnswer) error {
	l, _ := w.listing()
	err := ErrUnknownQuestion
	for i := range l.Pending {
		if q := &l.Pending[i]; q.Request.ID == a.ID {
			err = q.Answer(a)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.answeredLocked(wire.Answered{ID: a.ID, By: cmp.Or(a.Source, string(approval.FromUser))})
	}
	var known *AnsweredError
	if by := w.over[a.ID]; by != "" && errors.Is(err, ErrUnknownQuestion) && !errors.As(err, &known) {
		return &AnsweredError{by}
	}
	return err
}

func (w *QuestionWatch) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	w.changes.Tell()
}

// Listing returns what is open, and its version, when that is another one than since or ctx has ended. The
// newest question is the last one. The listing has no rules. The first call waits until all processes have
// answered, for some seconds at most. An empty since asks again those that did not answer.
func (w *QuestionWatch) Listing(ctx context.Context, since string) (l *QuestionListing, version string) {
	if runs.Await(ctx, []<-chan struct{}{w.ready, w.life.Done()}) && since == "" {
		_ = w.look() // as above
	}
	for {
		changed := []<-chan struct{}{w.changes.Next(), w.life.Done()}
		l, version = w.listing()
		if version != since || w.life.Err() != nil || !runs.Await(ctx, changed) {
			return l, version
		}
	}
}

func (w *QuestionWatch) listing() (*QuestionListing, string) {
	l := newListing()
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := map[string]time.Time{}
	for _, path := range slices.Sorted(maps.Keys(w.sockets)) {
		l.add(w.sockets[path])
	}
	for _, q := range l.Pending {
		seen[q.Request.ID] = w.seen[q.Request.ID]
		if seen[q.Request.ID].IsZero() {
			seen[q.Request.ID] = time.Now()
		}
	}
	w.seen = seen
	slices.SortStableFunc(l.Pending, func(a, b Question) int {
		return seen[a.Request.ID].Compare(seen[b.Request.ID])
	})
	slices.SortStableFunc(l.Session, func(a, b QuestionSession) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.ID, b.ID))
	})
	sum := sha256.New()
	for _, q := range l.Pending {
		fmt.Fprintf(sum, "%q %q %d\n", q.Request.ID, q.Digest, q.Expires)
	}
	for _, s := range l.Session {
		fmt.Fprintf(sum, "%q\n", s.ID)
	}
	fmt.Fprintf(sum, "%q", l.Silent)
	return l, hex.EncodeToString(sum.Sum(nil)[:16])
}

// Version returns that of the listing as it is now, and a channel that is closed when it is another one,
// perhaps.
func (w *QuestionWatch) Version() (version string, changed <-chan struct{}) {
	changed = w.changes.Next()
	_, version = w.listing()
	return version, changed
}
