// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// everyAnswer are the answers that a question can offer.
var everyAnswer = []Answer{Approved, ApprovedForSession, Denied, Abort}

// question returns a request that takes all answers, for the command with that key.
func question(id, key string) *Request {
	return &Request{ID: id, Key: key, Available: everyAnswer}
}

// asking is a question that was put in the background.
type asking struct {
	d      Decision
	shared bool
	err    error
	done   chan struct{}
}

func ask1(ctx context.Context, m *Memory, a Approver, r *Request) *asking {
	q := &asking{done: make(chan struct{})}
	go func() {
		defer close(q.done)
		q.d, q.shared, q.err = m.Ask(ctx, a, r)
	}()
	return q
}

// TestEqualQuestions: equal questions that are open at the same time are one, and all get its
// answer; others are questions of their own.
func TestEqualQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Memory
		var b OpenQuestions
		var all []*asking
		for i := range 20 {
			all = append(all, ask1(t.Context(), &m, &b, question(fmt.Sprint(i), "same")))
		}
		other := ask1(t.Context(), &m, &b, question("other", "other"))
		kind := question("kind", "same")
		kind.Kind = KindAccess
		wider := question("wider", "same")
		wider.Requires = []string{Outside}
		more := []*asking{ask1(t.Context(), &m, &b, kind), ask1(t.Context(), &m, &b, wider)}
		synctest.Wait()
		pending := b.Pending()
		if len(pending) != 4 {
			t.Fatalf("%d questions, want 4", len(pending))
		}
		if err := b.Answer("other", Decision{}); err != nil {
			t.Fatal(err)
		}
		<-other.done
		i := slices.IndexFunc(pending, func(r *Request) bool {
			return r.Key == "same" && r.Kind == "" &&
				r.Requires == nil
		})
		if err := b.Answer(pending[i].ID, Decision{Answer: Approved, Message: "yes"}); err != nil {
			t.Fatal(err)
		}
		first := 0
		for _, q := range all {
			<-q.done
			if q.err != nil || q.d.Answer != Approved || q.d.Message != "yes" || q.d.Source != FromUser {
				t.Errorf("%+v, %v", q.d, q.err)
			}
			if !q.shared {
				first++
			}
		}
		if first != 1 || other.d.Answer != Denied {
			t.Errorf("%d asked first; the other one got %v", first, other.d)
		}
		if got, _, err := m.Ask(t.Context(), Fixed(Decision{}), question("x", "same")); err != nil ||
			got.Answer != Denied {
			t.Errorf("once was remembered: %v, %v", got, err)
		}
		for _, id := range []string{"kind", "wider"} {
			if err := b.Answer(id, Decision{}); err != nil {
				t.Error(err)
			}
		}
		for _, q := range more {
			<-q.done
		}
	})
}

// TestWithdrawn: a question is withdrawn when all who wait for it have gone, and not before; the
// next one asks anew.
func TestWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Memory
		var b OpenQuestions
		one, endOne := context.WithCancel(t.Context())
		two, endTwo := context.WithCancelCause(t.Context())
		first, second := ask1(one, &m, &b, question("1", "k")), ask1(two, &m, &b, question("2", "k"))
		synctest.Wait()
		endOne()
		<-first.done
		synctest.Wait()
		if !errors.Is(first.err, context.Canceled) || len(b.Pending()) != 1 {
			t.Errorf("%v, %d questions", first.err, len(b.Pending()))
		}
		why := errors.New("why")
		endTwo(why)
		<-second.done
		if !errors.Is(second.err, why) || len(b.Pending()) != 0 || len(m.open) != 0 {
			t.Errorf("%v, %d questions", second.err, len(b.Pending()))
		}
		if d, shared, err := m.Ask(t.Context(), Fixed(Decision{Answer: Approved}),
			question("3", "k")); err != nil || shared || d.Answer != Approved {
			t.Errorf("%v, %v, %v", d, shared, err)
		}
	})
}

// TestAbort: it is the answer to all questions that are open, and to none that come later.
func TestAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Memory
		var b OpenQuestions
		var all []*asking
		for i := range 5 {
			all = append(all, ask1(t.Context(), &m, &b, question(fmt.Sprint(i), fmt.Sprint(i))))
		}
		synctest.Wait()
		if err := b.Answer("3", Decision{Answer: Abort, Source: FromHook}); err != nil {
			t.Fatal(err)
		}
		for _, q := range all {
			<-q.done
			if q.err != nil || q.d.Answer != Abort || q.d.Source != FromHook {
				t.Errorf("%+v, %v", q.d, q.err)
			}
		}
		if len(b.Pending()) != 0 {
			t.Errorf("%d questions are open", len(b.Pending()))
		}
		if d, _, err := m.Ask(t.Context(), Fixed(Decision{Answer: Approved}),
			question("x", "1")); err != nil || d.Answer != Approved {
			t.Errorf("%v, %v", d, err)
		}
	})
}

// TestRemembered: only an approval for the session is, for its question, until it is revoked, too
// old, or one of too many.
func TestRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := Memory{Life: time.Hour, Most: 2}
		put := func(id, key string, a Answer) Decision {
			t.Helper()
			d, _, err := m.Ask(t.Context(), Fixed(Decision{Answer: a, Source: FromUser}), question(id, key))
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		cached := func(key string) bool { return put("?", key, Denied).Source == FromCache }
		for _, a := range []Answer{Approved, Denied, Abort, TimedOut} {
			if put("1", "k", a); cached("k") {
				t.Errorf("%v is remembered", a)
			}
		}
		if put("", "", ApprovedForSession); cached("") {
			t.Error("a question without a key is remembered")
		}
		put("1", "a", ApprovedForSession)
		if d := put("2", "a", Denied); d.Answer != ApprovedForSession ||
			d.Source != FromCache || d.Wait != 0 {
			t.Errorf("%+v", d)
		}
		<-time.After(time.Minute)
		put("2", "b", ApprovedForSession)
		put("3", "c", ApprovedForSession)
		if cached("a") || !cached("b") || !cached("c") || len(m.List()) != 2 {
			t.Errorf("%v", m.List())
		}
		if err := m.Revoke("2"); err != nil || cached("b") {
			t.Error(err)
		}
		if err := m.Revoke("2"); !errors.Is(err, ErrNotRemembered) {
			t.Error(err)
		}
		<-time.After(time.Hour)
		if !cached("c") {
			t.Error("it was forgotten early")
		}
		<-time.After(time.Nanosecond)
		if cached("c") || len(m.List()) != 0 {
			t.Error("it was not forgotten")
		}
	})
}

// TestGranted: what was opened after a denial counts for the command, what its caller asked for
// does not, and only as long as it is remembered.
func TestGranted(t *testing.T) { synctest.Test(t, granted) }

func granted(t *testing.T) {
	m := Memory{Life: time.Hour}
	yes := Fixed(Decision{Answer: ApprovedForSession})
	for _, r := range []*Request{
		{Kind: KindCommand, Key: "k", Requires: []string{Outside}, Available: everyAnswer},
		{Kind: KindAccess, Key: "k", Requires: []string{"write:/a", "write:/b"}, Available: everyAnswer},
		{Kind: KindAccess, Key: "k", Requires: []string{"host:h:443"}, Available: everyAnswer},
		{Kind: KindAccess, Key: "other", Requires: []string{"write:/c"}, Available: everyAnswer},
	} {
		if _, _, err := m.Ask(t.Context(), yes, r); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.Granted("k"); !slices.Equal(got, []string{"write:/a", "write:/b", "host:h:443"}) {
		t.Errorf("%q", got)
	}
	<-time.After(time.Hour + 1)
	if got := m.Granted("k"); got != nil {
		t.Errorf("afterwards %q", got)
	}
}

// TestManyEqualQuestions: 10 000 equal questions are one, and take at most 64 MiB. The benchmark has the
// time.
func TestManyEqualQuestions(t *testing.T) {
	if memory, _ := manyEqual(t); memory > 64<<20 {
		t.Errorf("%d MiB", memory>>20)
	}
}

func manyEqual(t testing.TB) (memory uint64, took time.Duration) {
	const n = 10_000
	var m Memory
	var b OpenQuestions
	used := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapInuse + s.StackInuse
	}
	before := used()
	text := strings.Repeat("x", 100)
	var all sync.WaitGroup
	for i := range n {
		r := question(fmt.Sprint(i), "key")
		r.Args = []string{text, fmt.Sprint(i)}
		all.Go(func() {
			if d, _, err := m.Ask(t.Context(), &b, r); err != nil || d.Answer != Approved {
				t.Errorf("%v, %v", d, err)
			}
		})
	}
	for waiting := 0; waiting < n; runtime.Gosched() {
		m.mu.Lock()
		waiting = 0
		for _, f := range m.open {
			waiting = f.waiters
		}
		m.mu.Unlock()
	}
	for changed := b.Changed(); len(b.Pending()) == 0; changed = b.Changed() {
		<-changed
	}
	memory = used() - before
	if p := b.Pending(); len(p) != 1 {
		t.Fatalf("%d questions", len(p))
	}
	start := time.Now()
	if err := b.Answer(b.Pending()[0].ID, Decision{Answer: Approved}); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	return memory, time.Since(start)
}

// BenchmarkManyEqualQuestions. Claim: all are answered within 50 ms, and take 64 MiB at most.
func BenchmarkManyEqualQuestions(b *testing.B) {
	var whole time.Duration
	var memory uint64
	for b.Loop() {
		m, d := manyEqual(b)
		memory, whole = max(memory, m), whole+d
	}
	b.ReportMetric(float64(whole.Microseconds())/1000/float64(b.N), "ms/answer")
	b.ReportMetric(float64(memory)/(1<<20), "MiB")
}
