// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package consoles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/server/listen"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// asker is a process that asks, with the questions that are decided.
func asker(t *testing.T) (ask func(id string), decided chan approval.Decision) {
	t.Helper()
	server := &listen.QuestionServer{Wait: time.Hour,
		Beside: approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
			return approval.Decision{}, approval.ErrPass
		}),
		Remembered: func() []approval.Remembered { return nil },
		Revoke:     func(string) error { return errors.New("nothing is remembered") },
		Failed:     func(err error) { t.Error(err) }}
	t.Cleanup(server.Close)
	decided = make(chan approval.Decision, 2)
	return func(id string) {
		go func() {
			d, err := server.Approve(t.Context(), &approval.Request{ID: id, Kind: approval.KindCommand,
				Args: []string{"make", "\x1b[2J"}, Available: []approval.Answer{approval.Approved,
					approval.Denied}})
			if err != nil {
				t.Error(err)
			}
			decided <- d
		}()
	}, decided
}

// watcher is what a console knows of questions.
func watcher(t *testing.T) questions {
	t.Helper()
	watch, err := listen.WatchQuestions()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watch.Close)
	return questions{watch}
}

type listing struct {
	Questions []asked
	Version   string
}

// until returns the list when it has n questions.
func (q questions) until(t *testing.T, since string, n int) (l listing) {
	t.Helper()
	for l.Version = since; ; {
		params := fmt.Sprintf(`{"since":%q,"waitMs":60000}`, l.Version)
		call(t, func() (any, error) { return q.list(t.Context(), json.RawMessage(params)) }, &l)
		if len(l.Questions) == n {
			return l
		}
	}
}

// decide answers a question.
func (q questions) decide(t *testing.T, id, digest, decision string) error {
	t.Helper()
	_, err := q.answer(t.Context(), json.RawMessage(fmt.Sprintf(`{"id":%q,"digest":%q,"decision":%q}`, id,
		digest,
		decision)))
	return err
}

// TestQuestions has two consoles that show a question of a process, and answer it: each answer is to what was
// shown, the first one counts, and the other console is told who was first.
func TestQuestions(t *testing.T) {
	testenv.NeedInotify(t)
	testEnv(t)
	ask, decided := asker(t)
	one, two := watcher(t), watcher(t)
	l := one.until(t, "", 0)
	ask("q-1")
	l = one.until(t, l.Version, 1)
	ask("q-2")
	l = one.until(t, l.Version, 2)
	two.until(t, "", 2)
	if l.Questions[0].ID != "q-2" || l.Questions[1].ID != "q-1" || !json.Valid(l.Questions[0].Request) {
		t.Errorf("not the newest first: %+v", l)
	}
	digest := l.Questions[1].Digest
	for _, test := range []struct{ name, id, digest, decision, reason string }{
		{"another digest", "q-1", l.Questions[0].Digest, "approved", "otherQuestion"},
		{"no digest", "q-1", "", "approved", "otherQuestion"},
		{"not offered", "q-1", digest, "approved_for_session", "notOffered"},
		{"never shown", "q-3", digest, "approved", "unknownQuestion"},
	} {
		err := one.decide(t, test.id, test.digest, test.decision)
		if got := wire.RefusalOf(err); got.Reason != test.reason {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	_, err := one.answer(t.Context(), json.RawMessage(`{"id":"q-1","decision":"approved"}`))
	if wireCode(err) != wire.CodeInvalidParams {
		t.Errorf("without a digest: %v", err)
	}
	if err := two.decide(t, "q-1", digest, "approved"); err != nil {
		t.Fatal(err)
	}
	if d := <-decided; d.Answer != approval.Approved || d.Source != approval.FromConsole {
		t.Errorf("%+v", d)
	}
	for name, q := range map[string]questions{"the other one": one, "the same one": two} {
		err := q.decide(t, "q-1", digest, "denied")
		var e *wire.Error
		if want := `{"by":"console","reason":"unknownQuestion"}`; !errors.As(err,
			&e) || string(e.Data) != want {
			t.Errorf("%s is too late: %v, %s", name, err, e.Data)
		}
	}
	l = one.until(t, l.Version, 1)
	if err := one.decide(t, "q-2", l.Questions[0].Digest, "denied"); err != nil {
		t.Error(err)
	}
	if d := <-decided; d.Answer != approval.Denied {
		t.Errorf("%+v", d)
	}
}
