// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// An echo is a Gateway that tells each client who it is and how it has called.
type echo struct{ shutdowns chan struct{} }

func (e echo) Serve(stream wire.Stream, credential string, query url.Values) error {
	message, err := json.Marshal([]any{credential, query})
	if err == nil {
		err = stream.Write(message)
	}
	_, end := stream.Read()
	return errors.Join(err, end, stream.Close())
}

func (e echo) Shutdown(context.Context) error {
	e.shutdowns <- struct{}{}
	return nil
}

// TestGateway: a Gateway in place of the server gets each client with its credential and the values of its
// URL, and is shut down once at the end. Who has no token does not reach it.
func TestGateway(t *testing.T) {
	const none = `["",null]`
	file := writeFile(t, "secret\n")
	for _, test := range []struct {
		name, listen string
		auth         Auth
		query, want  string
		token        string
		lines        bool
	}{
		{"port", "ws://127.0.0.1:0", Auth{}, "/?label=a%3D1&label=b", `["",{"label":["a=1","b"]}]`, "", false},
		{"port without values", "ws://127.0.0.1:0", Auth{}, "", `["",{}]`, "", false},
		{"token", "ws://127.0.0.1:0", Auth{Kind: AuthCapability, TokenFile: file}, "", "", "", false},
		{"right token", "ws://127.0.0.1:0", Auth{Kind: AuthCapability, TokenFile: file}, "", `["capability",{}]`,
			"secret", false},
		{"socket", "unix", Auth{}, "", `["",{}]`, "", false},
		{"lines on a socket", "unix", Auth{}, "", none, "", true},
		{"stdio", "stdio", Auth{}, "", none, "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			served := echo{make(chan struct{}, 2)}
			o := Options{Listen: test.listen, Auth: test.auth, Gateway: served}
			t.Cleanup(func() { // after the end of the server
				if n := len(served.shutdowns); n != 1 {
					t.Errorf("it was shut down %d times", n)
				}
			})
			if test.listen == "unix" {
				o.Listen = "unix://" + filepath.Join(t.TempDir(), "s")
			}
			if got := o.reply(t, test.query, test.token, test.lines); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// reply runs a server and returns what it sends to a client first; empty for one that is not let in.
func (o Options) reply(t *testing.T, query, token string, lines bool) string {
	t.Helper()
	var speaks wire.Stream
	switch {
	case o.Listen == "stdio":
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		o.Stdin, o.Stdout = in, out
		over := make(chan error, 1)
		go func() { over <- Run(context.Background(), o) }()
		t.Cleanup(func() {
			_ = toServer.Close()
			if err := <-over; err != nil {
				t.Logf("after the end of the input: %v", err)
			}
		})
		speaks = wire.Lines(fromServer, toServer)
	case lines:
		run(t, o)
		speaks = wire.LinesOn(connectTo(t, o.Listen[len("unix://"):]))
		if err := speaks.Write([]byte("{}")); err != nil {
			t.Fatal(err)
		}
	default:
		var err error
		if speaks, err = wire.Dial(t.Context(), run(t, o)+query, token, nil); err != nil {
			return ""
		}
	}
	t.Cleanup(func() { _ = speaks.Close() })
	message, err := speaks.Read()
	if err != nil {
		t.Fatal(err)
	}
	return string(message)
}

// TestMaxClients: the number of clients is the one that is asked for.
func TestMaxClients(t *testing.T) {
	for _, most := range []int{1, 3} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			o := options()
			o.MaxClients = most
			address := run(t, o)
			for range most {
				meet(t, address, nil)
			}
			if _, response, err := dial(address, nil); err != nil || response == nil ||
				response.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("one more: %v, %v", response, err)
			}
		})
	}
}
