// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/local"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/test/e2e"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

func TestMain(m *testing.M) {
	testenv.DefaultSignals()
	testenv.MostlyWait()
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(testenv.HungMounts))
}

// closed closes an executor when the test ends.
func closed(t *testing.T, e interface{ Close() error }) {
	t.Helper()
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// newServer returns a server that is closed when the test ends.
func newServer(t testing.TB) *execserver.Server {
	t.Helper()
	s := execserver.New(execserver.Options{Dir: "/", Environ: os.Environ(), Version: "test"})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// serveWeb serves a server at the URL that is returned, for the token "secret".
func serveWeb(t testing.TB, s *execserver.Server) string {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		if stream, err := wire.Accept(w, r); err == nil {
			_ = s.Serve(stream, "secret")
		}
	}))
	t.Cleanup(web.Close)
	return strings.Replace(web.URL, "http", "ws", 1)
}

var ours = e2e.Traits{Resize: true, CloseInput: true, Signals: true, Typed: true, Trees: true}

// TestContract: this machine, a server in this process and one behind a socket keep the same
// promises.
func TestContract(t *testing.T) {
	t.Run("local", func(t *testing.T) {
		all := ours
		all.Inherit = true
		e2e.Run(t, all, func(t *testing.T) executor.Executor {
			e := new(local.Executor)
			closed(t, e)
			return e
		})
	})
	t.Run("in process", func(t *testing.T) {
		e2e.Run(t, ours, func(t *testing.T) executor.Executor {
			e := remote.New(remote.Options{Dial: newServer(t).Dial})
			closed(t, e)
			return e
		})
	})
	t.Run("remote", func(t *testing.T) {
		e2e.Run(t, ours, func(t *testing.T) executor.Executor {
			e := remote.New(remote.Options{URL: serveWeb(t, newServer(t)), Token: "secret"})
			closed(t, e)
			return e
		})
	})
}
