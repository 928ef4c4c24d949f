// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// approving returns a Runner that approves what a file in its workspace holds, and nothing else.
func approving(t *testing.T, file string, p sandbox.Policy) *sallyport.Runner {
	t.Helper()
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, p)
	r.Approver = approval.Func(func(_ context.Context, q *approval.Request) (approval.Decision, error) {
		if now, _ := os.ReadFile(file); string(now) != string(good) {
			return approval.Decision{Answer: approval.Denied}, nil
		}
		return approval.Decision{Answer: approval.Approved}, nil
	})
	return r
}

// outside is the command with which a script leaves the sandbox.
func (s site) outside(args ...string) *sallyport.Cmd {
	return &sallyport.Cmd{Args: args, Dir: s.ws, Unsandboxed: true}
}

// begin starts a command in a sandbox that says that it is there and waits for its input.
func (s site) begin(t *testing.T, p sandbox.Policy, c *sallyport.Cmd) *sallyport.Session {
	t.Helper()
	r := newRunner(t, p)
	c.Dir, c.OpenStdin = s.ws, true
	one, err := r.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = one.Close() })
	reply(t, one, "there")
	return one
}

// reply waits for a word of a session.
func reply(t *testing.T, s *sallyport.Session, word string) {
	t.Helper()
	out, err := s.Await(t.Context(), sallyport.Until{For: enough,
		Match: regexp.MustCompile(regexp.QuoteMeta(word))})
	if err != nil || out.Reason != sallyport.ReasonMatch {
		t.Fatalf("%+v, %v", out, err)
	}
}

// TestApprovedBesideWriter: nothing leaves the sandbox that a command which runs in one could exchange;
// where it cannot, the approved command starts.
func TestApprovedBesideWriter(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, test := range []struct {
		name   string
		policy func(site) sandbox.Policy
		args   []string
		free   bool // it starts
	}{
		{"its program", func(site) sandbox.Policy { return sandbox.WorkspaceWrite(".") }, []string{"./go.sh"}, false},
		{"its script", func(site) sandbox.Policy { return sandbox.WorkspaceWrite(".") }, []string{"sh", "go.sh"}, false},
		{"a script of its script", func(site) sandbox.Policy { return sandbox.WorkspaceWrite(".") }, []string{"sh", "-c", "./go.sh"}, false},
		{"what a link leads to", func(site) sandbox.Policy { return sandbox.WorkspaceWrite(".") }, []string{"./link-go"}, false},
		{"the link to it", func(s site) sandbox.Policy {
			return sandbox.ReadOnly().WithEntries(sandbox.PathEntry(s.ws+"/bin", sandbox.LevelWrite))
		}, []string{"./bin/link-go"}, false},
		{"what an argument names", func(site) sandbox.Policy { return sandbox.WorkspaceWrite(".") }, []string{"cat", "go.sh"}, false},
		{"its directory", func(s site) sandbox.Policy {
			return sandbox.ReadOnly().WithEntries(sandbox.PathEntry(s.dir, sandbox.LevelWrite))
		}, []string{"./go.sh"}, false},
		{"itself, read-only", func(s site) sandbox.Policy {
			return sandbox.WorkspaceWrite(".").WithEntries(sandbox.PathEntry(s.ws+"/go.sh",
				sandbox.LevelRead))
		}, []string{"./go.sh"}, true},
		{"another place", func(s site) sandbox.Policy {
			return sandbox.ReadOnly().WithEntries(sandbox.PathEntry(s.out, sandbox.LevelWrite))
		}, []string{"./go.sh"}, true},
		{"nothing", func(site) sandbox.Policy { return sandbox.ReadOnly() }, []string{"./go.sh"}, true},
		{"what it does not run", func(site) sandbox.Policy { return sandbox.WorkspaceWrite(".") }, []string{"true"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t)
			s.write(t, "ws/go.sh", "#!/bin/sh\necho ran >>"+s.dir+"/count\n")
			s.link(t, "go.sh", "ws/link-go")
			s.link(t, "../go.sh", "ws/bin/link-go")
			writer := s.begin(t, test.policy(s), sh("echo there; read x"))
			asked := 0
			r := newRunner(t, sandbox.WorkspaceWrite("."))
			r.Approver = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
				asked++
				return approval.Decision{Answer: approval.Approved}, nil
			})
			_, err := r.Run(t.Context(), s.outside(test.args...))
			var by *approval.WriterError
			switch {
			case test.free && (err != nil || asked != 1):
				t.Errorf("%d questions, %v", asked, err)
			case !test.free && (!errors.As(err, &by) || !errors.Is(err, sallyport.ErrRefused) || asked > 0 ||
				by.Run != writer.Info().Run || by.PID != os.Getpid()):
				t.Errorf("%d questions, %v", asked, err)
			}
			if text, err := os.ReadFile(s.dir + "/count"); err == nil && !test.free {
				t.Errorf("it ran: %s", text)
			}
			if err := writer.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Run(t.Context(), s.outside(test.args...)); err != nil {
				t.Errorf("when the other command has ended: %v", err)
			}
		})
	}
}

// TestWriterWhileOpen: a command that begins while the question is open gets the files read-only, and
// does not hinder the start.
func TestWriterWhileOpen(t *testing.T) {
	testenv.RunAsOrdinary(t)
	s := newSite(t)
	s.write(t, "ws/go.sh", "#!/bin/sh\necho good\n")
	r := newRunner(t, sandbox.WorkspaceWrite("."))
	r.Approver = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
		s.begin(t, sandbox.WorkspaceWrite("."),
			sh("echo evil >go.sh; mv bin/tool go.sh; rm -f go.sh; echo there; read x"))
		return approval.Decision{Answer: approval.Approved}, nil
	})
	if res, err := r.Run(t.Context(), s.outside("./go.sh")); err != nil ||
		string(res.Stdout.Bytes()) != "good\n" {
		t.Errorf("%+v, %v", res, err)
	}
}

// attempts change go.sh in the ways that a command has.
const attempts = `
try() { "$@" 2>/dev/null && echo "done: $*" >>result; }
try sh -c 'echo evil >go.sh'
try sh -c 'echo evil >>go.sh'
try truncate -s 0 go.sh
try rm -f go.sh
try mv go.sh old
try mv other.sh go.sh
try ln -f other.sh go.sh
try ln go.sh hard
try sh -c 'cat hard'
try chmod 600 go.sh
try python3 -c 'import mmap; f=open("go.sh","r+b"); m=mmap.mmap(f.fileno(),0); m[0:4]=b"evil"'
echo fine >other.txt
echo there; read x`

// TestFixedWhileItRuns: while an approved command runs outside, what starts in a sandbox can change
// everything but its files, and when it has ended these as well.
func TestFixedWhileItRuns(t *testing.T) {
	testenv.RunAsOrdinary(t)
	s := newSite(t)
	const script = "#!/bin/sh\necho \"$0 $(dirname \"$0\") $(cat \"$(dirname \"$0\")/other.sh\" | wc -l)\"; read x\necho good\n"
	s.write(t, "ws/go.sh", script)
	r := approving(t, s.ws+"/go.sh", sandbox.WorkspaceWrite("."))
	c := s.outside("./go.sh")
	c.OpenStdin = true
	one, err := r.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	reply(t, one, "./go.sh . 1\n") // what it is and what lies beside it is as ever
	writer := s.begin(t, sandbox.WorkspaceWrite("."), sh(attempts))
	if text, err := os.ReadFile(s.ws + "/result"); err == nil {
		t.Errorf("%s", text)
	}
	if text, err := os.ReadFile(s.ws + "/go.sh"); err != nil || string(text) != script {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Lstat(s.ws + "/other.txt"); err != nil {
		t.Error(err)
	}
	// It is closed to that one for as long as it lives, which therefore hinders no second start.
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	res, err := r.Run(t.Context(), s.outside("./go.sh"))
	if err != nil || !strings.Contains(string(res.Stdout.Bytes()), "good") {
		t.Errorf("%+v, %v", res, err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if res := run(t, newRunner(t, sandbox.WorkspaceWrite(".")),
		&sallyport.Cmd{Dir: s.ws, Script: "echo x >go.sh && rm go.sh", Shell: "sh"}); res.ExitCode != 0 {
		t.Errorf("afterwards: %+v", res)
	}
}

// TestFlipped: commands in sandboxes exchange a script again and again while approved starts of it come and
// go. What was not approved never runs outside.
func TestFlipped(t *testing.T) {
	testenv.RunAsOrdinary(t)
	s := newSite(t)
	s.write(t, "ws/go.sh", "#!/bin/sh\necho good\n")
	s.write(t, "ws/evil.sh", fmt.Sprintf("#!/bin/sh\necho evil >%s/ran\n", s.dir))
	r := approving(t, s.ws+"/go.sh", sandbox.WorkspaceWrite("."))
	flip := &sallyport.Runner{Policy: sandbox.WorkspaceWrite(".")}
	defer flip.Close()
	const rounds = 12
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		for range rounds {
			// Each leaves the good script, so that the approver has something to approve.
			const script = `i=0; cp go.sh good; while [ $i -lt 10 ]; do cp evil.sh e && mv -f e go.sh; cat good >go.sh; i=$((i+1)); done; cp good g && mv -f g go.sh`
			_, _ = flip.Run(t.Context(), &sallyport.Cmd{Dir: s.ws, Script: script, Shell: "sh"})
		}
	})
	good := 0
	for range 4 * rounds {
		if res, err := r.Run(t.Context(), s.outside("./go.sh")); err == nil &&
			string(res.Stdout.Bytes()) == "good\n" {
			good++
		}
		if text, err := os.ReadFile(filepath.Join(s.dir, "ran")); err == nil {
			t.Fatalf("what ran was not approved: %s", text)
		}
	}
	t.Logf("%d starts", good)
}

// TestPlanted: where a name is looked for before what it leads to now, no command in a sandbox may be
// able to make a file, and what begins while an approved command runs cannot.
func TestPlanted(t *testing.T) {
	testenv.RunAsOrdinary(t)
	byPath := map[string]bool{"program": true, "of a script": true, "nowhere": true}
	for name, args := range map[string][]string{
		"program": {"deployer"}, "of a script": {"sh", "-c", "read x; deployer; true"}, "script": {"sh", "-c", "read x; . bin/none; true"},
		"behind another": {"sh", "-c", "read x; ./bin/none || true"}, "nowhere": {"sh", "-c", "read x; no-such || true"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			if err := os.Mkdir(s.dir+"/own", 0o700); err != nil {
				t.Fatal(err)
			}
			s.write(t, "own/deployer", "#!/bin/sh\nread x; echo good\n")
			s.write(t, "ws/bin/other", "#!/bin/sh\n")
			asked := 0
			yes := approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
				asked++
				return approval.Decision{Answer: approval.Approved}, nil
			})
			c := s.outside(args...)
			c.Env = append(os.Environ(), fmt.Sprintf("PATH=%s/bin:%s/own:%s", s.ws, s.dir, os.Getenv("PATH")))
			for _, policy := range []sandbox.Policy{sandbox.WorkspaceWrite("."), sandbox.ReadOnly()} {
				free := policy.Name() == sandbox.ReadOnly().Name()
				writer := s.begin(t, policy, sh("echo there; read x"))
				asked = 0
				r := newRunner(t, sandbox.WorkspaceWrite("."))
				r.Approver = yes
				_, err := r.Run(t.Context(), c)
				var by *approval.WriterError
				free = free || byPath[name] // then the place in PATH does not count
				if isBy := errors.As(err, &by); isBy == free || free && (err != nil || asked != 1) ||
					!free && asked > 0 {
					t.Errorf("beside %s: %d questions, %v", policy.Name(), asked, err)
				}
				if err := writer.Close(); err != nil {
					t.Fatal(err)
				}
			}
			r := newRunner(t, sandbox.WorkspaceWrite("."))
			r.Approver, c.OpenStdin = yes, true
			one, err := r.Start(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			s.begin(t, sandbox.WorkspaceWrite("."), sh(`for f in deployer none no-such; do echo evil >bin/$f && echo made $f >>result; done
				mv bin old && echo moved >>result; mkdir other && echo there; read x`))
			if text, err := os.ReadFile(s.ws + "/result"); err == nil {
				t.Errorf("%s", text)
			}
			if err := one.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestPlantedBeside: an active virtual environment of the workspace does not keep programs behind it from
// starting outside beside a command that could write there, and what that one plants is not run.
func TestPlantedBeside(t *testing.T) {
	testenv.RunAsOrdinary(t)
	s := newSite(t)
	if err := os.Mkdir(s.dir+"/own", 0o700); err != nil {
		t.Fatal(err)
	}
	s.write(t, "own/deployer", "#!/bin/sh\necho good:$PATH\n")
	s.write(t, "ws/bin/python", "#!/bin/sh\n")
	path := fmt.Sprintf("%s/bin::%s/own:%s", s.ws, s.dir, os.Getenv("PATH"))
	writer := s.begin(t, sandbox.WorkspaceWrite("."), sh(`printf '#!/bin/sh\necho evil\n' >evil; chmod +x evil; echo there
		while ! [ -e calm ]; do ln -f evil bin/deployer; ln -f evil deployer; rm bin/deployer deployer; done
		echo stopped; read line`))
	forms := [][]string{{"deployer"}, {"sh", "-c", "deployer; true"}}
	run := func(times int) (started int) {
		for i := range times {
			args := forms[i%len(forms)]
			r := newRunner(t, sandbox.WorkspaceWrite("."))
			r.Approver = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
				return approval.Decision{Answer: approval.Approved}, nil
			})
			c := s.outside(args...)
			c.Env = append(os.Environ(), "PATH="+path)
			res, err := r.Run(t.Context(), c)
			switch {
			case err == nil && res.Stdout.String() == fmt.Sprintf("good:%s/own:%s\n", s.dir,
				os.Getenv("PATH")):
				started++
			case err == nil || !errors.Is(err, sallyport.ErrRefused):
				t.Fatalf("%q: %v, %v", args, res, err)
			}
		}
		return started
	}
	run(80) // whether one starts is a matter of luck
	s.write(t, "ws/calm", "")
	reply(t, writer, "stopped")
	if n := run(len(forms)); n != len(forms) {
		t.Errorf("%d of %d started beside a writer that has stopped", n, len(forms))
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFurtherNames: a file that an approved command runs is not changed by another of its names.
func TestFurtherNames(t *testing.T) {
	testenv.RunAsOrdinary(t)
	s := newSite(t)
	const script = "#!/bin/sh\nread x\necho good\n"
	s.write(t, "ws/go.sh", script)
	if err := os.Link(s.ws+"/go.sh", s.ws+"/hard"); err != nil {
		t.Fatal(err)
	}
	r := approving(t, s.ws+"/go.sh", sandbox.WorkspaceWrite("."))
	c := s.outside("./go.sh")
	c.OpenStdin = true
	one, err := r.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	s.begin(t, sandbox.WorkspaceWrite("."),
		sh("echo evil >>hard; truncate -s 0 hard; echo evil >own; echo there; read x"))
	if text, err := os.ReadFile(s.ws + "/go.sh"); err != nil || string(text) != script {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Lstat(s.ws + "/own"); err != nil {
		t.Error(err)
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
}
