// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A dropped records the calls of Drop.
type dropped struct {
	mu  sync.Mutex
	all []string
}

func (d *dropped) add(s string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, s)
}

func (d *dropped) is(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if got := slices.Sorted(slices.Values(d.all)); !slices.Equal(got, want) {
		t.Errorf("%q were dropped, want %q", got, want)
	}
}

// enter has an item named like its identity start.
func enter(t *testing.T, tab *Table[string], id string) *Place[string] {
	t.Helper()
	p, err := tab.Reserve(1000)
	if err == nil {
		_, err = p.Enter(id, id)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func count(t *testing.T, tab *Table[string], want ...int) {
	t.Helper()
	taken, live, ended := tab.Count()
	if got := []int{taken, live, ended}; !slices.Equal(got, want) {
		t.Errorf("taken, live, ended are %v, want %v", got, want)
	}
}

// TestPlaces: a place is taken from Reserve to End, also that of an item which is forgotten or never known.
func TestPlaces(t *testing.T) {
	tab := &Table[string]{Ended: 10}
	a, err := tab.Reserve(2)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := tab.Reserve(2)
	if _, err := tab.Reserve(2); !errors.Is(err, ErrTableFull) {
		t.Errorf("a third place: %v", err)
	}
	if live, err := a.Enter("a", "A"); err != nil || live != 1 {
		t.Errorf("%d, %v", live, err)
	}
	if _, err := b.Enter("a", "B"); !errors.Is(err, ErrTableTaken) {
		t.Errorf("the identity again: %v", err)
	}
	count(t, tab, 2, 1, 0)
	if item, ok := tab.Find("a"); !ok || item != "A" {
		t.Errorf("%q, %v", item, ok)
	}
	b.End(0) // it was never known
	count(t, tab, 1, 1, 0)
	if !a.Forget() || a.Forget() {
		t.Error("it is not forgotten once")
	}
	count(t, tab, 1, 0, 0)
	a.End(0)
	count(t, tab, 0, 0, 0)
	if _, ok := tab.Find("a"); ok {
		t.Error("it is known after its end")
	}
}

// TestEnded: what has ended is kept within the bounds, the newest of it, and its identity stays taken.
func TestEnded(t *testing.T) {
	for _, test := range []struct {
		name          string
		ended, weight int
		weights       []int
		kept          []string
	}{
		{"zero", 0, 0, []int{0, 0}, nil},
		{"many", 2, 0, []int{5, 5, 5}, []string{"1", "2"}},
		{"heavy", 9, 10, []int{5, 5, 1}, []string{"1", "2"}},
		{"one too heavy", 9, 10, []int{5, 11}, nil},
		{"light again", 9, 10, []int{11, 4, 6}, []string{"1", "2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := new(dropped)
				tab := &Table[string]{Ended: test.ended, Weight: test.weight, Drop: d.add}
				var gone []string
				for i, weight := range test.weights {
					id := fmt.Sprint(i)
					enter(t, tab, id).End(weight)
					if !slices.Contains(test.kept, id) {
						gone = append(gone, id)
					}
				}
				d.is(t, gone...)
				live, ended := tab.List()
				if len(live) != 0 || !slices.Equal(ended, test.kept) {
					t.Errorf("live %q, ended %q, want %q", live, ended, test.kept)
				}
				for _, id := range test.kept {
					p, _ := tab.Reserve(1)
					if _, err := p.Enter(id, "other"); !errors.Is(err, ErrTableTaken) {
						t.Errorf("%s again: %v", id, err)
					}
					p.End(0)
				}
			})
		})
	}
}

// TestForgotten: what is forgotten weighs nothing and is not dropped.
func TestForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(dropped)
		tab := &Table[string]{Ended: 9, Weight: 10, Drop: d.add}
		a := enter(t, tab, "a")
		a.End(8)
		a.Forget()
		enter(t, tab, "b").End(8)
		if _, ok := tab.Find("b"); !ok {
			t.Error("b is gone")
		}
		d.is(t)
	})
}

// TestTime: what has ended is dropped after its time, which stands still while the Table is paused, begins
// anew with Resume, and never ends after Close.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(dropped)
		tab := &Table[string]{Ended: 9, Time: time.Minute, Drop: d.add}
		enter(t, tab, "a").End(0)
		live := enter(t, tab, "live")
		<-time.After(50 * time.Second)
		tab.Pause()
		enter(t, tab, "b").End(0)
		<-time.After(time.Hour)
		d.is(t)
		tab.Resume()
		<-time.After(50 * time.Second)
		enter(t, tab, "c").End(0)
		count(t, tab, 1, 1, 3)
		<-time.After(11 * time.Second)
		synctest.Wait()
		count(t, tab, 1, 1, 1)
		<-time.After(time.Minute)
		synctest.Wait()
		count(t, tab, 1, 1, 0)
		live.End(0)
		tab.Close()
		<-time.After(time.Hour)
		count(t, tab, 0, 0, 1)
		if _, err := tab.Reserve(9); !errors.Is(err, ErrTableClosed) {
			t.Errorf("after Close: %v", err)
		}
		tab.Resume()
		<-time.After(time.Hour)
		count(t, tab, 0, 0, 1)
	})
}

// TestClosed: Close waits for Drop, and what was reserved before it does not become known; what ends after
// it stays beyond the bounds.
func TestClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, over := make(chan struct{}), false
		tab := &Table[string]{Ended: 1, Drop: func(string) { <-release }}
		enter(t, tab, "a").End(0)
		b, late := enter(t, tab, "b"), enter(t, tab, "late")
		b.End(0)
		waiting, err := tab.Reserve(9)
		if err != nil {
			t.Fatal(err)
		}
		go func() { tab.Close(); over = true }()
		synctest.Wait()
		if over {
			t.Error("Close did not wait")
		}
		close(release)
		synctest.Wait()
		if !over {
			t.Error("Close waits still")
		}
		if _, err := waiting.Enter("c", "c"); !errors.Is(err, ErrTableClosed) {
			t.Errorf("an item after Close: %v", err)
		}
		waiting.End(0)
		late.End(0)
		count(t, tab, 0, 0, 2)
	})
}
