// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// hijacked is a response on one end of a pipe.
type hijacked struct {
	*httptest.ResponseRecorder
	conn net.Conn
}

func (h hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.conn, bufio.NewReadWriter(bufio.NewReader(h.conn), bufio.NewWriter(h.conn)), nil
}

// accept returns a Stream and the other end of its connection, after the upgrade.
func accept(t *testing.T) (Stream, net.Conn) {
	t.Helper()
	server, client := net.Pipe()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"},
		"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="}}
	s, err := Accept(hijacked{httptest.NewRecorder(), server}, r)
	if err != nil {
		t.Fatal(err)
	}
	return s, client
}

// TestSilentPeer: a connection whose peer takes nothing, or does not answer pings, ends in a
// bounded time. One whose peer only answers pings goes on.
func TestSilentPeer(t *testing.T) {
	for _, test := range []struct {
		name  string
		send  bool
		reads bool
		pongs bool
		pings bool
		after time.Duration // when it ends; 0 for never
	}{
		{"takes nothing", true, false, false, false, WriteTime},
		{"takes nothing and pings", true, false, false, true, WriteTime},
		{"does not answer", false, true, false, false, pingTime + WriteTime},
		{"takes no ping", false, false, false, false, pingTime + 5*time.Second}, // a pipe has no room for it
		{"answers", false, true, true, false, 0},
		{"answers and pings", false, true, true, true, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := accept(t)
				c := NewConn(s)
				begin := time.Now()
				ended := make(chan error, 1)
				go func() {
					_, err := c.Read()
					ended <- err
				}()
				if test.reads {
					go answerPings(client, test.pongs)
				}
				if test.send {
					if err := c.Send([]byte(`{}`)); err != nil {
						t.Error(err)
					}
				}
				if test.pings {
					synctest.Wait()
					if _, err := client.Write([]byte{0x89, 0x80, 0, 0, 0, 0}); err != nil {
						t.Error(err)
					}
				}
				select {
				case err := <-ended:
					if took := time.Since(begin); test.after == 0 || took != test.after || err == nil ||
						errors.Is(err, io.EOF) {
						t.Errorf("it ended after %v: %v, want %v", took, err, test.after)
					}
				case <-time.After(time.Hour):
					if test.after != 0 {
						t.Errorf("it goes on, want the end after %v", test.after)
					}
				}
				c.Close()
				_ = client.Close()
				c.Finish()
			})
		})
	}
}

// answerPings reads frames without data, and answers them.
func answerPings(client net.Conn, answer bool) {
	var head [2]byte
	for {
		if _, err := io.ReadFull(client, head[:]); err != nil {
			return
		}
		data := make([]byte, head[1])
		if _, err := io.ReadFull(client, data); err != nil {
			return
		}
		const ping, pong, masked = 0x89, 0x8a, 0x80
		if head[0] == ping && answer {
			if _, err := client.Write(append([]byte{pong, masked | head[1], 0, 0, 0, 0},
				data...)); err != nil {
				return
			}
		}
	}
}

// TestRefusedUpgrade: a request that asks for no WebSocket is answered.
func TestRefusedUpgrade(t *testing.T) {
	w := httptest.NewRecorder()
	if s, err := Accept(w, httptest.NewRequest(http.MethodGet, "/", nil)); err == nil || w.Code < 400 {
		t.Errorf("%v, %d", s, w.Code)
	}
}
