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

// TestQuestions has two consoles that show a question of a process, and answer it: each answer is to what was shown,
// the first one counts, and the other console is told who was first.
func TestQuestions(t *testing.T) {
	testenv.NeedInotify(t)
	testEnv(t)
	asking := &listen.QuestionServer{Wait: time.Hour,
		Beside: approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
			return approval.Decision{}, approval.ErrPass
		}),
		Remembered: func() []approval.Remembered { return nil },
		Revoke:     func(string) error { return errors.New("nothing is remembered") },
		Failed:     func(err error) { t.Error(err) }}
	defer asking.Close()
	consoles := make([]*questions, 2)
	for i := range consoles {
		watch, err := listen.WatchQuestions()
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Close()
		consoles[i] = &questions{watch: watch}
	}
	type listing struct {
		Questions []asked
		Version   string
	}
	list := func(q *questions, params string) (l listing) {
		t.Helper()
		call(t, func() (any, error) { return q.list(t.Context(), json.RawMessage(params)) }, &l)
		return l
	}
	first := list(consoles[0], `{}`)
	if len(first.Questions) != 0 || first.Version == "" {
		t.Fatalf("%+v", first)
	}
	decided := make(chan approval.Decision, 2)
	ask := func(id string) {
		go func() {
			d, err := asking.Approve(t.Context(), &approval.Request{ID: id, Kind: approval.KindCommand,
				Args: []string{"make", "\x1b[2J"}, Available: []approval.Answer{approval.Approved, approval.Denied}})
			if err != nil {
				t.Error(err)
			}
			decided <- d
		}()
	}
	ask("q-1")
	wait := func(q *questions, since string, n int) (l listing) {
		t.Helper()
		l.Version = since
		for len(l.Questions) != n {
			l = list(q, fmt.Sprintf(`{"since":%q,"waitMs":60000}`, l.Version))
		}
		return l
	}
	l := wait(consoles[0], first.Version, 1)
	ask("q-2")
	l = wait(consoles[0], l.Version, 2)
	wait(consoles[1], "", 2)
	if l.Questions[0].ID != "q-2" || l.Questions[1].ID != "q-1" || !json.Valid(l.Questions[0].Request) {
		t.Errorf("not the newest first: %+v", l)
	}
	digest := l.Questions[1].Digest
	answer := func(q *questions, id, digest, decision string) error {
		_, err := q.answer(t.Context(), json.RawMessage(fmt.Sprintf(`{"id":%q,"digest":%q,"decision":%q}`, id, digest,
			decision)))
		return err
	}
	for _, test := range []struct{ name, id, digest, decision, reason string }{
		{"another digest", "q-1", l.Questions[0].Digest, "approved", "otherQuestion"},
		{"no digest", "q-1", "", "approved", "otherQuestion"},
		{"not offered", "q-1", digest, "approved_for_session", "notOffered"},
		{"never shown", "q-3", digest, "approved", "unknownQuestion"},
	} {
		err := answer(consoles[0], test.id, test.digest, test.decision)
		if got := wire.RefusalOf(err); string(got.Reason) != test.reason {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	if _, err := consoles[0].answer(t.Context(), json.RawMessage(`{"id":"q-1","decision":"approved"}`)); wireCode(err) !=
		wire.CodeInvalidParams {
		t.Errorf("without a digest: %v", err)
	}
	if err := answer(consoles[1], "q-1", digest, "approved"); err != nil {
		t.Fatal(err)
	}
	if d := <-decided; d.Answer != approval.Approved || d.Source != approval.FromConsole {
		t.Errorf("%+v", d)
	}
	for name, q := range map[string]*questions{"the other one": consoles[0], "the same one": consoles[1]} {
		err := answer(q, "q-1", digest, "denied")
		var e *wire.Error
		if want := `{"by":"console","reason":"unknownQuestion"}`; !errors.As(err, &e) || string(e.Data) != want {
			t.Errorf("%s is too late: %v, %s", name, err, e.Data)
		}
	}
	l = wait(consoles[0], l.Version, 1)
	if err := answer(consoles[0], "q-2", l.Questions[0].Digest, "denied"); err != nil {
		t.Error(err)
	}
	if d := <-decided; d.Answer != approval.Denied {
		t.Errorf("%+v", d)
	}
}
