// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/local"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// both runs a test with the executor of this machine, and through a server.
func both(t *testing.T, test func(t *testing.T, e executor.Executor)) {
	t.Helper()
	t.Run("local", func(t *testing.T) {
		e := new(local.Executor)
		closed(t, e)
		test(t, e)
	})
	t.Run("remote", func(t *testing.T) {
		e := remote.New(remote.Options{URL: serveWeb(t, newServer(t)), Token: "secret"})
		closed(t, e)
		test(t, e)
	})
}

// place returns a new directory without links in its name.
func place(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// closedPlace returns a new directory that a sandbox shows, and does not let be written to.
func closedPlace(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sallyport-remote") //nolint:usetesting // a sandbox hides what is in /tmp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// plainPlaces sets a PATH and a home that are not in /var/tmp: they would forbid grants there.
func plainPlaces(t *testing.T) {
	t.Helper()
	t.Setenv("PATH", "/usr/bin:/bin")
	t.Setenv("HOME", t.TempDir())
}

// TestOutcome: what an executor knows of the end of a process tree is the same through a server.
func TestOutcome(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedSeccomp(t)
	plainPlaces(t)
	both(t, func(t *testing.T, e executor.Executor) {
		dir, shut := place(t), closedPlace(t)
		linked := filepath.Join(dir, "linked")
		if err := errors.Join(os.WriteFile(linked, nil, 0o600),
			os.Link(linked, filepath.Join(dir, "second"))); err != nil {
			t.Fatal(err)
		}
		policy := sandbox.WorkspaceWrite().Bind(sandbox.Places{Dir: dir, SlashTmp: "/tmp"})
		var mu sync.Mutex
		var told []string
		// A survivor has its name when it has become its program.
		script := "echo x >" + shut +
			"/a; echo y >>linked; sleep 100 <&- >&- 2>&- & until read name </proc/$!/comm && [ $name = sleep ]; do :; done; exit 7"
		outcome := func() *executor.Exit {
			p, err := e.Start(t.Context(), &executor.Spec{
				Args: []string{"/bin/sh", "-c", script}, Dir: dir, Env: os.Environ(),
				Policy: policy, Resources: executor.Resources{PIDs: 50}, NoCaches: true,
				OnDenied: func(d sandbox.Denial) {
					mu.Lock()
					told = append(told,
						d.Access.String())
					mu.Unlock()
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			exit, err := p.Wait()
			if err != nil || exit.Code != 7 {
				t.Fatalf("%+v, %v", exit, err)
			}
			return exit
		}
		exit := outcome()
		for n := 0; exit.Usage.CPU == nil && n < 100; n++ {
			// the survivor was killed before a busy machine told what the tree used
			exit = outcome()
		}
		want := "write " + shut + "/a"
		if len(exit.Denials) != 1 || exit.Denials[0].Access.String() != want ||
			exit.Denials[0].Source != sandbox.Notified || exit.Denials[0].NoGrant ||
			exit.Denials[0].Time.IsZero() {
			t.Errorf("denials %+v, want %s", exit.Denials, want)
		}
		if !slices.Contains(told, want) {
			t.Errorf("told of %q", told)
		}
		if len(exit.Survivors) != 1 || exit.Survivors[0].Name != "sleep" || exit.SurvivorsBy == "" {
			t.Errorf("survivors %+v by %q", exit.Survivors, exit.SurvivorsBy)
		}
		if len(exit.HardLinks) != 1 || exit.HardLinks[0].Path != linked {
			t.Errorf("hard links %+v", exit.HardLinks)
		}
		if len(exit.Limits) != 1 || exit.Limits[0].Limit != executor.LimitPIDs || exit.Usage.CPU == nil {
			t.Errorf("limits %+v, usage %+v", exit.Limits, exit.Usage)
		}
	})
}

// TestAwait: a wait for input ends when there is one, and with the process.
func TestAwait(t *testing.T) {
	testenv.NeedUserNS(t)
	testenv.NeedSeccomp(t)
	both(t, func(t *testing.T, e executor.Executor) {
		dir := place(t)
		r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite(), Executor: e}
		closed(t, r)
		s, err := r.Start(t.Context(),
			&sallyport.Cmd{Args: []string{"/bin/sh", "-c", "printf 'name? '; read name; echo $name"},
				Dir: dir, TTY: new(executor.Size)})
		if err != nil {
			t.Fatal(err)
		}
		closed(t, s)
		reply, err := s.Await(t.Context(), sallyport.Until{Input: true, For: time.Minute})
		if err != nil || reply.Reason != sallyport.ReasonInput || reply.Input == nil ||
			reply.Input.Kind != executor.InputLine {
			t.Fatalf("%+v, %v", reply, err)
		}
		reply, err = s.Send(t.Context(), []byte("somebody\n"), sallyport.Until{Input: true, For: time.Minute})
		if err != nil || reply.Reason != sallyport.ReasonExited {
			t.Errorf("%+v, %v", reply, err)
		}
	})
}

// TestAwaitPort: see TestAwait; ports are not told through a server, at once, and a wait that is given up
// ends at once.
func TestAwaitPort(t *testing.T) {
	testenv.NeedUserNS(t)
	both(t, func(t *testing.T, e executor.Executor) {
		_, here := e.(*local.Executor)
		dir := place(t)
		start := func(args ...string) executor.Process {
			p, err := e.Start(t.Context(), &executor.Spec{
				Args: args, Dir: dir, Env: os.Environ(), TTY: new(executor.Size),
				Policy: sandbox.WorkspaceWrite().Bind(sandbox.Places{Dir: dir, SlashTmp: "/tmp"}),
			})
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		p := start("/bin/cat")
		late, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.AwaitPort(late, nil); errors.Is(err, errors.ErrUnsupported) == here {
			t.Errorf("%v", err)
		}
		if _, err := p.AwaitInput(late); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if in, err := p.AwaitInput(t.Context()); err != nil || in.Kind != executor.InputLine {
			t.Errorf("%+v, %v", in, err)
		}
		p.Stop()
		if _, err := p.Wait(); err != nil {
			t.Error(err)
		}
		p = start("/bin/sleep", "100")
		ended := make(chan error, 1)
		go func() {
			_, err := p.AwaitInput(context.Background())
			ended <- err
		}()
		p.Stop()
		if _, err := p.Wait(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%v", err)
		}
	})
}

// lastingPlace is closedPlace with a name that does not look as if it were made for one run, so that the
// grant for what is in it is this directory, and nothing else on the machine matters.
func lastingPlace(t *testing.T) string {
	t.Helper()
	dir := closedPlace(t)
	letters := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			r += 'a' - '0'
		}
		return r
	}, dir)
	if err := os.Rename(dir, letters); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(letters) })
	return letters
}

// repository makes a directory with a repository.
func repository(t *testing.T, dir string) {
	t.Helper()
	git := filepath.Join(dir, ".git")
	err := errors.Join(os.MkdirAll(filepath.Join(git, "objects"), 0o700),
		os.Mkdir(filepath.Join(git, "refs"), 0o700),
		os.WriteFile(filepath.Join(git, "HEAD"), []byte("ref: refs/heads/main\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
}

// unreadable makes a directory with a repository whose configuration cannot be read, so that no sandbox
// around it knows what to protect.
func unreadable(t *testing.T, dir string) {
	t.Helper()
	repository(t, dir)
	config := filepath.Join(dir, ".git", "config")
	if err := errors.Join(os.WriteFile(config, nil, 0o600), os.Truncate(config, 17<<20)); err != nil { // too big
		t.Fatal(err)
	}
}

// TestRetryGrant: a command that was denied a file is offered to be run again with the least grant that lasts
// and is enough: with it the sandbox is built, and the file is open.
func TestRetryGrant(t *testing.T) {
	testenv.NeedUserNS(t)
	testenv.NeedSeccomp(t)
	plainPlaces(t)
	for _, tt := range []struct {
		name  string
		make  func(t *testing.T, base, shut string)
		file  string // below shut
		asked string // below base; "-" for nothing
		rule  string // where nothing is asked
	}{
		{"the least that lasts", func(*testing.T, string, string) {}, "a", "", ""},
		{"repositories beside it", func(t *testing.T, base, _ string) {
			for i := range 100 {
				repository(t, filepath.Join(base, "many", "deep", "down", strconv.Itoa(i)))
			}
		}, "a", "", ""},
		{"one beside it that cannot be protected", func(t *testing.T, base, _ string) {
			unreadable(t, filepath.Join(base, "beside", "it"))
		}, "a", "run123456", ""},
		{"one in it", func(t *testing.T, _, shut string) {
			unreadable(t, shut)
		}, "a", "-", "cannot be read"},
		{"a file in one", func(t *testing.T, _, shut string) {
			repository(t, shut)
			if err := os.WriteFile(filepath.Join(shut, ".git", "index"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, ".git/index", "run123456/.git/index", ""},
		{"a new file in one", func(t *testing.T, _, shut string) { repository(t, shut) }, ".git/new", "-", "read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both(t, func(t *testing.T, e executor.Executor) {
				dir, base := place(t), lastingPlace(t)
				shut := filepath.Join(base, "run123456")
				if err := os.Mkdir(shut, 0o700); err != nil {
					t.Fatal(err)
				}
				tt.make(t, base, shut)
				retryGrant(t, e, dir, filepath.Join(shut, tt.file), "write:"+filepath.Join(base, tt.asked),
					tt.asked == "-", tt.rule)
			})
		})
	}
}

// retryGrant runs a command that writes to a file, and approves that it is run again.
func retryGrant(t *testing.T, e executor.Executor, dir, file, want string, none bool, rule string) {
	t.Helper()
	var asked []string
	r := &sallyport.Runner{
		Policy: sandbox.WorkspaceWrite(), Executor: e, Approval: approval.OnRequest,
		Approver: approval.Func(func(_ context.Context, q *approval.Request) (approval.Decision, error) {
			asked = append(asked, q.Requires...)
			return q.Decide(approval.Approved), nil
		}),
	}
	closed(t, r)
	res, err := r.Run(t.Context(),
		&sallyport.Cmd{Args: []string{"/bin/sh", "-c", "echo x >" + file + " || exit 3"},
			Dir: dir, Retry: true})
	if none {
		if err != nil || res.ExitCode != 3 || len(asked) > 0 || len(res.Denials()) != 1 ||
			res.Denials()[0].Grant != "" || !strings.Contains(res.Denials()[0].Rule, rule) {
			t.Errorf("%+v, %v; asked %q", res.Denials(), err, asked)
		}
		return
	}
	if err != nil || res.ExitCode != 0 || res.First == nil {
		t.Fatalf("%+v, %v; asked %q", res, err, asked)
	}
	if !slices.Equal(asked, []string{want}) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "x\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestRetryNoGrant: where the least that lasts would open what decides, here a directory of PATH, nothing is
// asked; also not what a client that does not see the files would take for enough.
func TestRetryNoGrant(t *testing.T) {
	testenv.NeedUserNS(t)
	testenv.NeedSeccomp(t)
	t.Setenv("PATH", closedPlace(t)+":/usr/bin:/bin")
	both(t, func(t *testing.T, e executor.Executor) {
		r := &sallyport.Runner{
			Policy: sandbox.WorkspaceWrite(), Executor: e, Approval: approval.OnRequest,
			Approver: approval.Func(func(_ context.Context, q *approval.Request) (approval.Decision, error) {
				t.Errorf("asked for %q", q.Requires)
				return q.Decide(approval.Denied), nil
			}),
		}
		closed(t, r)
		res, err := r.Run(t.Context(),
			&sallyport.Cmd{Args: []string{"/bin/sh", "-c", "echo x >" + closedPlace(t) + "/a || exit 3"},
				Dir: place(t), Retry: true})
		if err != nil || res.ExitCode != 3 || len(res.Denials()) != 1 {
			t.Fatalf("%+v, %v", res, err)
		}
	})
}
