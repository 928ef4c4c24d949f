// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// MaxFrame is the largest WebSocket message in bytes. A larger one ends the connection.
const MaxFrame = 16 << 20

// pingTime is the time between two pings.
const pingTime = 30 * time.Second

// socket is a Stream over a WebSocket.
type socket struct {
	conn   *websocket.Conn
	out    *gather         // what conn writes to; nil on the side of a client
	ctx    context.Context // ends with Close
	end    context.CancelFunc
	writes atomic.Uint64 // odd while one is in progress
}

// Accept upgrades an HTTP request to a WebSocket and returns its Stream, which writes text
// messages and reads text and binary ones. With an error it has answered the request. It does
// not look at the header Origin: the caller decides about browsers.
//
// The Stream pings its peer every 30 seconds, and ends when it takes no message, or gives no
// answer, for [WriteTime]. Of the subprotocols that the request offers, the first one of protocols is
// selected; none of them selects none.
func Accept(w http.ResponseWriter, r *http.Request, protocols ...string) (Stream, error) {
	s := newSocket()
	conn, err := websocket.Accept(hijacker{w, s}, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // the check of Origin, which is the caller's
		Subprotocols:       protocols,
		CompressionMode:    websocket.CompressionDisabled,
		OnPingReceived:     s.pong,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot upgrade the request: %w", err)
	}
	return s.start(conn), nil
}

func newSocket() *socket {
	s := new(socket)
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// pong reports whether a ping is answered. An answer behind a message that the peer does not take
// would end the connection after 5 seconds. The message itself tells the peer that this side is
// there.
func (s *socket) pong(context.Context, []byte) bool { return s.writes.Load()%2 == 0 }

// start makes s the Stream over conn.
func (s *socket) start(conn *websocket.Conn) *socket {
	conn.SetReadLimit(MaxFrame)
	s.conn = conn
	go s.ping()
	return s
}

// ping pings until the end of the connection.
func (s *socket) ping() {
	tick := time.NewTicker(pingTime)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		writes := s.writes.Load()
		ctx, cancel := context.WithTimeout(s.ctx, WriteTime)
		err := s.conn.Ping(ctx)
		cancel()
		if err != nil && writes%2 == 0 && writes == s.writes.Load() {
			_ = s.Close()
			return
		} // else a message was in its way, which has a time limit of its own
	}
}

func (s *socket) Read() ([]byte, error) {
	_, data, err := s.conn.Read(s.ctx)
	if err == nil {
		return data, nil
	}
	if code := websocket.CloseStatus(err); code == websocket.StatusNormalClosure ||
		code == websocket.StatusGoingAway {
		return nil, io.EOF
	}
	if errors.Is(err, websocket.ErrMessageTooBig) {
		err = ErrTooLong
	}
	return nil, fmt.Errorf("cannot read the next message: %w", err)
}

func (s *socket) Write(message []byte) error {
	return s.WriteBatch([]Outgoing{{Data: message}})
}

func (s *socket) WriteBatch(messages []Outgoing) error {
	s.writes.Add(1)
	defer s.writes.Add(1)
	ctx, cancel := context.WithTimeout(s.ctx, WriteTime)
	defer cancel()
	if s.out != nil {
		size := 0
		for _, m := range messages {
			size += frameSize(len(m.Data))
		}
		s.out.expect(size)
	}
	for _, m := range messages {
		kind := websocket.MessageText
		if m.Binary {
			kind = websocket.MessageBinary
		}
		if err := s.conn.Write(ctx, kind, m.Data); err != nil {
			return fmt.Errorf("cannot write a message: %w", err)
		}
	}
	return nil
}

// frameSize returns the size of a frame of a server with n bytes (RFC 6455, 5.2).
func frameSize(n int) int {
	switch {
	case n < 126:
		return 2 + n
	case n < 1<<16:
		return 4 + n
	}
	return 10 + n
}

// leave tells the peer that this side goes away (1001), and discards what it sends until it confirms
// that: with a message that was not read, the system would take back what the peer has not read yet.
// The library waits for at most some seconds.
func (s *socket) leave() { _ = s.conn.Close(websocket.StatusGoingAway, "") }

// CloseFor ends a connection of [Accept] with a status of RFC 6455 and a reason of at most 123 bytes. It
// blocks until the peer has confirmed that, for some seconds at most. Another Stream is cut.
func CloseFor(s Stream, status int, reason string) {
	if ws, ok := s.(*socket); ok {
		_ = ws.conn.Close(websocket.StatusCode(status), reason) // the peer may be gone
	}
	_ = s.Close() // likewise
}

// Close cuts the connection without a closing handshake, as the protocol has it.
func (s *socket) Close() error {
	s.end()
	if s.out != nil {
		_ = s.out.Close() // ends leave, for which CloseNow would wait
	}
	if err := s.conn.CloseNow(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("cannot close the connection: %w", err)
	}
	return nil
}
