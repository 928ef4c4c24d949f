// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// watch begins to follow the questions of a state directory of its own.
func watch(t *testing.T) *QuestionWatch {
	t.Helper()
	testenv.NeedInotify(t)
	w, err := WatchQuestions()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// until returns the next listing with so many questions.
func (w *QuestionWatch) until(t *testing.T, n int) *QuestionListing {
	t.Helper()
	for since := ""; ; {
		var l *QuestionListing
		if l, since = w.Listing(t.Context(), since); len(l.Pending) == n {
			return l
		}
		if t.Context().Err() != nil {
			t.Fatalf("no listing with %d questions", n)
		}
	}
}

// TestWatchQuestions: questions of processes that come later are listed, with their limits, and those that
// are answered or whose process ends are not.
func TestWatchQuestions(t *testing.T) {
	home(t)
	early := newPost(t, passes)
	first := early.ask(t, request("abc-1"))
	w := watch(t)
	if l, _ := w.Listing(t.Context(), ""); len(l.Pending) != 1 { // the first one is complete
		t.Fatalf("%+v", l)
	}
	late := newPost(t, passes)
	second := late.ask(t, request("abb-1"))
	l := w.until(t, 2)
	if l.Pending[1].Request.ID != "abb-1" || len(l.Silent) > 0 {
		t.Errorf("the newest one is not the last: %+v", l)
	}
	for l.Pending[1].Expires == 0 { // it is listed before its time begins
		l, _ = w.Listing(t.Context(), "")
	}
	if left := time.Until(time.UnixMilli(l.Pending[1].Expires)); left > time.Minute {
		t.Errorf("%v are left", left)
	}
	answer := &wire.QuestionAnswer{ID: "abb-1", Digest: "another", Decision: "denied", Source: "console"}
	if err := w.Answer(answer); !errors.Is(err, ErrOther) {
		t.Errorf("another digest: %v", err)
	}
	answer.Digest = l.Pending[1].Digest
	if err := w.Answer(answer); err != nil {
		t.Fatal(err)
	}
	if got := <-second; got.d.Source != approval.FromConsole {
		t.Errorf("%+v", got)
	}
	var before *AnsweredError
	err := l.Answer("abb-1", approval.Approved, "", "")
	if !errors.As(err, &before) || before.By != approval.FromConsole ||
		!errors.Is(err, ErrUnknownQuestion) {
		t.Errorf("answered again: %v", err)
	}
	if l := w.until(t, 1); l.Pending[0].Request.ID != "abc-1" {
		t.Errorf("%+v", l)
	}
	if err := early.questions.Answer("abc-1", approval.Decision{}); err != nil || (<-first).err != nil {
		t.Error(err)
	}
	w.until(t, 0)
	third := late.ask(t, request("abb-2"))
	w.until(t, 1)
	if err := late.questions.Answer("abb-2", approval.Decision{}); err != nil || (<-third).err != nil {
		t.Error(err)
	}
	w.until(t, 0)
	late.Close()
	for id, by := range map[string]approval.Source{"abb-1": approval.FromConsole,
		"abb-2": approval.FromUser} {
		if err := w.Answer(&wire.QuestionAnswer{ID: id}); !errors.As(err, &before) || before.By != by {
			t.Errorf("%s after the end of its process: %v, want %s", id, err, by)
		}
	}
	if err := w.Answer(&wire.QuestionAnswer{ID: "never"}); !errors.Is(err, ErrUnknownQuestion) {
		t.Error(err)
	}
}

// TestWatchMany: of many processes each question is listed.
func TestWatchMany(t *testing.T) {
	home(t)
	w := watch(t)
	for i := range 30 {
		newPost(t, passes).ask(t, request(fmt.Sprint("abc-", i)))
	}
	w.until(t, 30)
}

// TestWatchEnds: a listing that waits ends with its context, and with the watch.
func TestWatchEnds(t *testing.T) {
	home(t)
	w := watch(t)
	_, version := w.Listing(t.Context(), "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if l, same := w.Listing(ctx, version); same != version || len(l.Pending) != 0 {
		t.Errorf("%+v", l)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		w.Listing(t.Context(), version)
	}()
	w.Close()
	<-over
}

// TestWatchGarbage: a socket that talks nonsense is named, and others are listed.
func TestWatchGarbage(t *testing.T) {
	home(t)
	defer func(old time.Duration) { patience = old }(patience)
	patience = time.Second
	dir := directory(t)
	nonsense := listenAt(t, dir+"/17-0123456789abcdef.sock")
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := nonsense.Accept()
			if err != nil {
				return
			}
			_ = c.Close() // it says nothing
		}
	})
	t.Cleanup(func() {
		nonsense.Close()
		serving.Wait()
	})
	if err := os.WriteFile(dir+"/18-0123456789abcdef.sock", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w := watch(t)
	defer w.Close() // before patience is another one
	newPost(t, passes).ask(t, request("abc-1"))
	if l := w.until(t, 1); len(l.Silent) != 2 || !strings.Contains(l.Silent[0], "process 17 ") {
		t.Errorf("%q", l.Silent)
	}
}

// TestAnsweredFirst: an answer that came too late says who was first.
func TestAnsweredFirst(t *testing.T) {
	for _, test := range []struct {
		name   string
		beside approval.Approver
		want   approval.Source
	}{
		{"a program", approval.Fixed(approval.Decision{Source: approval.FromHook}), approval.FromHook},
		{"the terminal", approval.Fixed(approval.Decision{Source: approval.FromUser}), approval.FromUser},
		{"no one in time", passes, "timeout"},
	} {
		t.Run(test.name, func(t *testing.T) {
			home(t)
			p := newPost(t, test.beside)
			p.Wait = time.Millisecond
			r := request("abc-1")
			if _, err := p.Approve(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			found, err := socketsIn(socketsDir)
			if err != nil || len(found) != 1 {
				t.Fatal(found, err)
			}
			q := Question{Request: r, socket: found[0]}
			var before *AnsweredError
			err = q.Answer(&wire.QuestionAnswer{ID: "abc-1", Digest: "any", Decision: "approved"})
			if !errors.As(err, &before) || before.By != test.want {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}

// TestInConsole: a question waits as long as a console is open, and is denied where none is.
func TestInConsole(t *testing.T) {
	home(t)
	p := newPost(t, passes)
	p.Wait, p.InConsole = 0, true
	waits := make(chan time.Duration, 1)
	p.Waits = func(_ *approval.Request, wait time.Duration, console bool) {
		if console {
			waits <- wait
		}
	}
	denied := func(id, why string, got outcome) {
		t.Helper()
		if got.err != nil || got.d.Answer != approval.Denied || !strings.Contains(got.d.Message, why) {
			t.Errorf("%s: %+v", id, got)
		}
	}
	d, err := p.Approve(t.Context(), request("abc-1"))
	denied("without a console", "no console is open", outcome{d, err})

	end, err := OpenConsole()
	if err != nil {
		t.Fatal(err)
	}
	out := p.ask(t, request("abc-2"))
	if wait := <-waits; wait != consoleWait {
		t.Errorf("it waits %v", wait)
	}
	another, err := OpenConsole()
	if err != nil {
		t.Fatal(err)
	}
	end()
	end()
	if err := list(t).Answer("abc-2", approval.Approved, "", ""); err != nil {
		t.Error(err)
	}
	if got := <-out; got.d.Answer != approval.Approved {
		t.Errorf("with another console: %+v", got)
	}
	out = p.ask(t, request("abc-3"))
	<-waits
	another()
	denied("closed", "was closed", <-out)
	if left, err := socketsIn(consolesDir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}

	p.Wait = time.Hour // then no console is needed
	out = p.ask(t, request("abc-4"))
	err = list(t).Answer("abc-4", approval.Approved, "", "")
	if err != nil || (<-out).d.Answer != approval.Approved {
		t.Error(err)
	}
}

// TestDeadConsole: what is left of a console that was killed is none, and is removed.
func TestDeadConsole(t *testing.T) {
	home(t)
	end, err := OpenConsole()
	if err != nil {
		t.Fatal(err)
	}
	end()
	state, err := dirs.Dir()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(state, consolesDir, "1-0123456789abcdef.sock")
	if err := listenAt(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	if c := findConsole(t.Context()); c != nil {
		c.close()
		t.Error("it is open")
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
