// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/files"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// hangs adds a method of a request about files that nothing ends before the test does: as a read of a
// file system that does not answer. Begun gets a value for each.
func hangs(t *testing.T) (begun chan struct{}, release func()) {
	t.Helper()
	begun = make(chan struct{}, 2*maxLeft)
	answers := make(chan struct{})
	methods()["test/hang"] = on("test", wire.DecodeNothing, func(c *connection, id wire.ID, _ struct{}) {
		c.files.add(id, &files.Request{Perform: func(context.Context, *files.Server) (any, error) {
			begun <- struct{}{}
			<-answers
			return struct{}{}, nil
		}})
	})
	t.Cleanup(func() { delete(methods(), "test/hang") })
	return begun, func() { close(answers) }
}

// A cutting stream ends as a connection that is cut.
type cutting struct{ wire.Stream }

func (c cutting) Read() ([]byte, error) {
	text, err := c.Stream.Read()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return text, err
}

// client connects to a server, which sees its end as a cut.
func client(t *testing.T, s *Server) *wire.Client {
	t.Helper()
	dial := func(context.Context) (wire.Stream, error) {
		near, far := net.Pipe()
		s.near.Go(func() { _ = s.Serve(cutting{wire.LinesOn(far)}, "me") })
		return wire.LinesOn(near), nil
	}
	c, err := wire.Connect(t.Context(), wire.ClientTarget{Dial: dial},
		wire.ClientOptions{Name: "t", Extensions: true, Resume: -1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// soon fails the test when f takes longer than the bound.
func soon(t *testing.T, bound time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(bound):
		t.Fatalf("%s takes longer than %v", what, bound)
	}
}

// TestHangingFile: a request about a file that the system does not answer holds up neither the end of
// the server, with time for clients or without, nor that of its connection, which frees its session.
func TestHangingFile(t *testing.T) {
	const drain = 100 * time.Millisecond
	for _, test := range []struct {
		name string
		end  func(t *testing.T, s *Server, c *wire.Client)
	}{
		{"SIGTERM", func(t *testing.T, s *Server, _ *wire.Client) {
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		}},
		{"second signal", func(t *testing.T, s *Server, _ *wire.Client) {
			s.opts.Drain = time.Hour
			ctx, now := context.WithCancel(t.Context())
			time.AfterFunc(drain, now)
			if err := s.Shutdown(ctx); err != nil {
				t.Error(err)
			}
		}},
		{"cut", func(t *testing.T, s *Server, c *wire.Client) {
			_ = c.Close()
			for n := 1; n > 0; { // Serve has returned
				s.mu.Lock()
				n = len(s.connections)
				s.mu.Unlock()
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			begun, release := hangs(t)
			s := New(Options{Drain: drain, Dir: "/"})
			c := client(t, s)
			go func() { _ = c.Call(t.Context(), "test/hang", nil, nil) }() // it fails with the connection
			<-begun
			soon(t, lateTime-time.Second, test.name, func() { test.end(t, s, c) })
			_ = errors.Join(c.Close(), s.Close())
			if n := s.left.Load(); n != 1 {
				t.Errorf("%d are left, want 1", n)
			}
			release()
		})
	}
}

// TestManyHanging: connections that leave requests which hang are bounded: each may hold a thread of
// the server. The wall is maxLeft.
func TestManyHanging(t *testing.T) {
	begun, release := hangs(t)
	s := New(Options{Dir: "/"})
	defer func() { _ = s.Close() }()
	defer release()
	for range maxLeft {
		c := client(t, s)
		go func() { _ = c.Call(t.Context(), "test/hang", nil, nil) }()
		<-begun
		_ = c.Close()
	}
	for s.left.Load() < maxLeft { // the server has seen the ends
	}
	c := client(t, s)
	defer c.Close()
	err := c.Call(t.Context(), "fs/getMetadata", map[string]any{"path": "file:///"}, nil)
	if err == nil || !strings.Contains(err.Error(),
		"limit of requests about files without an answer (256) reached") {
		t.Errorf("%v", err)
	}
	if err := c.Call(t.Context(), "environment/status", nil, nil); err != nil {
		t.Errorf("other requests: %v", err)
	}
}

// TestLargeCopy: a copy is given up when the server ends.
func TestLargeCopy(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := os.WriteFile(from, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(from, 1<<36); err != nil { // it has holes, and takes no room
		t.Fatal(err)
	}
	s := New(Options{Drain: time.Millisecond, Dir: "/"})
	c := client(t, s)
	go func() {
		_ = c.Call(t.Context(), "fs/copy", map[string]any{"sourcePath": wire.URI(from),
			"destinationPath": wire.URI(to), "recursive": false}, nil)
	}()
	size := func() int64 {
		info, err := os.Stat(to)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	for size() == 0 {
	}
	soon(t, lateTime-time.Second, "Shutdown", func() { _ = s.Shutdown(t.Context()) })
	_ = errors.Join(c.Close(), s.Close())
	for s.left.Load() > 0 { // it ends soon
	}
	if n := size(); n >= 1<<38 {
		t.Errorf("%d bytes were copied", n)
	}
}

// TestStuckRun: what the system holds up at the start of a run does not hold up the end of the server
// for ever.
func TestStuckRun(t *testing.T) {
	hold := make(chan struct{})
	begun := make(chan struct{})
	s := New(Options{Drain: time.Millisecond, Dir: "/",
		Prepare: func(context.Context, *runs.Request) (*runs.Prepared, error) {
			close(begun)
			<-hold
			return nil, errors.New("late")
		}})
	c := client(t, s)
	go func() { _ = c.Call(t.Context(), "run/start", map[string]any{"args": []string{"true"}}, nil) }()
	<-begun
	soon(t, stuckTime+5*time.Second, "Shutdown", func() {
		if err := s.Shutdown(t.Context()); !errors.Is(err, ErrStuck) {
			t.Errorf("%v", err)
		}
	})
	close(hold)
	if err := errors.Join(c.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}

// TestNoRunNumber: without a number there is no run, the error says why, and others go on.
func TestNoRunNumber(t *testing.T) {
	s := New(Options{Dir: "/", RunNumber: func(uint64) (uint64, error) {
		return 0,
			errors.New("the file is damaged; remove it")
	},
		Prepare: func(context.Context, *runs.Request) (*runs.Prepared, error) {
			t.Error("it was prepared")
			return nil, errors.New("no")
		}})
	defer func() { _ = s.Close() }()
	c := client(t, s)
	defer c.Close()
	err := c.Call(t.Context(), "run/start", map[string]any{"args": []string{"true"}}, nil)
	var answer *wire.Error
	if !errors.As(err, &answer) || !strings.Contains(err.Error(), "the file is damaged; remove it") ||
		!json.Valid(answer.Data) || !strings.Contains(string(answer.Data), `"failed"`) {
		t.Errorf("%v", err)
	}
}
