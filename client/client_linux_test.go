// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(testenv.HungMounts)) }

// prepare runs everything without a sandbox. Of flags it knows --ask, which needs an approval, and --sandbox.
func prepare(_ context.Context, q *runs.Request) (*runs.Prepared, error) {
	flags, args, _ := strings.Cut(strings.Join(q.Args, "\x00"), "--\x00")
	p := &runs.Prepared{
		Runner: &sallyport.Runner{Policy: sandbox.FullAccess(), Approver: q.Approver},
		Cmd:    &sallyport.Cmd{Args: strings.Split(args, "\x00"), Dir: q.Dir, Env: q.Environ, Grace: -1},
	}
	switch flags {
	case "":
	case "--ask\x00":
		p.Runner.Approval = approval.Untrusted
	case "--sandbox\x00":
		p.Runner.Policy = sandbox.WorkspaceWrite()
	default:
		return nil, fmt.Errorf("unknown flag %q", flags)
	}
	return p, nil
}

// dial returns a client of a new server in this process.
func dial(t *testing.T, opts Options) *Client {
	t.Helper()
	s := execserver.New(execserver.Options{Dir: t.TempDir(),
		Environ: []string{"PATH=/usr/bin:/bin", "OF=server"}, Prepare: prepare})
	t.Cleanup(func() { _ = s.Close() })
	opts.Server = remote.Options{Dial: s.Dial}
	c, err := Dial(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func start(t *testing.T, c *Client, cmd *Cmd) *Run {
	t.Helper()
	r, err := c.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func shell(script string) *Cmd { return &Cmd{Args: []string{"/bin/sh", "-c", script}} }

// TestRun: a Result has what the command printed, how it ended, and is forgotten at the server.
func TestRun(t *testing.T) {
	c := dial(t, Options{})
	dir := t.TempDir()
	for _, test := range []struct {
		name   string
		cmd    Cmd
		code   int
		stdout string
	}{
		{"both streams", Cmd{Args: []string{"/bin/sh", "-c", "echo out; echo err >&2; exit 3"}}, 3, "out\n"},
		{"variables of the server", Cmd{Args: []string{"/bin/sh", "-c", "echo $OF"}}, 0, "server\n"},
		{"own variables", Cmd{Args: []string{"/bin/sh", "-c", "echo $OF"}, Env: []string{"OF=client=1"}}, 0, "client=1\n"},
		{"no variables", Cmd{Args: []string{"/bin/sh", "-c", "echo $OF"}, Env: []string{}}, 0, "\n"},
		{"a directory", Cmd{Args: []string{"/bin/pwd"}, Dir: dir}, 0, dir + "\n"},
		{"words like flags", Cmd{Args: []string{"/bin/echo", "--", "-n"}}, 0, "-- -n\n"},
		{"without input", Cmd{Args: []string{"/bin/cat"}}, 0, ""},
		{"a terminal", Cmd{Args: []string{"/usr/bin/tty"}, TTY: new(executor.Size)}, 0, "/dev/"},
	} {
		t.Run(test.name, func(t *testing.T) {
			res, err := c.Run(t.Context(), &test.cmd)
			if err != nil || res.ExitCode != test.code ||
				!strings.HasPrefix(res.Stdout.String(), test.stdout) {
				t.Fatalf("%+v, %v", res, err)
			}
			if test.code == 3 && res.Stderr.String() != "err\n" {
				t.Errorf("%q", res.Stderr.String())
			}
		})
	}
	if list, err := c.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestNotRun: a command that does not run is an error that says why, and so is one that is no command.
func TestNotRun(t *testing.T) {
	c := dial(t, Options{Approver: approval.Fixed(approval.Decision{Answer: approval.Denied,
		Message: "not today"})})
	none := dial(t, Options{})
	for _, test := range []struct {
		name string
		c    *Client
		cmd  *Cmd
		is   error
		want string
	}{
		{"denied", c, &Cmd{Flags: []string{"--ask"}, Args: []string{"/bin/true"}}, sallyport.ErrRefused, "not today"},
		{"no approver", none, &Cmd{Flags: []string{"--ask"}, Args: []string{"/bin/true"}}, sallyport.ErrRefused, "approver"},
		{"no program", c, &Cmd{Args: []string{"/no/such/program"}}, nil, "/no/such/program"},
		{"unknown flag", c, &Cmd{Flags: []string{"--other"}, Args: []string{"/bin/true"}}, nil, "unknown flag"},
		{"a relative directory", c, &Cmd{Args: []string{"/bin/true"}, Dir: "x"}, nil, "absolute"},
		{"nil", c, nil, nil, "Args"},
		{"no arguments", c, &Cmd{}, nil, "Args"},
		{"a variable without a name", c, &Cmd{Args: []string{"/bin/true"}, Env: []string{"=x"}}, nil, "NAME=value"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := test.c.Run(t.Context(), test.cmd)
			if err == nil || !strings.Contains(err.Error(), test.want) || test.is != nil &&
				!errors.Is(err, test.is) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestApprover: the question has what it is about, and the command runs after a yes; events come in order.
func TestApprover(t *testing.T) {
	var mu sync.Mutex
	var kinds []string
	asked := 0
	c := dial(t, Options{
		Approver: approval.Func(func(_ context.Context, q *approval.Request) (approval.Decision, error) {
			asked++
			if len(q.Args) != 2 || q.Args[1] != "yes" {
				t.Errorf("asked about %q", q.Args)
			}
			return q.Decide(approval.Approved), nil
		}),
		Events: event.SinkFunc(func(e event.Event) {
			mu.Lock()
			defer mu.Unlock()
			kinds = append(kinds, fmt.Sprintf("%T", e.Body))
		}),
	})
	res, err := c.Run(t.Context(), &Cmd{Flags: []string{"--ask"}, Args: []string{"/bin/echo", "yes"}})
	if err != nil || res.Stdout.String() != "yes\n" || asked != 1 {
		t.Errorf("%+v, %v, asked %d times", res, err, asked)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(kinds) < 3 || kinds[len(kinds)-1] != "event.Ended" {
		t.Errorf("%q", kinds)
	}
}

// TestInteractive: input, waits with their offsets, output as it comes, and what there is not.
func TestInteractive(t *testing.T) {
	c := dial(t, Options{})
	r := start(t, c, &Cmd{Args: []string{"/bin/sh", "-c", "while read x; do echo got $x; done; echo over"},
		OpenStdin: true})
	if n, err := r.Write(t.Context(), []byte("a\n")); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	reply, err := r.Await(t.Context(), sallyport.Until{Match: regexp.MustCompile("got a\n"),
		For: time.Minute})
	if err != nil || reply.Reason != sallyport.ReasonMatch || reply.Next != 6 {
		t.Fatalf("%+v, %v", reply, err)
	}
	from := uint64(1)
	if reply, err = r.Await(t.Context(), sallyport.Until{Bytes: 5, From: &from,
		For: time.Minute}); err != nil || reply.Reason != sallyport.ReasonBytes {
		t.Fatalf("%+v, %v", reply, err)
	}
	list, err := c.List(t.Context())
	if err != nil || len(list) != 1 || !list[0].Running || list[0].ID != r.ID() || list[0].ExitCode != -1 {
		t.Errorf("%+v, %v", list, err)
	}
	if err := r.CloseInput(t.Context()); err != nil {
		t.Error(err)
	}
	var all bytes.Buffer
	for d, err := range c.Attach(r.ID()).Deltas(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		all.Write(d.Data)
	}
	if all.String() != "got a\nover\n" {
		t.Errorf("%q", all.String())
	}
	if err := r.Resize(t.Context(), executor.Size{Cols: 9, Rows: 9}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a size without a terminal: %v", err)
	}
	if _, err := r.Screen(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a screen without a terminal: %v", err)
	}
	if _, err := r.Write(t.Context(), []byte("x")); !errors.Is(err, os.ErrProcessDone) &&
		!errors.Is(err, os.ErrClosed) {
		t.Errorf("input after the end: %v", err)
	}
	res, err := r.Wait(t.Context())
	if err != nil || res.ExitCode != 0 || res.Output.String() != all.String() {
		t.Errorf("%+v, %v", res, err)
	}
	if alive, err := r.Terminate(t.Context()); alive || err != nil {
		t.Errorf("%v, %v", alive, err)
	}
	if err := r.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := r.Wait(t.Context()); !errors.Is(err, ErrUnknown) {
		t.Errorf("a run that was removed: %v", err)
	}
}

// TestSignal: a signal arrives, and one that there is not is an error.
func TestSignal(t *testing.T) {
	c := dial(t, Options{})
	r := start(t, c, shell("trap 'echo usr1; exit 5' USR1; echo ready; while :; do sleep 0.01; done"))
	if _, err := r.Await(t.Context(), sallyport.Until{Bytes: 6, For: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if err := r.Signal(t.Context(), 4000); err == nil {
		t.Error("a signal that there is not")
	}
	if err := r.Signal(t.Context(), int(syscall.SIGUSR1)); err != nil {
		t.Error(err)
	}
	if res, err := r.Wait(t.Context()); err != nil || res.ExitCode != 5 ||
		res.Stdout.String() != "ready\nusr1\n" {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestScreen: a terminal shows what the program drew, in the size that it was given.
func TestScreen(t *testing.T) {
	c := dial(t, Options{})
	r := start(t, c, &Cmd{Args: []string{"/bin/sh", "-c", "printf 'a\\rb'; read x"},
		TTY: &executor.Size{Cols: 40, Rows: 5}, Screen: true})
	if _, err := r.Await(t.Context(), sallyport.Until{Bytes: 3, For: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if err := r.Resize(t.Context(), executor.Size{Cols: 30, Rows: 6}); err != nil {
		t.Error(err)
	}
	s, err := r.Screen(t.Context())
	if err != nil || s.Cols != 30 || s.Rows != 6 || s.Lines[0] != "b" {
		t.Errorf("%+v, %v", s, err)
	}
	if alive, err := r.Terminate(t.Context()); !alive || err != nil {
		t.Errorf("%v, %v", alive, err)
	}
}

// TestInputFull: a command that does not read takes a part, and says how much.
func TestInputFull(t *testing.T) {
	c := dial(t, Options{})
	r := start(t, c, &Cmd{Args: []string{"/bin/sleep", "600"}, OpenStdin: true})
	n, err := r.Write(t.Context(), make([]byte, 4<<20))
	if !errors.Is(err, io.ErrShortWrite) || n == 0 || n == 4<<20 {
		t.Errorf("%d, %v", n, err)
	}
	if err := r.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCanceled: the end of a context ends a command of Run, and prevents a start that waits for an approval;
// nothing is left at the server.
func TestCanceled(t *testing.T) {
	t.Run("while it runs", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := dial(t, Options{Events: event.SinkFunc(func(e event.Event) {
			if _, ok := e.Body.(event.Output); ok {
				cancel()
			}
		})})
		cmd := shell("echo here; sleep 600")
		res, err := c.Run(ctx, cmd)
		if errors.Is(err, context.Canceled) { // before the answer to the start had come
			if list, err := c.List(t.Context()); err != nil || len(list) != 0 {
				t.Errorf("%+v, %v", list, err)
			}
			return
		}
		if err != nil || res.End != sallyport.EndCanceled || res.Stdout.String() != "here\n" {
			t.Errorf("%+v, %v", res, err)
		}
	})
	t.Run("while it is asked about", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		why, withdrawn := errors.New("no more time"), make(chan struct{})
		c := dial(t, Options{Approver: approval.Func(func(ctx context.Context,
			q *approval.Request) (approval.Decision, error) {
			cancel(why)
			<-ctx.Done()
			close(withdrawn)
			return q.Decide(approval.Denied), nil
		})})
		if _, err := c.Start(ctx, &Cmd{Flags: []string{"--ask"},
			Args: []string{"/bin/true"}}); !errors.Is(err, why) {
			t.Errorf("%v", err)
		}
		<-withdrawn
		if list, err := c.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// TestDenials: the Result tells what the sandbox of the server denied.
func TestDenials(t *testing.T) {
	testenv.NeedUserNS(t)
	testenv.NeedSeccomp(t)
	c := dial(t, Options{})
	res, err := c.Run(t.Context(), &Cmd{Flags: []string{"--sandbox"},
		Args: []string{"/bin/sh", "-c", "echo x >/etc/sallyport-test"}})
	if err != nil || len(res.Denials()) != 1 || res.Denials()[0].Path != "/etc/sallyport-test" {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestDialErrors: a server without runs, or none at all, is an error at once.
func TestDialErrors(t *testing.T) {
	s := execserver.New(execserver.Options{})
	t.Cleanup(func() { _ = s.Close() })
	if _, err := Dial(t.Context(), Options{Server: remote.Options{Dial: s.Dial}}); !errors.Is(err,
		errors.ErrUnsupported) {
		t.Errorf("%v", err)
	}
	if _, err := Dial(t.Context(),
		Options{Server: remote.Options{URL: "unix:///no/such/socket"}}); err == nil {
		t.Error("connected to nothing")
	}
	c := dial(t, Options{})
	_ = c.Close()
	if _, err := c.Run(t.Context(), shell("true")); err == nil {
		t.Error("a closed client runs something")
	}
}
