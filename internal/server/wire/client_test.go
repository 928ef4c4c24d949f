// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport/internal/strict"
)

// A server plays one side of each connection with a function of its own.
type server struct {
	t     *testing.T
	plays []func(*side) // of the first connections; further ones are not made

	mu    sync.Mutex
	dials int
	work  sync.WaitGroup
}

var errNoRoute = errors.New("no route")

func (s *server) dial(context.Context) (Stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dials++
	if s.dials > len(s.plays) || s.plays[s.dials-1] == nil {
		return nil, errNoRoute
	}
	near, far := net.Pipe()
	a, b := LinesOn(near), LinesOn(far)
	play := s.plays[s.dials-1]
	s.work.Go(func() {
		defer b.Close()
		play(&side{s.t, b})
	})
	return a, nil
}

// A side is the server's end of a connection.
type side struct {
	t *testing.T
	Stream
}

// take reads a message, which must be of a method; empty for an answer. It is nil after the end.
func (s *side) take(method string) *Message {
	s.t.Helper()
	text, err := s.Read()
	if err != nil {
		return nil
	}
	m, err := DecodeMessage(text)
	if err != nil || m.Method != method {
		s.t.Errorf("%s, %v, want %s", text, err, method)
		return nil
	}
	return m
}

// answer answers a request.
func (s *side) answer(m *Message, result any) {
	if m == nil {
		return
	}
	text, err := Response(m.ID, result)
	if err != nil {
		s.t.Error(err)
	}
	_ = s.Write(text)
}

func (s *side) fail(m *Message, code int64, message string) {
	text, err := Failure(m.ID, &Error{Code: code, Message: message,
		Data: json.RawMessage(`{"a":1}`)})
	if err != nil {
		s.t.Error(err)
	}
	_ = s.Write(text)
}

// greet performs the handshake and returns the parameters of initialize.
func (s *side) greet() Initialize {
	s.t.Helper()
	m := s.take("initialize")
	if m == nil {
		return Initialize{}
	}
	var h Initialize
	if err := json.Unmarshal(m.Params, &h); err != nil {
		s.t.Error(err)
	}
	s.answer(m, map[string]any{"sessionId": "s1", "environmentInfo": nil})
	s.take("initialized")
	return h
}

// refuse answers the handshake with an error.
func refuse(code int64, message string) func(*side) {
	return func(s *side) {
		if m := s.take("initialize"); m != nil {
			s.fail(m, code, message)
		}
		_, _ = s.Read()
	}
}

// rest reads until the end.
func (s *side) rest() {
	for {
		if _, err := s.Read(); err != nil {
			return
		}
	}
}

// play runs a test against a server in a bubble.
func play(t *testing.T, opts ClientOptions, test func(*testing.T, *Client, *server), plays ...func(*side)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &server{t: t}
		for _, p := range plays {
			if p == nil {
				s.plays = append(s.plays, nil)
				continue
			}
			s.plays = append(s.plays, func(side *side) { side.t = t; p(side) })
		}
		opts.Name = "test"
		c, err := Connect(t.Context(), ClientTarget{Dial: s.dial}, opts)
		if err != nil {
			t.Fatal(err)
		}
		test(t, c, s)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		s.work.Wait()
	})
}

// TestCalls: answers reach their calls, in any order, with errors as they are.
func TestCalls(t *testing.T) {
	play(t, ClientOptions{Extensions: true}, func(t *testing.T, c *Client, _ *server) {
		var wg sync.WaitGroup
		for _, name := range []string{"a", "b"} {
			wg.Go(func() {
				var got string
				if err := c.Call(t.Context(), "echo", name, &got); err != nil || got != name {
					t.Errorf("%q, %v, want %q", got, err, name)
				}
			})
		}
		wg.Wait()
		var answer *Error
		if err := c.Call(t.Context(), "fails", nil, nil); !errors.As(err, &answer) || answer.Code != -32001 ||
			string(answer.Data) != `{"a":1}` {
			t.Errorf("%#v", err)
		}
		var n int
		if err := c.Call(t.Context(), "text", nil, &n); err == nil ||
			!strings.Contains(err.Error(), "answer to text is invalid") {
			t.Errorf("%v", err)
		}
		if err := c.Call(t.Context(), "large", strings.Repeat("x", MaxFrame),
			nil); !errors.Is(err, ErrCallTooLong) {
			t.Errorf("%v", err)
		}
		if got := c.Server().SessionID; got != "s1" {
			t.Errorf("session %q", got)
		}
	}, func(s *side) {
		if h := s.greet(); !h.ExtensionMethods || h.Approvals || h.ClientName != "test" {
			s.t.Errorf("%+v", h)
		}
		first, second := s.take("echo"), s.take("echo")
		s.answer(second, second.Params)
		s.answer(first, first.Params)
		s.fail(s.take("fails"), -32001, "no")
		s.answer(s.take("text"), "x")
		s.rest()
	})
}

// TestCut: after a cut the session is resumed; what may be repeated is sent again, the rest fails,
// and what was asked meanwhile is sent once.
func TestCut(t *testing.T) {
	resumed := 0
	var notes []string
	opts := ClientOptions{OnResume: func() { resumed++ },
		OnNotify: func(method string, _ json.RawMessage) { notes = append(notes, method) }}
	play(t, opts, func(t *testing.T, c *Client, _ *server) {
		var wg sync.WaitGroup
		wg.Go(func() {
			var got string
			if err := c.Repeat(t.Context(), "repeated", 1, &got); err != nil || got != "second" {
				t.Errorf("%q, %v", got, err)
			}
		})
		synctest.Wait()
		var lost *TransportError
		if err := c.Call(t.Context(), "once", 1, nil); !errors.As(err, &lost) || !lost.Sent {
			t.Errorf("%v", err)
		}
		if err := c.Call(t.Context(), "later", 1, nil); err != nil {
			t.Errorf("%v", err)
		}
		wg.Wait()
		if resumed != 1 || !slices.Equal(notes, []string{"n1", "n2"}) {
			t.Errorf("resumed %d times, notifications %q", resumed, notes)
		}
	}, func(s *side) {
		s.greet()
		_ = s.Write([]byte(`{"method":"n1","params":{}}`))
		s.take("repeated")
		s.take("once")
	}, nil, nil, refuse(CodeAttached, "busy"), refuse(CodeInternal, "no hub"), func(s *side) {
		if h := s.greet(); h.Resume != "s1" {
			s.t.Errorf("%+v", h)
		}
		_ = s.Write([]byte(`{"method":"n2"}`))
		var later *Message
		for _, m := range []*Message{s.take2(), s.take2()} {
			switch {
			case m == nil:
			case m.Method == "repeated":
				s.answer(m, "second")
			case m.Method == "later":
				later = m
			default:
				s.t.Errorf("%s was sent again", m.Method)
			}
		}
		s.answer(later, nil)
		s.rest()
	})
}

// take2 reads any message.
func (s *side) take2() *Message {
	text, err := s.Read()
	if err != nil {
		return nil
	}
	m, _ := DecodeMessage(text)
	return m
}

// TestLost: when the session cannot be resumed, calls fail with the reason, also later ones.
func TestLost(t *testing.T) {
	short := func(s *side) {
		s.greet()
		s.take("x")
	}
	other := func(s *side) {
		if m := s.take("initialize"); m != nil {
			s.answer(m, map[string]any{"sessionId": "other"})
		}
		s.rest()
	}
	for _, test := range []struct {
		name   string
		resume time.Duration
		plays  []func(*side)
		want   string
		dials  int // 0: many
	}{
		{"never resumed", -1, []func(*side){short}, "the server ended the connection", 1},
		{"no route", 5 * time.Second, []func(*side){short}, "the session was not resumed within 5s: no route", 0},
		{"session unknown", 0, []func(*side){short, refuse(-32600, "unknown session id s1")}, "unknown session id s1 (-32600)", 2},
		{"another session", 0, []func(*side){short, other}, errSession.Error(), 2},
		{"silent", 15 * time.Second, []func(*side){short, (*side).rest, (*side).rest}, "the server did not answer within 10s", 0},
		{"malformed", 0, []func(*side){func(s *side) { s.greet(); s.take("x"); _ = s.Write([]byte(`{"id":1`)); s.rest() }}, "failed to parse", 1},
		{"refused as malformed", 0, []func(*side){func(s *side) {
			s.greet()
			m := s.take("x")
			m.ID = Malformed()
			s.fail(m, -32600, "too many values")
			s.rest()
		}}, "too many values", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			play(t, ClientOptions{Resume: test.resume}, func(t *testing.T, c *Client, s *server) {
				var lost *TransportError
				if err := c.Repeat(t.Context(), "x", nil, nil); !errors.As(err, &lost) ||
					!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v, want %s", err, test.want)
				}
				<-c.Done()
				if err := c.Call(t.Context(), "y", nil, nil); !errors.As(err, &lost) || lost.Sent ||
					err.Error() != c.Err().Error() {
					t.Errorf("%v", err)
				}
				if test.dials > 0 && s.dials != test.dials || test.dials == 0 && s.dials < 2 {
					t.Errorf("%d connections", s.dials)
				}
			}, test.plays...)
		})
	}
}

// TestEnds: a call ends with its context and with the client, and a late answer is no answer to
// another call.
func TestEnds(t *testing.T) {
	play(t, ClientOptions{}, func(t *testing.T, c *Client, _ *server) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errNoRoute)
		defer cancel()
		if err := c.Call(ctx, "slow", nil, nil); !errors.Is(err, errNoRoute) {
			t.Errorf("%v", err)
		}
		var got string
		if err := c.Call(t.Context(), "next", nil, &got); err != nil || got != "next" {
			t.Errorf("%q, %v", got, err)
		}
		done := make(chan error, 1)
		go func() { done <- c.Repeat(context.Background(), "never", nil, nil) }()
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, ErrClientClosed) {
			t.Errorf("%v", err)
		}
		if len(c.calls) != 0 {
			t.Errorf("%d calls are left", len(c.calls))
		}
	}, func(s *side) {
		s.greet()
		slow, next := s.take("slow"), s.take("next")
		s.answer(slow, "slow")
		s.answer(next, "next")
		s.take("never")
		s.rest()
	})
}

// TestRequests: requests of the server are answered, as many at once as allowed, also with errors.
func TestRequests(t *testing.T) {
	release := make(chan struct{})
	opts := ClientOptions{Approvals: true, OnRequest: func(ctx context.Context, method string,
		params json.RawMessage) (any, error) {
		switch method {
		case "waits":
			<-ctx.Done()
			close(release)
			return nil, ctx.Err()
		case "fails":
			return nil, errNoRoute
		case "refuses":
			return nil, &Error{Code: 7, Message: "no"}
		}
		return params, nil
	}}
	play(t, opts, func(_ *testing.T, c *Client, _ *server) { <-release }, func(s *side) {
		if h := s.greet(); !h.Approvals {
			s.t.Errorf("%+v", h)
		}
		for i, want := range map[string]string{
			`"method":"echo","params":5`: `{"id":1,"result":5}`,
			`"method":"fails"`:           `{"error":{"code":-32603,"message":"no route"},"id":1}`,
			`"method":"refuses"`:         `{"error":{"code":7,"message":"no"},"id":1}`,
		} {
			_ = s.Write([]byte(`{"id":1,` + i + `}`))
			if text, err := s.Read(); err != nil || string(text) != want {
				s.t.Errorf("%s, %v, want %s", text, err, want)
			}
		}
		_ = s.Write([]byte(`{"id":1,"method":"waits"}`))
	}, refuse(-32600, "unknown session id s1"))
	play(t, ClientOptions{}, func(_ *testing.T, c *Client, _ *server) { <-c.Done() }, func(s *side) {
		s.greet()
		_ = s.Write([]byte(`{"id":1,"method":"run/approve"}`))
		if text, _ := s.Read(); !strings.Contains(string(text), "-32601") {
			s.t.Errorf("%s", text)
		}
	}, refuse(-32600, "unknown session id s1"))
}

// TestDialFails: no client without a session, with the reason.
func TestDialFails(t *testing.T) {
	for _, test := range []struct {
		name string
		play func(*side)
		want string
	}{
		{"no route", nil, "no route"},
		{"refused", refuse(-32600, "no"), "no (-32600)"},
		{"silent", (*side).rest, "did not answer within 10s"},
		{"ends", func(*side) {}, "no answer to the handshake: EOF"},
		{"no session", func(s *side) { s.answer(s.take("initialize"), struct{}{}) }, errSession.Error()},
		{"no object", func(s *side) { s.answer(s.take("initialize"), 1) }, "the answer to the handshake is invalid"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{t: t, plays: []func(*side){test.play}}
				c, err := Connect(t.Context(), ClientTarget{Dial: s.dial}, ClientOptions{})
				var transport *TransportError
				if !errors.As(err, &transport) || !strings.Contains(err.Error(), test.want) || c != nil {
					t.Errorf("%v, want %s", err, test.want)
				}
				s.work.Wait()
			})
		})
	}
	if _, err := Connect(t.Context(), ClientTarget{URL: "http://x"}, ClientOptions{}); !errors.Is(err, ErrURL) {
		t.Errorf("%v", err)
	}
}

// TestDialNoReturn: a Dial that panics or ends its goroutine is one that fails.
func TestDialNoReturn(t *testing.T) {
	for name, fail := range map[string]func(){"panic": func() { panic("no") }, "Goexit": runtime.Goexit} {
		dial := func(context.Context) (Stream, error) { fail(); return nil, nil }
		var failed *strict.PanicError
		if _, err := Connect(t.Context(), ClientTarget{Dial: dial}, ClientOptions{Name: "test"}); !errors.As(err, &failed) ||
			failed.Where != "Dial" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUseless: a server that resumes the session and cuts each connection gets no more than ten a
// second. The wall is uselessPause.
func TestUseless(t *testing.T) {
	plays := make([]func(*side), 1000)
	for i := range plays {
		plays[i] = func(s *side) { s.greet() }
	}
	play(t, ClientOptions{}, func(t *testing.T, _ *Client, s *server) {
		<-time.After(10 * time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.dials > 102 || s.dials < 50 {
			t.Errorf("%d connections", s.dials)
		}
	}, plays...)
}

// TestEveryMessage: a cut at each message of a conversation repeats nothing that must not be, and
// loses no answer that may be repeated.
func TestEveryMessage(t *testing.T) {
	for cut := range 12 {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			done := map[string]int{}
			talk := func(most int) func(*side) {
				return func(s *side) {
					n := 0
					for ; n < most; n++ {
						m := s.take2()
						if m == nil {
							return
						}
						switch m.Method {
						case "initialize":
							s.answer(m, map[string]any{"sessionId": "s1"})
						case "initialized":
						default:
							done[m.Method]++
							if n+1 < most {
								s.answer(m, m.Method)
							}
						}
					}
				}
			}
			play(t, ClientOptions{}, func(t *testing.T, c *Client, _ *server) {
				for i := range 5 {
					name, got := fmt.Sprint("m", i), ""
					if err := c.Repeat(t.Context(), name, nil, &got); err != nil || got != name {
						t.Errorf("%q, %v", got, err)
					}
					name = fmt.Sprint("once", i)
					if err := c.Call(t.Context(), name, nil, nil); done[name] > 1 || err == nil &&
						done[name] != 1 {
						t.Errorf("%s was performed %d times: %v", name, done[name], err)
					}
				}
			}, talk(cut+2), func(s *side) { s.greet(); talk(1 << 20)(s) })
		})
	}
}

var _ io.Closer = (*Client)(nil)

// TestBinary: binary messages come in their place between notifications, for a client that asked for
// them. For another one they are a breach of the protocol.
func TestBinary(t *testing.T) {
	for _, asks := range []bool{true, false} {
		var got []string
		opts := ClientOptions{Resume: -1, OnNotify: func(method string,
			_ json.RawMessage) {
			got = append(got, method)
		}}
		if asks {
			opts.OnBinary = func(b []byte) { got = append(got, string(b)) }
		}
		play(t, opts, func(t *testing.T, c *Client, _ *server) {
			<-c.Done()
			var malformed *MalformedError
			if broken := errors.As(c.Err(), &malformed); broken == asks {
				t.Errorf("asked: %v, %v", asks, c.Err())
			}
		}, func(s *side) {
			if h := s.greet(); h.BinaryOutput != asks {
				t.Errorf("asks: %v, want %v", h.BinaryOutput, asks)
			}
			for _, m := range []string{`{"method":"a"}`, "\x01x", `{"method":"b"}`} {
				_ = s.Write([]byte(m))
			}
		})
		want := []string{"a", "\x01x", "b"}
		if !asks {
			want = want[:1]
		}
		if !slices.Equal(got, want) {
			t.Errorf("asked: %v: %q", asks, got)
		}
	}
}

// TestEager: calls of a client that does not wait for the handshake are sent with it. Those of which the
// server has answered nothing were not performed.
func TestEager(t *testing.T) {
	opts := ClientOptions{Eager: true, Resume: -1}
	for _, test := range []struct {
		name string
		play func(*side)
		sent bool // what the error says
		fail string
	}{
		{"answers", func(s *side) {
			s.greet()
			s.answer(s.take("m"), 1)
			s.rest()
		}, false, ""},
		{"ends at once", func(*side) {}, false, "not available"},
		{"ends after the handshake", func(s *side) {
			s.greet()
			s.take("m")
		}, true, "may have been performed"},
		{"refuses", func(s *side) {
			refuse(-1, "no")(s)
			s.fail(s.take("m"), -2, "call initialize first")
			s.rest()
		}, false, "call initialize first"},
	} {
		t.Run(test.name, func(t *testing.T) {
			play(t, opts, func(t *testing.T, c *Client, _ *server) {
				err := c.Call(t.Context(), "m", nil, nil)
				var transport *TransportError
				if (err == nil) != (test.fail == "") || err != nil &&
					!strings.Contains(err.Error(), test.fail) || errors.As(err, &transport) &&
					transport.Sent != test.sent {
					t.Errorf("%v", err)
				}
			}, test.play)
		})
	}
}
