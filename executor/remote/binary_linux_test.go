// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote_test

import (
	"context"
	"crypto/sha256"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A counter counts the binary messages of a stream.
type counter struct {
	wire.Stream
	binary *atomic.Int64
}

func (c counter) Read() ([]byte, error) {
	b, err := c.Stream.Read()
	if len(b) > 0 && b[0] == 1 {
		c.binary.Add(1)
	}
	return b, err
}

// TestBinaryOutput: output comes in binary messages where the connection has them, and is the same.
func TestBinaryOutput(t *testing.T) {
	url := serveWeb(t, newServer(t))
	var binary atomic.Int64
	e := remote.NewOn(func(ctx context.Context) (wire.Stream, error) {
		s, err := wire.Dial(ctx, url, "secret", nil)
		return counter{s, &binary}, err
	}, remote.Options{})
	closed(t, e)
	sum, n := sha256.New(), 0
	p, err := e.Start(t.Context(), &executor.Spec{
		Args: []string{"seq", "1", "100000"}, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"},
		Policy:   sandbox.FullAccess(),
		OnOutput: func(_ executor.Stream, b []byte) { n += len(b); sum.Write(b) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(); err != nil || exit.Code != 0 {
		t.Fatalf("%+v, %v", exit, err)
	}
	want := sha256.New()
	for i := 1; i <= 100000; i++ {
		want.Write([]byte(strconv.Itoa(i) + "\n"))
	}
	if string(sum.Sum(nil)) != string(want.Sum(nil)) {
		t.Errorf("%d bytes, not those that were printed", n)
	}
	if binary.Load() == 0 {
		t.Error("no binary message came")
	}
}
