// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport/network"
)

// A pipeListener accepts pipes, so that the time of a test is that of its bubble.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipeListener) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// newPipes is newLab with pipes; connect makes one. Dials lead to the origin.
func newPipes(t *testing.T, policy *network.Policy, change ...func(*lab)) (l *lab, connect func() net.Conn) {
	listener := newPipeListener()
	return newPipesOn(t, policy, listener, listener.conns, change...)
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func newPipesOn(t *testing.T, policy *network.Policy, listener net.Listener, conns chan<- net.Conn,
	change ...func(*lab)) (l *lab, connect func() net.Conn) {
	l = &lab{t: t, zone: readZone(t), policy: policy}
	l.changed = sync.NewCond(&l.mu)
	l.proxy = &Proxy{Resolver: l.zone, Dial: l.dial}
	l.command = &Command{Policy: l.now, Report: l.report}
	for _, f := range change {
		f(l)
	}
	l.service = l.proxy.Serve(listener, l.command)
	t.Cleanup(l.close)
	return l, func() net.Conn {
		ours, theirs := net.Pipe()
		conns <- theirs
		t.Cleanup(func() { ours.Close() })
		return ours
	}
}

// silent is a Dial whose connections say nothing and read everything.
func silent(l *lab) {
	l.proxy.Dial = func(context.Context, *net.Dialer, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, ours); ours.Close() }()
		return theirs, nil
	}
}

// TestTimes has clients that stop or are slow: each is cut when its time is over, and not before.
func TestTimes(t *testing.T) {
	hello := string(clientHello(t, "api.example.com"))
	const connect = "CONNECT api.example.com:443 HTTP/1.1\r\n\r\n"
	for _, test := range []struct {
		name   string
		sent   string
		slowly time.Duration // between the bytes
		least  time.Duration
		most   time.Duration
	}{
		{"nothing", "", 0, headTime, headTime},
		{"half a head", "GET http://api", 0, headTime, headTime},
		{"a byte every second", strings.Repeat("x", 40), time.Second, headTime, headTime},
		{"half a greeting", "\x05\x02\x00", 0, headTime, headTime},
		{"greeting alone", "\x05\x01\x00", 0, headTime, headTime},
		{"between requests", "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n", 0, keepTime, keepTime},
		{"half a second head", "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\nGET http://api", 0, headTime, headTime},
		{"half a ClientHello", connect + hello[:50], 0, helloTime, helloTime},
		{"silent tunnel", connect, 0, idleTime, idleTime + 2*tunnelTick},
		{"tunnel that goes silent", connect + hello, 0, idleTime, idleTime + 2*tunnelTick},
		{"body that stops", "POST http://api.example.com/ HTTP/1.0\r\nContent-Length: 9\r\n\r\nabc", 0, idleTime, idleTime},
		{"response that does not come", "GET http://api.example.com/ HTTP/1.0\r\n\r\n", 0, idleTime, idleTime},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, dial := newPipes(t, full(t, "api.example.com"), silent)
				conn, start := dial(), time.Now()
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					step := max(1, len(test.sent))
					if test.slowly > 0 {
						step = 1
					}
					for rest := test.sent; rest != ""; rest = rest[step:] {
						if _, err := io.WriteString(conn, rest[:step]); err != nil {
							return
						}
						<-time.After(test.slowly)
					}
				}()
				_, _ = io.Copy(io.Discard, conn)
				if took := time.Since(start); took < test.least || took > test.most {
					t.Errorf("cut after %v, want %v to %v", took, test.least, test.most)
				}
				conn.Close()
				<-sent
			})
		})
	}
}

// TestBusyTunnel has a tunnel with bytes in one direction only, and seldom: it is not cut.
func TestBusyTunnel(t *testing.T) {
	for _, up := range []bool{true, false} {
		t.Run(map[bool]string{true: "up", false: "down"}[up], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				servers := make(chan net.Conn, 1)
				l, dial := newPipes(t, full(t, "api.example.com"), func(l *lab) {
					l.proxy.Dial = func(context.Context, *net.Dialer, string, string) (net.Conn, error) {
						ours, theirs := net.Pipe()
						servers <- ours
						return theirs, nil
					}
				})
				from := dial()
				_, _ = io.WriteString(from, "CONNECT api.example.com:22 HTTP/1.1\r\n\r\n")
				if _, err := io.ReadFull(from,
					make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))); err != nil {
					t.Fatal(err)
				}
				to := <-servers
				if !up {
					from, to = to, from
				}
				for range 5 {
					<-time.After(idleTime - time.Second)
					if _, err := from.Write([]byte("x")); err != nil {
						t.Fatal(err)
					}
					if _, err := io.ReadFull(to, make([]byte, 1)); err != nil {
						t.Fatal(err)
					}
				}
				from.Close()
				_, _ = io.Copy(io.Discard, to)
				to.Close()
				synctest.Wait()
				if e := l.told(); len(e) != 2 || e[1].Up+e[1].Down != 5 {
					t.Errorf("told %+v", e)
				}
			})
		})
	}
}

// slowResolver answers when it is told to end.
type slowResolver struct{}

func (slowResolver) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestSlowResolver bounds a look-up.
func TestSlowResolver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, dial := newPipes(t, full(t, "api.example.com"), func(l *lab) { l.proxy.Resolver = slowResolver{} })
		conn, start := dial(), time.Now()
		go func() { _, _ = io.WriteString(conn, "GET http://api.example.com/ HTTP/1.0\r\n\r\n") }()
		got, _ := io.ReadAll(conn)
		if took := time.Since(start); took != resolveTime || !strings.Contains(string(got), "dns_failed") ||
			!strings.Contains(string(got), "cannot resolve api.example.com: no answer in time") {
			t.Errorf("after %v: %q", took, got)
		}
	})
}

// TestDial has names with several addresses, of which some fail or do not answer.
func TestDial(t *testing.T) {
	const hangs, fails, answers = 'h', 'f', 'a'
	for _, test := range []struct {
		name string
		does string // what each address does, in the order of the answer
		took time.Duration
		want string // the address, or nothing
	}{
		{"the first", "aa", 0, "192.0.66.0:443"},
		{"one fails", "fa", 0, "192.0.66.1:443"},
		{"one hangs", "ha", nextTime, "192.0.66.1:443"},
		{"two hang", "hha", 2 * nextTime, "192.0.66.2:443"},
		{"one hangs, one fails", "hfa", nextTime, "192.0.66.2:443"},
		{"all fail", "ff", 0, ""},
		{"all hang", "hh", dialTime, ""},
		{"one that hangs", "h", dialTime, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				addrs := map[string]rune{}
				var list []string
				for i, does := range test.does {
					addr := netip.AddrFrom4([4]byte{192, 0, 66, byte(i)})
					addrs[netip.AddrPortFrom(addr, 443).String()] = does
					list = append(list, addr.String())
				}
				open := 0
				l, dial := newPipes(t, full(t, "api.example.com"), func(l *lab) {
					l.zone.names["api.example.com"] = list
					l.proxy.Dial = func(ctx context.Context, _ *net.Dialer, _,
						address string) (net.Conn, error) {
						switch addrs[address] {
						case answers:
							ours, theirs := net.Pipe()
							open++
							go func() { _, _ = io.Copy(ours, ours); ours.Close() }()
							return theirs, nil
						case fails:
							return nil, errors.New("it fails")
						}
						<-ctx.Done()
						return nil, ctx.Err()
					}
				})
				conn, start := dial(), time.Now()
				_, _ = io.WriteString(conn, "CONNECT api.example.com:443 HTTP/1.1\r\n\r\n")
				head := make([]byte, len("HTTP/1.1 200"))
				_, _ = io.ReadFull(conn, head)
				took := time.Since(start)
				go func() { _, _ = io.Copy(io.Discard, conn); conn.Close() }()
				e := l.told()
				if len(e) != 2 || took != test.took {
					t.Fatalf("%q after %v, want %v; told %+v", head, took, test.took, e)
				}
				if got := e[1].Resolved; got.IsValid() != (test.want != "") || got.IsValid() &&
					got.String() != test.want {
					t.Errorf("connected to %v, want %q", got, test.want)
				}
			})
		})
	}
}

// TestFamilies orders the addresses of a name.
func TestFamilies(t *testing.T) {
	var in []netip.Addr
	for text := range strings.FieldsSeq("2606::1 2606::2 2606::3 1.1.1.1 ::ffff:1.1.1.2") {
		in = append(in, netip.MustParseAddr(text))
	}
	var out []string
	for _, addr := range alternate(in) {
		out = append(out, addr.String())
	}
	if got := strings.Join(out, " "); got != "2606::1 1.1.1.1 2606::2 1.1.1.2 2606::3" {
		t.Error(got)
	}
}

// TestAskEnds has a decision that takes long: it ends with the client, and with the service.
func TestAskEnds(t *testing.T) {
	for _, request := range []string{
		"GET http://new.example.com/ HTTP/1.0\r\n\r\n",
		"CONNECT new.example.com:443 HTTP/1.1\r\n\r\n",
		"\x05\x01\x00\x05\x01\x00\x03\x0fnew.example.com\x01\xbb",
	} {
		for _, close := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				asked, ended := make(chan bool, 1), make(chan bool, 1)
				l, dial := newPipes(t, makePolicy(t, network.Config{Mode: network.Full, Ask: true}),
					func(l *lab) {
						l.command.Ask = func(ctx context.Context, _ network.Request) network.Decision {
							asked <- true
							<-ctx.Done()
							ended <- true
							return network.Decision{}
						}
					})
				conn := dial()
				go func() { _, _ = io.WriteString(conn, request) }()
				go func() { _, _ = io.Copy(io.Discard, conn) }()
				<-asked
				<-time.After(time.Minute)
				if len(ended) > 0 {
					t.Fatal("the question ended by itself")
				}
				if close {
					conn.Close()
				} else {
					l.close()
				}
				<-ended
				conn.Close()
				if e := l.told(); len(e) != 1 || e[0].Decision.Ruling != network.Deny {
					t.Errorf("told %+v", e)
				}
			})
		}
	}
}

// A failingListener has no descriptors for a while.
type failingListener struct {
	*pipeListener
	failures int
}

func (f *failingListener) Accept() (net.Conn, error) {
	if f.failures--; f.failures >= 0 {
		return nil, errors.New("too many open files")
	}
	return f.pipeListener.Accept()
}

// TestAcceptFails has an accept that fails for a while: that is no end of the service.
func TestAcceptFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipes := newPipeListener()
		l, dial := newPipesOn(t, nil, &failingListener{pipes, 3}, pipes.conns)
		start := time.Now()
		conn := dial()
		if took := time.Since(start); took != 3*retryTime {
			t.Errorf("accepted after %v", took)
		}
		go func() { _, _ = io.WriteString(conn, "GET http://api.example.com/ HTTP/1.0\r\n\r\n") }()
		if got, _ := io.ReadAll(conn); !strings.Contains(string(got), "proxy_disabled") {
			t.Errorf("%q", got)
		}
		l.close()
	})
}

// TestLimits has one command with more connections than it may have, all of them half-open or slow:
// those above wait and are served when others end. Another command is not held up for a moment.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		greedy, dialGreedy := newPipes(t, nil, func(l *lab) {
			l.proxy.CommandConns,
				l.proxy.ProcessConns = 8, 10
		})
		_, dialOther := newPipes(t, nil, func(l *lab) { l.proxy = greedy.proxy })
		const get = "GET http://api.example.com/ HTTP/1.0\r\n\r\n"
		start := time.Now()
		for i := range 20 {
			go func() {
				conn := dialGreedy()
				_, _ = io.WriteString(conn, []string{"", "G", "\x05", "\x05\x01\x00"}[i%4])
				_, _ = io.Copy(io.Discard, conn)
			}()
		}
		synctest.Wait()
		if n := len(greedy.proxy.slots); n != 8 {
			t.Errorf("%d connections, want 8", n)
		}
		ask := func(dial func() net.Conn) {
			t.Helper()
			conn := dial()
			go func() { _, _ = io.WriteString(conn, get) }()
			if got, _ := io.ReadAll(conn); !strings.Contains(string(got), "proxy_disabled") {
				t.Errorf("%q", got)
			}
		}
		for range 5 {
			ask(dialOther)
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("the other command waited %v", took)
		}
		ask(dialGreedy)
		if took := time.Since(start); took != headTime && took != 2*headTime && took != 3*headTime {
			t.Errorf("the command itself waited %v", took)
		}
		<-time.After(time.Minute)
	})
}

// TestInterceptedSilence: a server behind TLS that is opened has as long for each piece as one in a tunnel.
func TestInterceptedSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		i := &interception{a: &access{s: &Service{open: map[closer]*access{}},
			start: time.Now()}, first: ours}
		conn, err := i.dial()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		start := time.Now()
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) ||
			time.Since(start) != idleTime {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
