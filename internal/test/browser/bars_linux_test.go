// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"

	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// report logs the median of what was measured beside its bar, and fails the test only where all of it is
// far above: a busy machine says nothing about the product.
func report(t *testing.T, what string, bar time.Duration, all []time.Duration) {
	t.Helper()
	slices.Sort(all)
	median := all[len(all)/2]
	t.Logf("bar: %s: median %v of %d (%v to %v), bar %v", what, median, len(all), all[0], all[len(all)-1], bar)
	if limit := 30 * time.Second; all[0] > limit {
		t.Errorf("%s takes %v at best, the bar is %v", what, all[0], bar)
	}
}

// manyRuns writes copies of the newest run to the audit log, n in all, the last one now.
func (s *seat) manyRuns(n int) {
	s.t.Helper()
	const kind = "run"
	dir := filepath.Join(s.home, ".state", "sallyport", "audit")
	var run map[string]json.RawMessage
	err := audit.Read(dir, audit.Filter{Kind: kind}, func(r audit.Record) error {
		run = nil
		return json.Unmarshal(bytes.Clone(r.Body), &run)
	})
	if err != nil || run == nil {
		s.t.Fatalf("no run is in the log: %v", err)
	}
	l, err := audit.Open(audit.Options{Dir: dir})
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range n {
		run["run"] = json.RawMessage(fmt.Sprintf(`"%08x"`, i+1<<28))
		run["argv"] = json.RawMessage(fmt.Sprintf(`["make","target-%d"]`, i))
		body, err := json.Marshal(run)
		if err == nil {
			err = l.Append(kind, body)
		}
		if err == nil && i%1000 == 999 {
			err = l.Sync(s.t.Context())
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// firstPaint is when the first text or picture was drawn, in milliseconds since the navigation.
const firstPaint = `new Promise((ready) => new PerformanceObserver((list) => {
	const [entry] = list.getEntriesByName("first-contentful-paint");
	if (entry) ready(entry.startTime);
}).observe({ type: "paint", buffered: true }))`

// TestManyRuns: 10 000 runs are paged and searched, and the first page of them is there at once.
func TestManyRuns(t *testing.T) {
	const n = 10_000
	s := newSeat(t)
	s.configure("history.runs = 20000\n")
	s.says("run", "--", "echo", "first-of-all")
	s.manyRuns(n)
	c := s.console()
	p := open(t, c)
	p.view("runs")
	p.wait(fmt.Sprintf("run~target-%d", n-1))
	var first, paint []time.Duration
	for range 5 {
		p.do(chromedp.Reload())
		p.wait(fmt.Sprintf("run~target-%d", n-1))
		ms := func(expression string) time.Duration {
			return time.Duration(eval[float64](p, expression) * float64(time.Millisecond))
		}
		paint = append(paint, ms(firstPaint))
		first = append(first, ms(`sp.seen.first["run"]`))
	}
	report(t, "first contentful paint with 10 000 runs", 300*time.Millisecond, paint)
	report(t, "the first row of 10 000 runs", 300*time.Millisecond, first)
	rows := p.count("run")
	if rows > 1000 {
		t.Errorf("%d rows are in the document at once", rows)
	}
	p.wait("range~1 to 100 of 10,001")
	p.click("older")
	p.wait("range~101 to 200 of 10,001")
	p.gone(fmt.Sprintf("run~target-%d", n-1))
	p.until(`sp.all(["run"]).length > 0`)
	p.click("newer")
	p.wait(fmt.Sprintf("run~target-%d", n-1))
	p.click("search")
	p.keys("first-of-all")
	p.until(`sp.all(["run"]).length === 1`)
	p.wait("run~first-of-all")
}

// TestLargeLog: 100 MiB of output stay small in the tab, and the end of it is shown.
func TestLargeLog(t *testing.T) {
	megabytes := testenv.Rounds(12, 100)
	s := newSeat(t)
	id := s.detached(fmt.Sprintf(`i=0; while [ $i -lt %d ]; do head -c 786432 /dev/urandom | base64; i=$((i+1)); done
		echo the-last-line; cat`, megabytes))
	p := open(t, s.console())
	p.openSession("base64") // its command line
	s.must("wait", "--for", "match=the-last-line", "--timeout", "10m", id)
	p.until(`sp.until(() => ` + screen + `.includes("the-last-line")).then(() => true)`)
	heap, tab := p.memory()
	t.Logf("bar: memory of the tab with %d MiB of output: heap of scripts %d MiB, process %d MiB, bar 200 MiB",
		megabytes, heap>>20, tab>>20)
	if heap > 400<<20 {
		t.Errorf("the heap has %d MiB", heap>>20)
	}
}

// memory returns what the scripts of the page hold, and what its process has for itself alone, in bytes.
func (p *tab) memory() (heap, process int64) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	p.do(call(performance.Enable, performance.EnableParams{}))
	got, err := chromedp.Run(ctx, func(ctx context.Context, target *chromedp.Target) (performance.GetMetricsResult, error) {
		return cdp.Call(ctx, target, performance.GetMetrics, cdp.Empty{})
	})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, m := range got.Metrics {
		if m.Name == "JSHeapUsedSize" {
			heap = int64(m.Value)
		}
	}
	all, err := chromedp.CallBrowser(ctx, systeminfo.GetProcessInfo, cdp.Empty{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, info := range all.ProcessInfo {
		if info.Type == "renderer" {
			process = max(process, private(int(info.ID))) // the largest one is that of this tab
		}
	}
	return heap, process
}

// private returns the memory that a process shares with no other one.
func private(pid int) (sum int64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid)) // 0 for one that has ended
	for line := range strings.SplitSeq(string(text), "\n") {
		var kb int64
		if name, value, ok := strings.Cut(line, ":"); ok && strings.HasPrefix(name, "Private_") {
			if _, err := fmt.Sscan(value, &kb); err == nil {
				sum += kb << 10
			}
		}
	}
	return sum
}

// TestViewOnly: every view is shown, and nothing can be answered, typed or changed.
func TestViewOnly(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	s.write("note.txt", "first\n")
	s.stageID(`echo second >> note.txt`)
	s.deniedRun()
	s.detached(`echo ready; cat`)
	a := s.asks("--", "touch", "made")
	p := open(t, s.console("--view-only"))
	p.view("questions")
	p.wait("question", "question-command")
	p.keys("y\r")
	p.view("sessions")
	p.click("session~ready", "session-open")
	p.shows("ready")
	p.view("runs")
	p.click("run~../out/file")
	p.wait("run-denial")
	p.view("changes")
	p.click("stage")
	p.wait("change~note.txt")
	for _, id := range []string{"answer-approved", "answer-denied", "take-control", "stop", "signal",
		"config-allow", "apply", "discard", "revoke"} {
		usable := eval[int](p, `sp.all([`+js(id)+`]).filter((el) => !el.disabled &&
			el.getAttribute("aria-disabled") !== "true").length`)
		if usable != 0 {
			t.Errorf("%s can be used", id)
		}
	}
	if out := s.must("approvals"); !strings.Contains(out, a.id) {
		t.Errorf("the question was answered: %s", out)
	}
}

// TestToken: the token opens the page once, also the browser's history has none, and a new tab of the same
// browser has no second secret.
func TestToken(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	c := s.console()
	p := open(t, c)
	if at := eval[string](p, `location.href`); strings.Contains(at, "token") {
		t.Errorf("the address is %s", at)
	}
	p.do(chromedp.Reload())
	p.connected("connected")
	other := newTab(t, c.origin)
	other.do(chromedp.Navigate(c.url))
	other.connected("gone")
}
