// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// startMany starts n quiet commands, a second apart, and returns their responses.
func startMany(t *testing.T, tools *Tools, n int) (list []*Response) {
	t.Helper()
	for i := range n {
		list = append(list, exec(t, tools, Request{CallID: fmt.Sprint("call ", i),
			Command: fmt.Sprint("sleep ", i), Yield: seconds(1)}))
	}
	return list
}

func TestCap(t *testing.T) {
	t.Run("row 50 66 starts", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, tools *Tools, h *heard, m *fakeMachine) {
			m.slow = seconds(1)
			var mu sync.Mutex
			var refused []*Error
			ids := map[int]bool{}
			var calls sync.WaitGroup
			for i := range 66 {
				calls.Go(func() {
					r, err := tools.ExecCommand(t.Context(), Request{Command: fmt.Sprint("sleep ", i)})
					mu.Lock()
					defer mu.Unlock()
					var full *Error
					switch {
					case err == nil:
						ids[r.SessionID] = true
					case isKind(err, ErrTooMany, &full):
						refused = append(refused, full)
					default:
						t.Error(err)
					}
				})
			}
			calls.Wait()
			if len(ids) != 64 || len(refused) != 2 {
				t.Fatalf("%d run, %d were refused", len(ids), len(refused))
			}
			for _, info := range tools.List() {
				if !info.Running {
					t.Errorf("%+v was ended", info)
				}
			}
			if n := len(of[Evicted](h)); n != 0 {
				t.Errorf("%d were evicted", n)
			}
		})
	})
	t.Run("row 50 the refusal names the one left alone for longest first", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, tools *Tools, _ *heard, m *fakeMachine) {
			tools.Runner.MaxSessions = 10
			list := startMany(t, tools, 10)
			write(t, tools, WriteRequest{SessionID: list[0].SessionID})
			_, err := tools.ExecCommand(t.Context(), Request{Command: "x"})
			var full *Error
			if !isKind(err, ErrTooMany, &full) || full.Max != 10 || len(full.Candidates) != 10 {
				t.Fatalf("got %v", err)
			}
			if full.Candidates[0].SessionID != list[1].SessionID ||
				full.Candidates[9].SessionID != list[0].SessionID {
				t.Errorf("the candidates are %+v", full.Candidates)
			}
			want := fmt.Sprintf("session limit (10) reached; end a process first, such as the one that was idle for longest: session %d (sleep 1), session %d (sleep 2)", list[1].SessionID, list[2].SessionID)
			if end := fmt.Sprintf("session %d (sleep 8) and 2 more",
				list[8].SessionID); !strings.HasPrefix(err.Error(), want) ||
				!strings.HasSuffix(err.Error(), end) {
				t.Errorf("got %q", err)
			}
		})
	})
}

func TestRoomIsMade(t *testing.T) {
	t.Run("what has ended makes room, and that is told", func(t *testing.T) {
		plays := map[string]func(*fakeProcess){"sleep 3": later(seconds(2), "", ending{})}
		bubble(t, plays, func(t *testing.T, tools *Tools, h *heard, m *fakeMachine) {
			tools.Runner.MaxSessions = 6
			list := startMany(t, tools, 6)
			r := exec(t, tools, Request{Command: "x"})
			want := fmt.Sprintf("Session %d (sleep 3) had ended and is forgotten to make room for this one.",
				list[3].SessionID)
			if !slices.Equal(r.Notices, []string{want}) {
				t.Errorf("got %q", r.Notices)
			}
			if e := of[Evicted](h); len(e) != 1 || e[0].Process.Running {
				t.Errorf("the events are %+v", e)
			}
			if _, err := tools.ExecCommand(t.Context(), Request{Command: "y"}); err == nil {
				t.Error("there was room for one more")
			}
		})
	})
	t.Run("evict=lru", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, tools *Tools, h *heard, m *fakeMachine) {
			tools.Evict, tools.Runner.MaxSessions = EvictLRU, 10
			list := startMany(t, tools, 10)
			write(t, tools, WriteRequest{SessionID: list[0].SessionID})
			r := exec(t, tools, Request{Command: "x"})
			if want := []string{fmt.Sprintf("Session %d (sleep 1) was ended to make room for this one.",
				list[1].SessionID)}; !slices.Equal(r.Notices, want) {
				t.Errorf("got %q", r.Notices)
			}
			if !strings.Contains(r.Text(), "\n"+r.Notices[0]+"\nOutput:\n") {
				t.Errorf("the text is %q", r.Text())
			}
			synctest.Wait()
			e, end := of[Evicted](h), of[End](h)
			if len(e) != 1 || e[0].Process.CallID != "call 1" || !e[0].Process.Running || len(end) != 1 ||
				end[0].CallID != "call 1" {
				t.Errorf("the events are %+v %+v", e, end)
			}
			var unknown *Error
			if _, err := tools.WriteStdin(t.Context(),
				WriteRequest{SessionID: list[1].SessionID}); !isKind(err, ErrUnknownProcess, &unknown) ||
				unknown.SessionID != list[1].SessionID {
				t.Errorf("got %v", err)
			}
		})
	})
}

func TestNoRoom(t *testing.T) {
	t.Run("evict=lru with nothing but protected ones", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, tools *Tools, _ *heard, m *fakeMachine) {
			tools.Evict, tools.Runner.MaxSessions = EvictLRU, ProtectedProcesses
			startMany(t, tools, ProtectedProcesses)
			var full *Error
			if _, err := tools.ExecCommand(t.Context(), Request{Command: "x"}); !isKind(err,
				ErrTooMany, &full) {
				t.Errorf("got %v", err)
			}
		})
	})
	t.Run("a warning from 60", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, tools *Tools, _ *heard, _ *fakeMachine) {
			list := startMany(t, tools, 60)
			if n := list[58].Notices; n != nil {
				t.Errorf("at 59 it is %q", n)
			}
			const want = "Warning: The maximum number of unified exec processes you can keep open is 64 and you currently have 60 processes open. "
			if n := list[59].Notices; len(n) != 1 || !strings.HasPrefix(n[0], want) {
				t.Errorf("at 60 it is %q", n)
			}
			tools.WarnAt = -1
			if n := exec(t, tools, Request{Command: "x"}).Notices; n != nil {
				t.Errorf("turned off it is %q", n)
			}
		})
	})
}

// A writeRule is what happens to one write.
type writeRule struct {
	name  string
	q     Request
	chars string
	play  func(*fakeProcess)
	want  error // nil: a response
	code  int   // of the end; -1: it runs
	text  string
}

func writeRules() []writeRule {
	refuse := func(*fakeProcess, string) error { return errors.New("it is full") }
	return []writeRule{
		{"row 41 text to pipes", Request{}, "ls\n", nil, ErrStdinClosed, 0, ""},
		{"row 41 U+0003 with more", Request{}, "\x03\n", nil, ErrStdinClosed, 0, ""},
		{"row 40 U+0003 to pipes", Request{}, "\x03", func(p *fakeProcess) {
			p.obeys(func(p *fakeProcess) error { p.exit(ending{code: 130, signal: 2}, false); return nil })
		}, nil, 130, ""},
		{"U+0003 to an executor without signals", Request{}, "\x03", nil, ErrNoInterrupt, 0, ""},
		{"U+0003 to a terminal is a byte", Request{TTY: true}, "\x03", echo, nil, -1, "\x03"},
		{"bytes as they are", Request{TTY: true}, "a\r\nb\x00é", echo, nil, -1, "a\r\nb\x00é"},
		{"pipes that were kept open", Request{Stdin: StdinPipe}, "ls\n", echo, nil, -1, "ls\n"},
		{"row 6 exit", Request{TTY: true}, "exit\n", echo, nil, 0, ""},
		{"a program that takes nothing", Request{TTY: true}, "x", func(p *fakeProcess) { p.reacts(refuse) }, ErrWrite, 0, ""},
		{"row 32 a program that ends meanwhile", Request{TTY: true}, "x", func(p *fakeProcess) {
			p.reacts(func(p *fakeProcess, _ string) error {
				go func() {
					after(p.context, 40*time.Millisecond)
					p.exit(ending{code: 9}, false)
				}()
				return errors.New("broken pipe")
			})
		}, nil, 9, ""},
		{"row 32 a program that had ended", Request{TTY: true}, "x", func(p *fakeProcess) {
			after(p.context, seconds(11))
			p.print("last")
			p.exit(ending{code: 9}, false)
		}, nil, 9, "last"},
	}
}

func TestWriteRules(t *testing.T) {
	for _, test := range writeRules() {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, map[string]func(*fakeProcess){"x": test.play},
				func(t *testing.T, tools *Tools, h *heard, _ *fakeMachine) {
					test.q.Command, test.q.CallID = "x", "call"
					first := exec(t, tools, test.q)
					after(t.Context(), seconds(2))
					r, err := tools.WriteStdin(t.Context(),
						WriteRequest{SessionID: first.SessionID, Chars: test.chars})
					var failed *Error
					switch {
					case test.want == nil && err == nil:
						test.check(t, tools, first, r, of[Interaction](h))
					case !errors.As(err, &failed) || !errors.Is(err, test.want):
						t.Errorf("got %v, want %v", err, test.want)
					case !errors.Is(err, ErrWrite) && len(of[Interaction](h)) != 0:
						t.Error("an interaction is told")
					}
				})
		})
	}
}

// check looks at the response to a write and at what is left afterwards.
func (test writeRule) check(t *testing.T, tools *Tools, first, r *Response, told []Interaction) {
	t.Helper()
	if string(r.Output) != test.text {
		t.Errorf("the output is %q, want %q", r.Output, test.text)
	}
	if r.CallID != "call" || r.ChunkID == first.ChunkID {
		t.Errorf("got %+v", r)
	}
	if test.code < 0 {
		if r.SessionID != first.SessionID || r.ExitCode != nil {
			t.Errorf("got %+v", r)
		}
		want := Interaction{CallID: "call", SessionID: r.SessionID, Stdin: test.chars}
		if !slices.Equal(told, []Interaction{want}) {
			t.Errorf("the interactions are %+v", told)
		}
		return
	}
	if r.SessionID != 0 || r.ExitCode == nil || *r.ExitCode != test.code {
		t.Errorf("got %+v", r)
	}
	var unknown *Error
	if _, err := tools.WriteStdin(t.Context(), WriteRequest{SessionID: first.SessionID}); !isKind(err,
		ErrUnknownProcess, &unknown) || unknown.SessionID != first.SessionID {
		t.Errorf("row 6: afterwards it is %v", err)
	}
	if len(tools.List()) != 0 {
		t.Error("row 8i: the store is not empty")
	}
}

func TestInterrupted(t *testing.T) {
	t.Run("row 39 the process lives, and nothing is lost", func(t *testing.T) {
		play := func(p *fakeProcess) { p.print("one \xc3"); after(p.context, seconds(2)); p.print("\xa9two") }
		bubble(t, map[string]func(*fakeProcess){"x": play},
			func(t *testing.T, tools *Tools, h *heard, _ *fakeMachine) {
				why := errors.New("the turn ended")
				ctx, cancel := context.WithCancelCause(t.Context())
				go func() { after(t.Context(), seconds(1)); cancel(why) }()
				_, err := tools.ExecCommand(ctx, Request{Command: "x"})
				var interrupted *Error
				if !isKind(err, ErrInterrupted, &interrupted) || !errors.Is(err, why) {
					t.Fatalf("got %v", err)
				}
				r := write(t, tools, WriteRequest{SessionID: interrupted.SessionID})
				if string(r.Output) != "one étwo" || r.OriginalTokens != 3 {
					t.Errorf("got %q, %d tokens", r.Output, r.OriginalTokens)
				}
				if list := tools.List(); len(list) != 1 || !list[0].Running {
					t.Errorf("the list is %+v", list)
				}
				if err := tools.Close(); err != nil {
					t.Error(err)
				}
				if end := of[End](h); len(end) != 1 || end[0].ExitCode != 143 {
					t.Errorf("row 39: after Close the end is %+v", end)
				}
			})
	})
	t.Run("while it waits for its turn", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, tools *Tools, _ *heard, _ *fakeMachine) {
			r := exec(t, tools, Request{Command: "x"})
			go func() {
				_, _ = tools.WriteStdin(context.Background(),
					WriteRequest{SessionID: r.SessionID})
			}()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), seconds(1))
			defer cancel()
			if _, err := tools.WriteStdin(ctx, WriteRequest{SessionID: r.SessionID}); !errors.Is(err,
				context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	})
}

func TestCharactersWait(t *testing.T) {
	play := func(p *fakeProcess) {
		p.print("A\xc3")
		after(p.context, seconds(11))
		p.print("\xa9B\n")
		after(p.context, seconds(11))
		p.print("C\xc3")
		p.exit(ending{}, false)
	}
	bubble(t, map[string]func(*fakeProcess){"x": play},
		func(t *testing.T, tools *Tools, h *heard, _ *fakeMachine) {
			first := exec(t, tools, Request{Command: "x"})
			second := write(t, tools, WriteRequest{SessionID: first.SessionID})
			third := write(t, tools, WriteRequest{SessionID: first.SessionID, Yield: time.Minute})
			got := []string{string(first.Output), string(second.Output), string(third.Output)}
			if want := []string{"A", "éB\n", "C\xc3"}; !slices.Equal(got, want) {
				t.Errorf("row 46: got %q, want %q", got, want)
			}
			if third.text != "C\ufffd" {
				t.Errorf("got %q", third.text)
			}
			synctest.Wait()
			if s, missing := h.deltaText(); s != "A\xc3\xa9B\nC\xc3" || missing != 0 {
				t.Errorf("the deltas are %q", s)
			}
			if d := of[Delta](h); len(d) != 5 || string(d[1].Data) != "é" {
				t.Errorf("the deltas are %+v", d)
			}
		})
}

func TestDenials(t *testing.T) {
	denial := sandbox.Denial{Access: sandbox.Access{Op: sandbox.Write, Path: "/etc/x"},
		Source: sandbox.Notified}
	evidence := ending{code: 1, denials: []sandbox.Denial{denial}, sandboxed: true, observed: true}
	tests := []struct {
		name    string
		after   time.Duration
		output  string
		end     ending
		denied  string // text of Response.Denied; empty for nil
		suspect bool
	}{
		{"row 53 at once", 0, "no\n", evidence, "Command denied by sandbox: no\n", false},
		{"after a while", seconds(1), "no\n", evidence, "Command denied by sandbox: no\n", false},
		{"told by a poll", seconds(12), "no\n", evidence, "Command denied by sandbox: no\n", false},
		{"without output", 0, "", evidence, "Command denied by sandbox: Process exited with code 1", false},
		{"a success is none", 0, "no", ending{denials: []sandbox.Denial{denial}, sandboxed: true, observed: true}, "", false},
		{"observed and nothing seen", 0, "Permission denied", ending{code: 1, sandboxed: true, observed: true}, "", false},
		{"not observed: a guess", 0, "Permission denied", ending{code: 1, sandboxed: true}, "Command denied by sandbox: Permission denied", true},
		{"no sandbox: not even that", 0, "Permission denied", ending{code: 1}, "", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			plays := map[string]func(*fakeProcess){"x": later(test.after, test.output, test.end)}
			bubble(t, plays, func(t *testing.T, tools *Tools, h *heard, _ *fakeMachine) {
				if !test.end.sandboxed {
					tools.Runner.Policy = sandbox.FullAccess()
				}
				r := exec(t, tools, Request{Command: "x"})
				if r.ExitCode == nil {
					r = write(t, tools, WriteRequest{SessionID: r.SessionID})
				}
				got := ""
				if err := r.Denied(); err != nil {
					got = err.Error()
				}
				if got != test.denied || r.SuspectDenied != test.suspect {
					t.Errorf("got %q, suspect %v", got, r.SuspectDenied)
				}
				if told := strings.Contains(r.Text(), "Sandbox denied: "); told != (len(r.Denials) > 0 &&
					!test.suspect) {
					t.Errorf("the text is %q", r.Text())
				}
				synctest.Wait()
				if b, e := len(of[Begin](h)), len(of[End](h)); b != 1 || e != 1 {
					t.Errorf("%d begin and %d end events", b, e)
				}
			})
		})
	}
}

func TestItems(t *testing.T) {
	plays := map[string]func(*fakeProcess){"x": func(p *fakeProcess) {
		p.print("first\n")
		after(p.context, seconds(0.5))
		p.print("second\n")
		p.exit(ending{code: 2}, false)
	}}
	bubble(t, plays, func(t *testing.T, tools *Tools, h *heard, _ *fakeMachine) {
		tools.Cmd.Dir = "/w"
		exec(t, tools, Request{CallID: "call", Command: "x"})
		synctest.Wait()
		var got []string
		for _, e := range h.list {
			switch e := e.(type) {
			case Begin:
				got = append(got, fmt.Sprintf("begin %s %d %q %s %s", e.CallID, e.SessionID, e.Args,
					e.Dir, e.Source))
			case Delta:
				got = append(got, fmt.Sprintf("delta %s %d %d %q", e.CallID, e.SessionID, e.Offset, e.Data))
			case End:
				got = append(got, fmt.Sprintf("end %s %d %s %d %q %v", e.CallID, e.SessionID, e.Status,
					e.ExitCode, e.Output, e.Duration))
			}
		}
		id := h.id()
		want := []string{
			fmt.Sprintf(`begin call %d ["/bin/sh" "-c" "x"] /w unified_exec_startup`, id),
			fmt.Sprintf(`delta call %d 0 "first\n"`, id),
			fmt.Sprintf(`delta call %d 6 "second\n"`, id),
			fmt.Sprintf(`end call %d failed 2 "first\nsecond\n" 500ms`, id),
		}
		if !slices.Equal(got, want) {
			t.Errorf("row 47: got %q", got)
		}
	})
}

func TestCollectsLikeOneBuffer(t *testing.T) {
	mib := func(c string) string { return strings.Repeat(c, 1<<20) }
	play := func(p *fakeProcess) {
		for _, c := range []string{"a", "b", "c"} {
			p.print(mib(c))
			after(p.context, seconds(1))
		}
		p.exit(ending{}, false)
	}
	want := kept(bufferBytes, mib("a"), mib("b"), mib("c"))
	check := func(t *testing.T, r *Response) {
		t.Helper()
		if string(r.Output) != string(want.Render()) || r.OmittedBytes != want.Omitted ||
			r.OriginalTokens != 3<<18 {
			t.Errorf("%d bytes, %d omitted, %d tokens; want %d and %d", len(r.Output), r.OmittedBytes,
				r.OriginalTokens, len(want.Render()), want.Omitted)
		}
	}
	t.Run("row 26 with drains between by pauses", func(t *testing.T) {
		bubble(t, map[string]func(*fakeProcess){"x": play},
			func(t *testing.T, tools *Tools, _ *heard, _ *fakeMachine) {
				go func() { // the call takes what came at 0.25 s, at 2.6 s and at 4 s
					for _, d := range []float64{0.2, 0.8} {
						after(t.Context(), seconds(d))
						resume := tools.Pause()
						after(t.Context(), seconds(1+d))
						resume()
					}
				}()
				check(t, exec(t, tools, Request{Command: "x", Yield: MinYield}))
			})
	})
	t.Run("row 26 with drains between by calls that are cut short", func(t *testing.T) {
		bubble(t, map[string]func(*fakeProcess){"x": play},
			func(t *testing.T, tools *Tools, h *heard, _ *fakeMachine) {
				for i := range 2 {
					ctx, cancel := context.WithTimeout(t.Context(), seconds(1))
					var err error
					if i == 0 {
						_, err = tools.ExecCommand(ctx, Request{Command: "x"})
					} else {
						_, err = tools.WriteStdin(ctx, WriteRequest{SessionID: h.id()})
					}
					cancel()
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Fatal(err)
					}
				}
				check(t, write(t, tools, WriteRequest{SessionID: h.id()}))
			})
	})
}

func TestRefusedRequests(t *testing.T) {
	yes := true
	tests := []struct {
		name string
		q    Request
		want string
	}{
		{"no command", Request{}, "missing command line for unified exec request"},
		{"another machine", Request{Command: "x", EnvironmentID: "far"}, "unknown turn environment id `far`"},
		{"a login shell", Request{Command: "x", Login: &yes}, "login shell is disabled by config; omit `login` or set it to false."},
		{"a path with NUL", Request{Command: "x", Dir: "a\x00b"}, `a\0b is not valid on plan9`},
		{"a negative yield", Request{Command: "x", Yield: -1}, "exec_command: invalid argument `yield_time_ms`: must be 0 or more"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, tools *Tools, h *heard, m *fakeMachine) {
				tools.System = "plan9"
				if _, err := tools.ExecCommand(t.Context(), test.q); err == nil || err.Error() != test.want {
					t.Errorf("got %v", err)
				}
				if len(m.started) != 0 || len(h.list) != 0 {
					t.Error("something was started")
				}
			})
		})
	}
	t.Run("no Runner", func(t *testing.T) {
		if _, err := new(Tools).ExecCommand(t.Context(), Request{Command: "x"}); !errors.Is(err,
			ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("closed", func(t *testing.T) {
		tools := &Tools{Runner: &sallyport.Runner{Executor: &fakeMachine{}}}
		if err := errors.Join(tools.Close(), tools.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := tools.ExecCommand(t.Context(), Request{Command: "x"}); !errors.Is(err, ErrUnavailable) {
			t.Errorf("got %v", err)
		}
		if _, err := tools.WriteStdin(t.Context(), WriteRequest{SessionID: 1}); !errors.Is(err,
			ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	})
}

// TestRunnerIsFull: sessions that others started with the same Runner count too.
func TestRunnerIsFull(t *testing.T) {
	bubble(t, nil, func(t *testing.T, tools *Tools, _ *heard, _ *fakeMachine) {
		tools.Runner.MaxSessions = 1
		other, err := tools.Runner.Start(t.Context(), &sallyport.Cmd{Args: []string{"other"}, Dir: "/",
			Env: []string{}})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		_, err = tools.ExecCommand(t.Context(), Request{Command: "x"})
		var full *Error
		var cause *sallyport.TooManySessionsError
		if !isKind(err, ErrTooMany, &full) || !errors.As(err, &cause) || len(full.Candidates) != 1 ||
			full.Candidates[0].Command != "other" {
			t.Errorf("got %v", err)
		}
	})
}

// TestInputEnds: after its end there is no input.
func TestInputEnds(t *testing.T) {
	bubble(t, nil, func(t *testing.T, tools *Tools, _ *heard, _ *fakeMachine) {
		r := exec(t, tools, Request{Command: "x", Stdin: StdinPipe})
		write(t, tools, WriteRequest{SessionID: r.SessionID, EOF: true})
		if _, err := tools.WriteStdin(t.Context(),
			WriteRequest{SessionID: r.SessionID, Chars: "ls\n"}); !errors.Is(err, ErrStdinClosed) {
			t.Errorf("got %v", err)
		}
	})
}
