// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// heard keeps events.
type heard struct {
	mu   sync.Mutex
	list []Event
}

func (h *heard) hear(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, e)
}

// of returns the events of one type, in order.
func of[E Event](h *heard) (list []E) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.list {
		if one, ok := e.(E); ok {
			list = append(list, one)
		}
	}
	return list
}

// id returns the number of the first process.
func (h *heard) id() int { return of[Begin](h)[0].SessionID }

// deltaText joins the data of all deltas; missing counts what they lack.
func (h *heard) deltaText() (s string, missing uint64) {
	var b strings.Builder
	for _, d := range of[Delta](h) {
		b.Write(d.Data)
		missing += d.Missing
	}
	return b.String(), missing
}

// bubble runs a test on Tools over a fakeMachine, in time that costs nothing.
func bubble(t *testing.T, plays map[string]func(*fakeProcess),
	f func(t *testing.T, tools *Tools, h *heard, m *fakeMachine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h, m := &heard{}, &fakeMachine{plays: plays}
		tools := &Tools{Events: h.hear, Runner: &sallyport.Runner{Executor: m},
			Cmd: sallyport.Cmd{Env: []string{}}}
		f(t, tools, h, m)
		if err := errors.Join(tools.Close(), tools.Runner.Close()); err != nil {
			t.Error(err)
		}
		for i, p := range m.started {
			if p.out.closed != 1 {
				t.Errorf("the output of process %d was closed %d times", i, p.out.closed)
			}
		}
		if b, e := len(of[Begin](h)), len(of[End](h)); b != e {
			t.Errorf("%d begin and %d end events", b, e)
		}
	})
}

// exec calls ExecCommand and fails the test with its error.
func exec(t *testing.T, tools *Tools, q Request) *Response {
	t.Helper()
	r, err := tools.ExecCommand(t.Context(), q)
	if err != nil {
		t.Fatalf("%q: %v", q.Command, err)
	}
	return r
}

// write calls WriteStdin and fails the test with its error.
func write(t *testing.T, tools *Tools, w WriteRequest) *Response {
	t.Helper()
	r, err := tools.WriteStdin(t.Context(), w)
	if err != nil {
		t.Fatalf("%q to %d: %v", w.Chars, w.SessionID, err)
	}
	return r
}

// took fails the test unless the time since began is exactly as given.
func took(t *testing.T, began time.Time, want time.Duration) {
	t.Helper()
	if got := time.Since(began); got != want {
		t.Errorf("it took %v, want %v", got, want)
	}
}

func TestTimes(t *testing.T) {
	no, yes := false, true
	tests := []struct {
		name string
		play func(*fakeProcess)
		q    Request
		want time.Duration
		why  sallyport.Reason
	}{
		{"row 28 a live quiet process costs the whole yield", nil, Request{Yield: seconds(3)}, seconds(3), sallyport.ReasonDeadline},
		{"row 28 something that holds the streams costs 250 ms at most", func(p *fakeProcess) {
			after(p.context, seconds(1))
			p.exit(ending{}, true)
		}, Request{}, seconds(1.25), sallyport.ReasonExited},
		{"an end is told at once", later(seconds(1), "x", ending{}), Request{}, seconds(1), sallyport.ReasonExited},
		{"a terminal that waits for input answers", echo, Request{TTY: true}, 0, sallyport.ReasonInput},
		{"unless that is turned off", echo, Request{TTY: true, Until: Conditions{InputWait: &no}}, seconds(10), sallyport.ReasonDeadline},
		{"where nobody can tell, the time counts", func(p *fakeProcess) {
			p.set(func() { p.blind = true })
			after(p.context, time.Hour)
		}, Request{TTY: true}, seconds(10), sallyport.ReasonDeadline},
		{"pipes do not answer for it", echo, Request{Stdin: StdinPipe}, seconds(10), sallyport.ReasonDeadline},
		{"unless that is turned on", echo, Request{Stdin: StdinPipe, Until: Conditions{InputWait: &yes}}, 0, sallyport.ReasonInput},
		{"bytes", func(p *fakeProcess) {
			after(p.context, seconds(1))
			p.print("1234")
			after(p.context, seconds(1))
			p.print("5678")
		}, Request{Until: Conditions{MinBytes: 5}}, seconds(2), sallyport.ReasonBytes},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, map[string]func(*fakeProcess){"x": test.play},
				func(t *testing.T, tools *Tools, _ *heard, _ *fakeMachine) {
					began := time.Now()
					test.q.Command = "x"
					r := exec(t, tools, test.q)
					took(t, began, test.want)
					if r.Reason != test.why {
						t.Errorf("the reason is %q, want %q", r.Reason, test.why)
					}
					if r.WallTime != test.want {
						t.Errorf("the wall time is %v", r.WallTime)
					}
				})
		})
	}
}

func TestPollTimes(t *testing.T) {
	tests := []struct {
		name    string
		longest time.Duration
		yield   time.Duration
		want    time.Duration
	}{
		{"row 28 a poll of a live quiet process lasts the full clamp", 0, 0, seconds(5)},
		{"a longer one", 0, seconds(60), seconds(60)},
		{"the longest", 0, time.Hour, 5 * time.Minute},
		{"a shorter longest", seconds(7), time.Hour, seconds(7)},
		{"a longest below the least", seconds(1), time.Hour, seconds(5)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, tools *Tools, _ *heard, _ *fakeMachine) {
				tools.MaxPoll = test.longest
				r := exec(t, tools, Request{Command: "x"})
				began := time.Now()
				write(t, tools, WriteRequest{SessionID: r.SessionID, Yield: test.yield})
				took(t, began, test.want)
			})
		})
	}
	t.Run("row 5 a write of 10 ms is one of 250", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, tools *Tools, _ *heard, _ *fakeMachine) {
			r := exec(t, tools, Request{Command: "x", TTY: true})
			began := time.Now()
			write(t, tools, WriteRequest{SessionID: r.SessionID, Chars: "y", Yield: 10 * time.Millisecond})
			took(t, began, MinYield)
		})
	})
	t.Run("row 7i a yield of 120 s is one of 30", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, tools *Tools, _ *heard, _ *fakeMachine) {
			began := time.Now()
			exec(t, tools, Request{Command: "x", Yield: seconds(120)})
			took(t, began, MaxYield)
		})
	})
}

func TestPause(t *testing.T) {
	plays := map[string]func(*fakeProcess){"x": later(seconds(1), "done", ending{})}
	t.Run("section 16 a pause of 2 s, a command of 1 s, a yield of 250 ms", func(t *testing.T) {
		bubble(t, plays, func(t *testing.T, tools *Tools, _ *heard, _ *fakeMachine) {
			began := time.Now()
			resume := tools.Pause()
			go func() {
				after(context.Background(), seconds(2))
				resume()
				resume()
			}()
			r := exec(t, tools, Request{Command: "x", Yield: MinYield})
			took(t, began, seconds(2))
			if r.ExitCode == nil || string(r.Output) != "done" {
				t.Errorf("got %+v", r)
			}
		})
	})
	t.Run("two pauses that overlap, in the middle of a call", func(t *testing.T) {
		bubble(t, plays, func(t *testing.T, tools *Tools, _ *heard, _ *fakeMachine) {
			began := time.Now()
			for _, d := range []struct{ from, to float64 }{{1, 3}, {2, 4}, {5, 6}} {
				go func() {
					after(context.Background(), seconds(d.from))
					resume := tools.Pause()
					after(context.Background(), seconds(d.to-d.from))
					resume()
				}()
			}
			exec(t, tools, Request{Command: "quiet", Yield: seconds(4)})
			took(t, began, seconds(8))
		})
	})
	t.Run("the end of the context ends the call in a pause", func(t *testing.T) {
		bubble(t, plays, func(t *testing.T, tools *Tools, _ *heard, _ *fakeMachine) {
			defer tools.Pause()()
			ctx, cancel := context.WithTimeout(t.Context(), seconds(3))
			defer cancel()
			_, err := tools.ExecCommand(ctx, Request{Command: "x"})
			var interrupted *Error
			if !isKind(err, ErrInterrupted, &interrupted) || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %v", err)
			}
			tools.pause.open = 1 // what is left of it does not matter
			if list := tools.List(); len(list) != 1 || list[0].SessionID != interrupted.SessionID {
				t.Errorf("the list is %+v", list)
			}
		})
	})
}

func TestStreamerEnds(t *testing.T) {
	tests := []struct {
		name string
		shut time.Duration // when the streams are closed, after the exit; 0 never
		want time.Duration // when the end is told
	}{
		{"row 27 closed after late output", 70 * time.Millisecond, 70 * time.Millisecond},
		{"row 27 never closed", 0, 300 * time.Millisecond},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			play := func(p *fakeProcess) {
				p.print("early ")
				p.exit(ending{}, true)
				after(context.Background(), 50*time.Millisecond)
				p.print("late")
				if test.shut > 0 {
					after(context.Background(), test.shut-50*time.Millisecond)
					p.shutStreams()
				}
			}
			bubble(t, map[string]func(*fakeProcess){"x": play},
				func(t *testing.T, tools *Tools, h *heard, _ *fakeMachine) {
					exec(t, tools, Request{Command: "x"})
					after(t.Context(), time.Second)
					end := of[End](h)
					if len(end) != 1 || end[0].Duration != test.want ||
						string(end[0].Output) != "early late" {
						t.Errorf("got %+v, want the end after %v", end, test.want)
					}
					if s, _ := h.deltaText(); s != "early late" {
						t.Errorf("the deltas are %q", s)
					}
				})
		})
	}
}

// TestNoReturn: a listener that ends its goroutine misses the event, and nothing waits; without a watch,
// nothing is started.
func TestNoReturn(t *testing.T) {
	bubble(t, map[string]func(*fakeProcess){"x": later(0, "x", ending{})},
		func(t *testing.T, tools *Tools, h *heard, _ *fakeMachine) {
			hear := tools.Events
			tools.Events = func(e Event) {
				hear(e)
				runtime.Goexit()
			}
			if r, err := tools.ExecCommand(t.Context(), Request{Command: "x"}); err != nil ||
				string(r.Output) != "x" {
				t.Errorf("%+v, %v", r, err)
			}
			synctest.Wait()
			if len(of[Begin](h)) != 1 || len(of[End](h)) != 1 {
				t.Errorf("the events are %+v, %+v", of[Begin](h), of[End](h))
			}
			tools.Watch = func(context.Context, string) <-chan string { panic("no watch") }
			var failed *sallyport.PanicError
			if _, err := tools.ExecCommand(t.Context(), Request{Command: "x"}); !errors.As(err, &failed) ||
				failed.Where != "Watch" {
				t.Errorf("a watch that panics: %v", err)
			}
			if taken, live, _ := tools.processes.Count(); taken != live {
				t.Errorf("%d places are reserved", taken-live)
			}
		})
}

func TestWatch(t *testing.T) {
	type said struct {
		after   time.Duration // since the start of the process
		message string
	}
	tests := []struct {
		name    string
		play    func(*fakeProcess)
		said    []said
		message string // of the failure; empty for none
		output  string // of the end
		ended   time.Duration
	}{
		{"row 29 a denial 10 ms after the exit", later(seconds(1), "", ending{}),
			[]said{{seconds(1.01), "no network"}}, "no network", "no network", seconds(1.01)},
		{"a denial while it runs ends it", func(p *fakeProcess) { p.print("PRE") },
			[]said{{seconds(2), ""}}, NetworkDenied, "PRE\n" + NetworkDenied, seconds(2)},
		{"row 33 the first of two failures stays", later(seconds(1), "x", ending{}),
			[]said{{seconds(0.5), "first"}, {seconds(0.6), "second"}}, "first", "first", seconds(0.5)},
		{"a denial too late", later(seconds(1), "x", ending{}), []said{{seconds(1.2), "late"}}, "", "x", seconds(1.1)},
		{"none", later(seconds(1), "x", ending{code: 3}), nil, "", "x", seconds(1.1)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, map[string]func(*fakeProcess){"x": test.play},
				func(t *testing.T, tools *Tools, h *heard, _ *fakeMachine) {
					var released time.Duration
					began := time.Now()
					tools.Watch = func(ctx context.Context, callID string) <-chan string {
						if callID != "call" {
							t.Errorf("watched %q", callID)
						}
						context.AfterFunc(ctx, func() { released = time.Since(began) })
						c := make(chan string, 2)
						go func() {
							for _, s := range test.said {
								after(ctx, s.after-time.Since(began))
								c <- s.message
							}
						}()
						return c
					}
					_, err := tools.ExecCommand(t.Context(), Request{CallID: "call", Command: "x"})
					var failed *Error
					if got := isKind(err, ErrFailed, &failed); got != (test.message != "") || got &&
						failed.Message != ErrFailed.Error()+": "+test.message {
						t.Errorf("the error is %v, want the failure %q", err, test.message)
					}
					synctest.Wait()
					end := of[End](h)
					if len(end) != 1 || string(end[0].Output) != test.output ||
						end[0].Duration != test.ended {
						t.Fatalf("the end is %+v %q", end, end[0].Output)
					}
					if failed != nil && (end[0].ExitCode != -1 || end[0].Status != Failed) {
						t.Errorf("the end is %+v", end[0])
					}
					if released != test.ended {
						t.Errorf("the watch was released after %v, want %v", released, test.ended)
					}
					if list := tools.List(); len(list) != 0 {
						t.Errorf("the list is %+v", list)
					}
				})
		})
	}
}

func TestFirstFailureStays(t *testing.T) {
	tools, e := new(Tools), new(entry)
	for _, message := range []string{"first", "second"} {
		tools.fail(e, message)
		if got := tools.failure(e, nil); got != "first" {
			t.Errorf("row 33: after %q it is %q", message, got)
		}
	}
}

func TestFailedOutput(t *testing.T) {
	tests := []struct{ name, collected, transcript, want string }{
		{"row 30 what was collected goes before the transcript", "PRE", "ignored", "PRE\nMESSAGE"},
		{"the transcript otherwise", "", "TRANSCRIPT", "TRANSCRIPT\nMESSAGE"},
		{"the message alone", "", "", "MESSAGE"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := string(failedOutput([]byte(test.collected), []byte(test.transcript),
				"MESSAGE")); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestStartFails(t *testing.T) {
	tests := []struct {
		name   string
		err    error
		status Status
	}{
		{"row 30 a start that fails has a beginning and an end", errors.New("no such shell"), Failed},
		{"a refusal is a declined one", sallyport.ErrRefused, Declined},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, tools *Tools, h *heard, host *fakeMachine) {
				host.fail = test.err
				_, err := tools.ExecCommand(t.Context(), Request{CallID: "c", Command: "x"})
				want := "Failed to create unified exec process: " + test.err.Error()
				if !errors.Is(err, test.err) || err.Error() != want {
					t.Errorf("got %q, want %q", err, want)
				}
				end := of[End](h)
				if len(end) != 1 || end[0].Status != test.status || end[0].ExitCode != -1 ||
					string(end[0].Output) != want {
					t.Errorf("got %+v", end)
				}
				if taken, _, _ := tools.processes.Count(); taken != 0 {
					t.Error("the place is still reserved")
				}
			})
		})
	}
}
