// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// socketsDir is the directory of the sockets in the state directory. The name of one begins with the
// number of its process.
const socketsDir = "approvals"

// patience is how long a process is waited for. It is a variable for tests.
var patience = 4 * time.Second

// Errors of [QuestionListing.Answer] and [QuestionListing.Forget].
var (
	ErrUnknownQuestion = errors.New("it is not open: there was none, or it was answered or withdrawn")
	ErrNotOffered      = errors.New("this answer is not offered")
	ErrOther           = errors.New("another question has this ID now; list it again")
)

// An AnsweredError says that a question was answered before. It is [ErrUnknownQuestion].
type AnsweredError struct {
	By approval.Source // as that of [approval.AnsweredError]; not empty
}

func (e *AnsweredError) Error() string {
	return "it was answered already, by: " + text.Word(string(e.By))
}

// Unwrap returns ErrUnknownQuestion.
func (e *AnsweredError) Unwrap() error { return ErrUnknownQuestion }

// reasons are the errors of a server.
var reasons = map[runs.Reason]error{runs.UnknownQuestion: ErrUnknownQuestion, runs.NotOffered: ErrNotOffered,
	runs.OtherQuestion: ErrOther}

// A questionSocket is the socket of a process.
type questionSocket struct {
	path string
	pid  int
}

// listenIn makes a socket of this process in a directory of the state directory.
func listenIn(name string) (net.Listener, error) {
	dir, err := dirs.Dir()
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, name)
	root, err := safefile.MakeDirs(dir)
	if err != nil {
		return nil, err
	}
	root.Close()
	return dirs.ListenSocket(filepath.Join(dir, fmt.Sprintf("%d-%016x.sock", os.Getpid(), rand.Uint64())))
}

// socketsIn returns the sockets in a directory of the state directories.
func socketsIn(name string) (all []questionSocket, err error) {
	const most = 4096
	for _, dir := range dirs.Existing() {
		dir = filepath.Join(dir, name)
		root, err := safefile.OpenTreePath(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		f, err := root.Open(".")
		root.Close()
		if err != nil {
			return nil, err
		}
		names, _ := f.Readdirnames(most) // an error says that it is empty
		f.Close()
		slices.Sort(names)
		for _, name := range names {
			first, _, _ := strings.Cut(name, "-")
			if pid, err := strconv.Atoi(first); err == nil && strings.HasSuffix(name, ".sock") {
				all = append(all, questionSocket{filepath.Join(dir, name), pid})
			}
		}
	}
	return all, nil
}

// call makes a request of the process, as with does.
func (d questionSocket) call(method string, params, result any) error {
	return d.with(context.Background(), func(ctx context.Context, c *wire.Client) error {
		return c.Call(ctx, method, params, result)
	})
}

// with performs requests of the process; ctx ends with its patience. A socket at which no process listens is
// removed, and the error is ErrUnknown.
func (d questionSocket) with(ctx context.Context, perform func(context.Context, *wire.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := d.connect(ctx)
	if errors.Is(err, syscall.ECONNREFUSED) && !dirs.SocketGone(d.path) {
		c, err = d.connect(ctx) // it was being made
	}
	if err == nil {
		err = perform(ctx, c)
		_ = c.Close() // it returns nil
	}
	var foreign *dirs.ForeignPeerError
	var refused *wire.Error
	switch {
	case err == nil:
	case errors.As(err, &foreign):
		return errors.New("it is no socket of this user's")
	case errors.As(err, &refused):
		var data struct {
			Reason runs.Reason
			By     approval.Source
		}
		_ = json.Unmarshal(refused.Data, &data) // without it, the text says why
		if data.By != "" {
			return &AnsweredError{data.By}
		}
		if known := reasons[data.Reason]; known != nil {
			return known
		}
	case dirs.SocketGone(d.path):
		return ErrUnknownQuestion
	}
	return err
}

func (d questionSocket) connect(ctx context.Context) (*wire.Client, error) {
	return wire.Connect(ctx, wire.ClientTarget{Dial: func(ctx context.Context) (wire.Stream, error) {
		// A process in a sandbox may ask about itself: its answers open nothing else.
		return wire.Over(ctx, "", func(ctx context.Context) (net.Conn, error) {
			return dirs.DialSocket(ctx, d.path, false)
		})
	}}, wire.ClientOptions{Name: "sallyport", Extensions: true, Resume: -1})
}
