// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestIdler(t *testing.T) {
	for _, test := range []struct {
		name  string
		after time.Duration
		use   func(i *idler)
		over  bool // a minute later
	}{
		{"never", 0, func(*idler) {}, false},
		{"from the beginning", time.Minute, func(*idler) {}, true},
		{"busy", time.Minute, func(i *idler) { i.change(1) }, false},
		{"busy twice", time.Minute, func(i *idler) { i.change(1); i.change(1); i.change(-1) }, false},
		{"idle again", time.Minute, func(i *idler) { i.change(1); <-time.After(time.Hour); i.change(-1) }, true},
		{"since when", time.Minute, func(i *idler) { <-time.After(30 * time.Second); i.change(1); i.change(-1) }, true},
		{"a rest before", time.Minute, func(i *idler) { <-time.After(59 * time.Second); i.change(1) }, false},
		{"stopped", time.Minute, func(i *idler) { i.stop() }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := newIdler(test.after)
				defer i.stop()
				test.use(i)
				over := func() bool {
					synctest.Wait()
					select {
					case <-i.over:
						return true
					default:
						return false
					}
				}
				<-time.After(time.Minute - 1)
				if over() {
					t.Error("too early")
				}
				<-time.After(1)
				if over() != test.over {
					t.Errorf("over is %v", !test.over)
				}
			})
		})
	}
}

// pipes is a listener in memory.
type pipes struct {
	conns chan net.Conn
	over  chan struct{}
	end   func()
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { p.end(); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

// TestIdle: a server that rests ends, and one with a client does not.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		l := pipes{make(chan net.Conn), over, sync.OnceFunc(func() { close(over) })}
		ended := make(chan error, 1)
		o := Options{Idle: 10 * time.Second, Stdout: discard{}}
		go func() { ended <- serveHTTP(context.Background(), context.Background(), o, open, l, "url") }()
		<-time.After(9 * time.Second)
		client, server := net.Pipe()
		l.conns <- server
		if _, err := io.WriteString(client,
			"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil || r.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("%v, %v", r, err)
		}
		<-time.After(30 * time.Second)
		select {
		case err := <-ended:
			t.Fatalf("it ended while it had a client: %v", err)
		default:
		}
		_ = client.Close() // the server gets to know
		gone := time.Now()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if rest := time.Since(gone); rest != 10*time.Second {
			t.Errorf("it ended after %v", rest)
		}
	})
}

type discard struct{ io.Writer }

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }
