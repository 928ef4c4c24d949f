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
	var request bytes.Buffer
	fmt.Fprintf(&request, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n",
		base64.StdEncoding.EncodeToString(make([]byte, 16)))
	_ = header.Write(&request)
	request.WriteString("\r\n")
	if _, err := conn.Write(request.Bytes()); err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	in := bufio.NewReader(conn)
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

func (w *webSocket) receive() ([]byte, error) {
	for {
		var head [2]byte
		if _, err := io.ReadFull(w.in, head[:]); err != nil {
			return nil, err
		}
		n := uint64(head[1] & 0x7f)
		if n >= 126 {
			long := make([]byte, 2+6*(n&1))
			if _, err := io.ReadFull(w.in, long); err != nil {
				return nil, err
			}
			n = 0
			for _, b := range long {
				n = n<<8 | uint64(b)
			}
		}
		data := make([]byte, n)
		if _, err := io.ReadFull(w.in, data); err != nil {
			return nil, err
		}
		switch op := head[0] & 0xf; op {
		case opText:
			return data, nil
		case opPing:
			if err := w.frame(opPong, data); err != nil {
				return nil, err
			}
		case opClose:
			if len(data) >= 2 {
				w.code = int(binary.BigEndian.Uint16(data))
			}
			_ = w.frame(opClose, data) // the server may not wait for it
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
	return Options{Listen: "ws://127.0.0.1:0", Server: execserver.Options{Version: "test", Dir: "/", Environ: os.Environ(), FileHelper: []string{program, fileHelper}}}
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

// runLines runs a server on pipes until the test ends, and returns the peer.
func runLines(t *testing.T, allowHTTP bool) speaker {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	o := options()
	o.Listen, o.Stdin, o.Stdout, o.Server.AllowHTTP = "stdio", in, out, allowHTTP
	over := make(chan error, 1)
	go func() { over <- Run(t.Context(), o) }()
	t.Cleanup(func() {
		_ = toServer.Close()
		_ = fromServer.Close()
		if err := <-over; err != nil {
			t.Log(err) // some scenarios break the protocol
		}
	})
	return &linePeer{toServer, bufio.NewReader(fromServer)}
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
		ProcessID     string
		Seq           uint64
		Stream        string
		Chunk         []byte
		ExitCode      int
		SandboxDenied bool
		WatchID       int
		RequestID     string
		DeltaBase64   []byte
		Done          bool
		Error         *string
		ID            int
		RunID         string
		Event         json.RawMessage
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int
		Message string
		Data    struct {
			Reason   string
			ExitCode int
		}
	} `json:"error"`
}

// A caller makes requests, one at a time, and keeps what comes between.
type caller struct {
	t testing.TB
	speaker
	id     int
	events []message // notifications
	// passed has the messages that came and that no until returned.
	passed []message
	// answered has the IDs of the answers that came, in JSON.
	answered map[string]bool
}

// call sends a request and returns the answer to it.
func (c *caller) call(method string, params any) message {
	c.t.Helper()
	c.id++
	c.post(map[string]any{"id": c.id, "method": method, "params": params})
	return c.until(func(m *message) bool { return string(m.ID) == fmt.Sprint(c.id) })
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

// until returns the first message that matches, of those that an earlier until passed by and of
// those that it receives. No message is returned twice: the order of an answer and of what the
// request causes is not promised.
func (c *caller) until(match func(*message) bool) message {
	c.t.Helper()
	for i := 0; ; i++ {
		if i == len(c.passed) {
			c.more()
		}
		if m := c.passed[i]; match(&m) {
			c.passed = slices.Delete(c.passed, i, i+1)
			return m
		}
	}
}

// more receives a message.
func (c *caller) more() {
	c.t.Helper()
	text, err := c.receive()
	if err != nil {
		c.t.Fatal(err)
	}
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		c.t.Fatalf("%s: %v", text, err)
	}
	switch {
	case m.Method != "":
		c.events = append(c.events, m)
	case c.answered == nil:
		c.answered = map[string]bool{string(m.ID): true}
	default:
		c.answered[string(m.ID)] = true
	}
	c.passed = append(c.passed, m)
}

// await is until for a notification that an earlier until may have returned.
func (c *caller) await(match func(*message) bool) message {
	c.t.Helper()
	for i := range c.events {
		if match(&c.events[i]) {
			return c.events[i]
		}
	}
	return c.until(match)
}

// ended receives messages until the process has ended.
func (c *caller) ended(process string) {
	c.t.Helper()
	c.await(func(m *message) bool { return m.Method == "process/closed" && m.Params.ProcessID == process })
}

// greet makes or resumes a session and returns its ID.
func (c *caller) greet(resume any) string {
	c.t.Helper()
	m := c.call("initialize", map[string]any{"clientName": "test", "resumeSessionId": resume, "extensionMethods": true})
	var result struct{ SessionID string }
	if m.Error != nil || json.Unmarshal(m.Result, &result) != nil {
		c.t.Fatalf("%+v", m)
	}
	c.post(map[string]any{"method": "initialized"})
	return result.SessionID
}

// script returns parameters for a process that runs a shell script in dir.
func script(id, dir, text string) map[string]any {
	return map[string]any{
		"processId": id, "argv": []string{"sh", "-c", text}, "cwd": "file://" + dir,
		"env": map[string]string{"PATH": "/usr/bin:/bin"}, "tty": false, "pipeStdin": true,
	}
}

// deadline fails a test that waits for a message that does not come.
func deadline(t testing.TB, w *webSocket) {
	t.Helper()
	if err := w.SetDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		t.Fatal(err)
	}
}
