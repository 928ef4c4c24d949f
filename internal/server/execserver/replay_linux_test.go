// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// A line is one line of a recorded scenario.
type line struct {
	Dir    string
	Conn   string
	Msg    json.RawMessage
	Raw    *string
	Closed bool
	Info   bool

	Op, Cmd, Stream, ProcessID, SHA256 string
	Stdout                             *string
	ID                                 json.RawMessage
	MS                                 int
	Min                                int `json:"min_ms"`
	Bytes, MaxBytes                    int
	MinBytes                           int `json:"min_bytes"`
}

// A talk is one connection of a scenario: what was said, and when.
type talk struct {
	speaker
	mu       sync.Mutex
	arrived  chan struct{} // closed with the next message
	messages []message
	times    []time.Time
	ended    error // why no more comes
	sent     map[string]time.Time
	methods  map[string]string // of requests, by ID
	checked  map[string]int    // answers that were compared, by ID
	resumed  bool
}

func newTalk(p speaker) *talk {
	c := &talk{speaker: p, arrived: make(chan struct{}), sent: map[string]time.Time{},
		methods: map[string]string{}, checked: map[string]int{}}
	go c.listen()
	return c
}

func (c *talk) listen() {
	for {
		text, err := c.receive()
		var m message
		if err == nil {
			err = json.Unmarshal(text, &m)
		}
		c.mu.Lock()
		if err != nil {
			c.ended = err
		} else {
			c.messages = append(c.messages, m)
			c.times = append(c.times, time.Now())
		}
		close(c.arrived)
		c.arrived = make(chan struct{})
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// wait waits until what has arrived is enough.
func (c *talk) wait(t *testing.T, what string, enough func() bool) {
	t.Helper()
	late := time.After(2 * time.Minute)
	for {
		c.mu.Lock()
		ok, ended, arrived := enough(), c.ended, c.arrived
		c.mu.Unlock()
		if ok {
			return
		}
		if ended != nil {
			t.Fatalf("the connection ended (%v) before %s", ended, what)
		}
		select {
		case <-arrived:
		case <-late:
			t.Fatalf("%s did not come", what)
		}
	}
}

// answer returns the nth answer with an ID and when it came.
func (c *talk) answer(id string, n int) (*message, time.Time) {
	for i := range c.messages {
		if m := &c.messages[i]; m.Method == "" && string(m.ID) == id {
			if n--; n < 0 {
				return m, c.times[i]
			}
		}
	}
	return nil, time.Time{}
}

// output returns the bytes of a stream of a process.
func (c *talk) output(process, stream string) []byte {
	var b []byte
	for _, m := range c.messages {
		if m.Method == "process/output" && m.Params.ProcessID == process && m.Params.Stream == stream {
			b = append(b, m.Params.Chunk...)
		}
	}
	return b
}

// event returns an event of a process; nil when it has not come.
func (c *talk) event(method, process string) *message {
	for i := range c.messages {
		if m := &c.messages[i]; m.Method == method && m.Params.ProcessID == process {
			return m
		}
	}
	return nil
}

// A scenario is being played.
type scenario struct {
	t      *testing.T
	name   string
	dir    string
	talks  map[string]*talk
	dial   func() speaker
	expect map[string]map[string][]byte // output by connection, and by process and stream
	ids    map[string]string            // session IDs by connection
}

// differences are the answers that are meant to be others than recorded, by scenario and ID.
var differences = map[string]string{
	"sandbox_process/4": "a process that is not confined does not say that it is",
}

// TestScenarios plays what was recorded from another server of the protocol.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needs(t, file)
			o := options()
			o.AllowHTTP = strings.HasPrefix(name, "http_")
			server := run(t, o)
			play(t, file, func() speaker { return connect(t, server) })
		})
	}
}

// play plays a scenario and compares.
func play(t *testing.T, file string, dial func() speaker) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	web := webServer(t)
	s := &scenario{t: t, name: strings.TrimSuffix(filepath.Base(file), ".jsonl"), dir: dir,
		talks: map[string]*talk{"a": newTalk(dial())}, dial: dial, expect: map[string]map[string][]byte{},
		ids: map[string]string{}}
	for raw := range strings.Lines(string(text)) {
		raw = strings.NewReplacer("${ROOT}", dir, "${HTTP}", web).Replace(raw)
		for conn, id := range s.ids {
			raw = strings.ReplaceAll(raw, "${SESSION:"+conn+"}", id)
		}
		var l line
		if err := json.Unmarshal([]byte(raw), &l); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		if l.Conn == "" {
			l.Conn = "a"
		}
		s.step(&l)
	}
	for _, c := range s.talks {
		s.inOrder(c)
	}
}

func (s *scenario) step(l *line) {
	s.t.Helper()
	c := s.talks[l.Conn]
	switch {
	case l.Info:
	case l.Dir == "c2s":
		s.say(c, l)
	case l.Dir == "s2c" && l.Closed:
		c.wait(s.t, "the end", func() bool { return c.ended != nil })
	case l.Dir == "s2c":
		s.hear(c, l)
	case l.Dir == "ctl":
		s.control(c, l)
	}
}

func (s *scenario) say(c *talk, l *line) {
	text := []byte(l.Msg)
	if l.Raw != nil {
		text = []byte(*l.Raw)
	}
	var m message
	if json.Unmarshal(text, &m) == nil && m.ID != nil {
		c.mu.Lock()
		c.methods[string(m.ID)] = m.Method
		c.sent[string(m.ID)] = time.Now()
		c.resumed = c.resumed || bytes.Contains(text, []byte(`"resumeSessionId"`))
		c.mu.Unlock()
	}
	if err := c.send(text); err != nil {
		s.t.Fatal(err)
	}
}

// hear waits for a message of the record and compares it.
func (s *scenario) hear(c *talk, l *line) {
	s.t.Helper()
	var want message
	if err := json.Unmarshal(l.Msg, &want); err != nil {
		s.t.Fatal(err)
	}
	id := want.Params.ProcessID
	switch want.Method {
	case "":
		s.compare(c, &want)
	case "http/request/bodyDelta":
		s.delta(c, &want)
	case "process/output":
		if s.expect[l.Conn] == nil {
			s.expect[l.Conn] = map[string][]byte{}
		}
		key := id + "\x00" + want.Params.Stream
		all := append(s.expect[l.Conn][key], want.Params.Chunk...)
		s.expect[l.Conn][key] = all
		c.wait(s.t, "output of "+id, func() bool { return len(c.output(id, want.Params.Stream)) >= len(all) })
		c.mu.Lock()
		defer c.mu.Unlock()
		if got := c.output(id, want.Params.Stream); !bytes.HasPrefix(got, all) {
			s.t.Errorf("output of %s: %q, want %q", id, got, all)
		}
	default:
		c.wait(s.t, want.Method+" of "+id, func() bool { return c.event(want.Method, id) != nil })
		c.mu.Lock()
		defer c.mu.Unlock()
		got := c.event(want.Method, id).Params
		if want.Params.Seq, got.Seq = 0, 0; !reflect.DeepEqual(got, want.Params) {
			s.t.Errorf("%s: %+v, want %+v", want.Method, got, want.Params)
		}
	}
}

// compare compares the answer to a request.
func (s *scenario) compare(c *talk, want *message) {
	s.t.Helper()
	id := string(want.ID)
	n := c.checked[id]
	c.checked[id]++
	var got *message
	c.wait(s.t, "the answer "+id, func() bool { got, _ = c.answer(id, n); return got != nil })
	method := c.methods[id]
	switch {
	case want.Error != nil:
		if got.Error == nil || got.Error.Code != want.Error.Code {
			s.t.Errorf("answer %s to %s: %+v, want the error %+v", id, method, got, want.Error)
		} else if !strings.HasPrefix(got.Error.Message, want.Error.Message) {
			s.t.Logf("note: %q for %q", got.Error.Message, want.Error.Message)
		}
	case got.Error != nil:
		s.t.Errorf("answer %s to %s: %+v, want %s", id, method, got.Error, want.Result)
	default:
		s.result(c, id, method, got.Result, want.Result)
	}
}

// result compares a result.
func (s *scenario) result(c *talk, id, method string, gotText, wantText json.RawMessage) {
	s.t.Helper()
	type result struct {
		SessionID, ProcessID, SandboxType string
		Chunks                            []struct {
			Seq    uint64
			Stream string
			Chunk  []byte
		}
		NextSeq                       uint64
		Exited, Closed, SandboxDenied bool
		ExitCode                      *int
		Failure                       *string
		Shell                         struct{ Name, Path string }
		Capabilities                  map[string]bool
	}
	var got, want result
	if err := errors.Join(json.Unmarshal(gotText, &got), json.Unmarshal(wantText, &want)); err != nil {
		s.t.Fatal(err)
	}
	switch method {
	case "initialize":
		for name, talk := range s.talks {
			if talk == c {
				s.ids[name] = got.SessionID
			}
		}
		if want.SessionID[0] != '$' && got.SessionID != want.SessionID {
			s.t.Errorf("session %s, want %s", got.SessionID, want.SessionID)
		}
	case "environment/info":
		if got.Shell.Name == "" || got.Shell.Path == "" || got.Capabilities == nil {
			s.t.Errorf("%s", gotText)
		}
	case "process/start":
		if _, differs := differences[s.name+"/"+id]; differs {
			return
		}
		if got.ProcessID != want.ProcessID || (got.SandboxType == "none") != (want.SandboxType == "none") {
			s.t.Errorf("%s, want %s", gotText, wantText)
		}
	case "process/read":
		joined := func(r *result) map[string]string {
			streams := map[string]string{}
			for _, c := range r.Chunks {
				streams[c.Stream] += string(c.Chunk)
			}
			return streams
		}
		for i, chunk := range got.Chunks {
			if chunk.Seq >= got.NextSeq || i > 0 && chunk.Seq <= got.Chunks[i-1].Seq {
				s.t.Errorf("numbers of %s", gotText)
			}
		}
		same := reflect.DeepEqual(joined(&got), joined(&want)) && got.Exited == want.Exited &&
			reflect.DeepEqual(got.ExitCode, want.ExitCode) &&
			reflect.DeepEqual(got.Failure, want.Failure) && got.SandboxDenied == want.SandboxDenied &&
			(got.Closed || !want.Closed)
		if !same {
			s.t.Errorf("%s, want %s", gotText, wantText)
		}
	case "http/request", "environmentConfig/read":
		s.web(method, gotText, wantText)
	case "fs/getMetadata", "fs/readDirectory", "fs/walk":
		s.files(method, gotText, wantText)
	default:
		var g, w any
		if errors.Join(json.Unmarshal(gotText, &g), json.Unmarshal(wantText, &w)) != nil ||
			!reflect.DeepEqual(g, w) {
			s.t.Errorf("%s: %s, want %s", method, gotText, wantText)
		}
	}
}

// control performs an action of the driver.
func (s *scenario) control(c *talk, l *line) {
	s.t.Helper()
	switch l.Op {
	case "connect":
		s.talks[l.Conn] = newTalk(s.dial())
	case "drop", "close":
		if err := c.close(); err != nil {
			s.t.Fatal(err)
		}
	case "sleep": // the record says how long
		<-time.After(time.Duration(l.MS) * time.Millisecond)
	case "sh":
		cmd := exec.Command("sh", "-c", l.Cmd)
		cmd.Dir = s.dir
		if out, err := cmd.Output(); err != nil || l.Stdout != nil && string(out) != *l.Stdout {
			s.t.Errorf("%s: %q, %v", l.Cmd, out, err)
		}
	case "elapsed":
		const most = 4900 * time.Millisecond // for a busy machine; answers that wait too long take more
		_, at := c.answer(string(l.ID), 0)
		if took := at.Sub(c.sent[string(l.ID)]); took < time.Duration(l.Min)*time.Millisecond || took > most {
			s.t.Errorf("answer %s took %v, want %d ms to %v", l.ID, took, l.Min, most)
		}
	case "expect_output":
		c.wait(s.t, "the end of "+l.ProcessID,
			func() bool { return c.event("process/closed", l.ProcessID) != nil })
		s.sum(l, c.output(l.ProcessID, l.Stream))
	case "retained":
		page := s.read(c, map[string]any{"processId": l.ProcessID})
		all := c.output(l.ProcessID, l.Stream)
		if got := page.bytes(); len(got) < l.MinBytes || !bytes.HasSuffix(all, got) {
			s.t.Errorf("%d bytes retained, want %d or more", len(got), l.MinBytes)
		}
	case "drain":
		s.drain(c, l)
	default:
		s.t.Fatalf("unknown action %q", l.Op)
	}
}

func (s *scenario) sum(l *line, got []byte) {
	s.t.Helper()
	sum := sha256.Sum256(got)
	if len(got) != l.Bytes || hex.EncodeToString(sum[:]) != l.SHA256 {
		s.t.Errorf("%d bytes of %s, want %d", len(got), l.ProcessID, l.Bytes)
	}
}

// drain reads all output in pages.
func (s *scenario) drain(c *talk, l *line) {
	s.t.Helper()
	var all []byte
	for after := uint64(0); ; {
		page := s.read(c, map[string]any{"processId": l.ProcessID, "afterSeq": after, "maxBytes": l.MaxBytes})
		if len(page.Chunks) == 0 && page.Closed {
			break
		}
		got := page.bytes()
		if len(page.Chunks) > 1 && len(got) > l.MaxBytes {
			s.t.Errorf("a page of %d bytes, at most %d were asked for", len(got), l.MaxBytes)
		}
		all, after = append(all, got...), page.NextSeq-1
	}
	s.sum(l, all)
}

type page struct {
	Chunks []struct {
		Seq    uint64
		Stream string
		Chunk  []byte
	}
	NextSeq        uint64
	Closed, Exited bool
}

func (p *page) bytes() []byte {
	var b []byte
	for _, c := range p.Chunks {
		b = append(b, c.Chunk...)
	}
	return b
}

// read makes a request of the driver's own.
func (s *scenario) read(c *talk, params any) *page {
	s.t.Helper()
	text, err := json.Marshal(map[string]any{"id": "driver", "method": "process/read", "params": params})
	if err == nil {
		err = c.send(text)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	n := c.checked[`"driver"`]
	c.checked[`"driver"`]++
	var got *message
	c.wait(s.t, "the page", func() bool { got, _ = c.answer(`"driver"`, n); return got != nil })
	p := new(page)
	if err := json.Unmarshal(got.Result, p); err != nil {
		s.t.Fatal(err)
	}
	return p
}

// inOrder checks that nothing was left over and that the events of every process came in the
// order of their numbers, from 1 where the connection saw the beginning, without gaps, and
// closed last.
func (s *scenario) inOrder(c *talk) {
	s.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	next, over := map[string]uint64{}, map[string]bool{}
	answers := map[string]int{}
	for _, m := range c.messages {
		if m.Method == "" {
			answers[string(m.ID)]++
			continue
		}
		if !strings.HasPrefix(m.Method, "process/") {
			continue
		}
		p := m.Params
		if n, seen := next[p.ProcessID]; seen && p.Seq != n || !seen && p.Seq != 1 && !c.resumed ||
			over[p.ProcessID] {
			s.t.Errorf("%s of %q has the number %d, want %d", m.Method, p.ProcessID, p.Seq, n)
		}
		next[p.ProcessID], over[p.ProcessID] = p.Seq+1, m.Method == "process/closed"
	}
	if !reflect.DeepEqual(answers, c.checked) {
		s.t.Errorf("answers %v, want %v", answers, c.checked)
	}
	if c.ended != nil && !errors.Is(c.ended, io.EOF) {
		s.t.Logf("ended: %v", c.ended)
	}
}
