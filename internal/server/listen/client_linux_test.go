// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/server/execserver"
)

// A speaker is a client's side of a connection.
type speaker interface {
	send(message []byte, binary bool) error
	receive() ([]byte, error)
	close() error // cuts the connection
}

// A webSocket is a client of its own (RFC 6455), which shares no code with the server.
type webSocket struct {
	net.Conn
	in   *bufio.Reader
	buf  []byte
	code int // with which the server has closed the connection; 0 while it has not
}

// dial upgrades a connection to url and returns it, or the response that refused it.
func dial(url string, header http.Header) (*webSocket, *http.Response, error) {
	network, address := "tcp", strings.TrimPrefix(url, "ws://")
	if path, ok := strings.CutPrefix(url, "unix://"); ok {
		network, address = "unix", path
	}
	conn, err := net.Dial(network, address)
	if err != nil {
		return nil, nil, err
	}
	return upgrade(conn, header)
}

// upgrade is dial on a connection.
func upgrade(conn net.Conn, header http.Header) (*webSocket, *http.Response, error) {
	var request bytes.Buffer
	fmt.Fprintf(&request, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n",
		base64.StdEncoding.EncodeToString(make([]byte, 16)))
	_ = header.Write(&request)
	request.WriteString("\r\n")
	if _, err := conn.Write(request.Bytes()); err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	in := bufio.NewReaderSize(conn, 256<<10)
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		body, _ := io.ReadAll(response.Body)
		response.Body = io.NopCloser(bytes.NewReader(body))
		return nil, response, conn.Close()
	}
	return &webSocket{Conn: conn, in: in}, response, nil
}

const (
	opText   = 1
	opBinary = 2
	opClose  = 8
	opPing   = 9
	opPong   = 10
)

// frame writes one frame, masked with zeros.
func (w *webSocket) frame(op byte, data []byte) error {
	head := []byte{0x80 | op}
	switch n := len(data); {
	case n < 126:
		head = append(head, 0x80|byte(n))
	case n < 1<<16:
		head = binary.BigEndian.AppendUint16(append(head, 0x80|126), uint16(n))
	default:
		head = binary.BigEndian.AppendUint64(append(head, 0x80|127), uint64(n))
	}
	_, err := w.Write(append(append(head, 0, 0, 0, 0), data...))
	return err
}

func (w *webSocket) send(message []byte, binary bool) error {
	if binary {
		return w.frame(opBinary, message)
	}
	return w.frame(opText, message)
}

// receive returns a message, which is valid until the next call.
func (w *webSocket) receive() ([]byte, error) {
	for {
		var head [10]byte
		if _, err := io.ReadFull(w.in, head[:2]); err != nil {
			return nil, err
		}
		n := uint64(head[1] & 0x7f)
		if long := map[uint64]int{126: 2, 127: 8}[n]; long > 0 {
			if _, err := io.ReadFull(w.in, head[2:2+long]); err != nil {
				return nil, err
			}
			n = 0
			for _, b := range head[2 : 2+long] {
				n = n<<8 | uint64(b)
			}
		}
		w.buf = slices.Grow(w.buf[:0], int(n))[:n]
		if _, err := io.ReadFull(w.in, w.buf); err != nil {
			return nil, err
		}
		switch op := head[0] & 0xf; op {
		case opText, opBinary:
			return w.buf, nil
		case opPing:
			if err := w.frame(opPong, w.buf); err != nil {
				return nil, err
			}
		case opClose:
			if n >= 2 {
				w.code = int(binary.BigEndian.Uint16(w.buf))
			}
			_ = w.frame(opClose, w.buf) // the server may not wait for it
			return nil, io.EOF
		default:
			return nil, fmt.Errorf("frame of the kind %d", op)
		}
	}
}

func (w *webSocket) close() error { return w.Close() }

// A linePeer speaks over lines.
type linePeer struct {
	out io.WriteCloser
	in  *bufio.Reader
}

func (l *linePeer) send(message []byte, _ bool) error {
	_, err := l.out.Write(append(bytes.Clone(message), '\n'))
	return err
}

func (l *linePeer) receive() ([]byte, error) {
	line, err := l.in.ReadBytes('\n')
	return bytes.TrimSuffix(line, []byte("\n")), err
}

func (l *linePeer) close() error { return l.out.Close() }

// options are those of a server for tests.
func options() Options {
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Options{Listen: "ws://127.0.0.1:0", Server: execserver.Options{Version: "test", Dir: "/",
		Environ: os.Environ(), FileHelper: []string{program, fileHelper}}}
}

// run runs a server until the test ends, and returns its URL.
func run(t testing.TB, o Options) string {
	t.Helper()
	r, w := io.Pipe()
	o.Stdout = w
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		err := Run(ctx, o)
		_ = w.CloseWithError(errors.Join(io.EOF, err))
		over <- err
	}()
	url, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		cancel()
		t.Fatalf("%v, %v", err, <-over)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
	return strings.TrimSpace(url)
}

// connect returns a peer of the server at url, which is closed when the test ends.
func connect(t testing.TB, url string, header http.Header) *webSocket {
	t.Helper()
	w, response, err := dial(url, header)
	if err != nil || w == nil {
		t.Fatalf("%v, %v", response, err)
	}
	t.Cleanup(func() { _ = w.close() })
	return w
}

// A message is a message of the server.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Seq      uint64
		Stream   string
		Chunk    []byte
		ExitCode int
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int
		Message string
	} `json:"error"`
}

// A caller makes requests, one at a time, and keeps what comes between.
type caller struct {
	t testing.TB
	speaker
	id     int
	events []message // notifications
}

// call sends a request and returns the answer to it.
func (c *caller) call(method string, params any) message {
	c.t.Helper()
	c.id++
	c.post(map[string]any{"id": c.id, "method": method, "params": params})
	for {
		if m := c.next(); string(m.ID) == fmt.Sprint(c.id) {
			return m
		}
	}
}

// post sends a message.
func (c *caller) post(v any) {
	c.t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = c.send(text, false)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// next receives a message.
func (c *caller) next() (m message) {
	c.t.Helper()
	text, err := c.receive()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		c.t.Fatalf("%s: %v", text, err)
	}
	if m.Method != "" {
		c.events = append(c.events, m)
	}
	return m
}

// greet makes or observes a session, and returns its ID.
func (c *caller) greet(observe any) string {
	c.t.Helper()
	m := c.call("initialize", map[string]any{"clientName": "test", "observeSessionId": observe,
		"extensionMethods": true})
	var result struct{ SessionID string }
	if m.Error != nil || json.Unmarshal(m.Result, &result) != nil {
		c.t.Fatalf("%+v", m)
	}
	c.post(map[string]any{"method": "initialized"})
	return result.SessionID
}

// meet connects to the server at url and makes a session.
func meet(t testing.TB, url string, header http.Header) (c *caller, session string) {
	t.Helper()
	w := connect(t, url, header)
	deadline(t, w)
	c = &caller{t: t, speaker: w}
	return c, c.greet(nil)
}

// served makes a request that every server performs.
func (c *caller) served() {
	c.t.Helper()
	if m := c.call("environment/status", nil); m.Error != nil {
		c.t.Errorf("%+v", m.Error)
	}
}

// start starts a process that runs a shell script in dir.
func (c *caller) start(dir, text string, more map[string]any) {
	c.t.Helper()
	params := map[string]any{
		"processId": "p", "argv": []string{"sh", "-c", text}, "cwd": "file://" + dir,
		"env": map[string]string{"PATH": "/usr/bin:/bin"}, "tty": false, "pipeStdin": true,
	}
	maps.Copy(params, more)
	if m := c.call("process/start", params); m.Error != nil {
		c.t.Fatalf("%+v", m.Error)
	}
}

// printed receives until a process has printed something.
func (c *caller) printed() {
	c.t.Helper()
	for !slices.ContainsFunc(c.events, func(m message) bool { return m.Method == "process/output" }) {
		c.next()
	}
}

// ended receives until a process has ended, and returns its exit code and what it printed.
func (c *caller) ended() (code int, text string) {
	c.t.Helper()
	for i := 0; ; i++ {
		for i == len(c.events) {
			c.next()
		}
		switch m := c.events[i]; m.Method {
		case "process/output":
			text += string(m.Params.Chunk)
		case "process/exited":
			code = m.Params.ExitCode
		case "process/closed":
			return code, text
		}
	}
}

// deadline fails a test that waits for a message that does not come.
func deadline(t testing.TB, w *webSocket) {
	t.Helper()
	if err := w.SetDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		t.Fatal(err)
	}
}
