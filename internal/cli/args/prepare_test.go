// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// says is a client that answers.
var says = approval.Func(func(_ context.Context, r *approval.Request) (approval.Decision, error) {
	return r.Decide(approval.Approved), nil
})

// prepared returns what runs for words in a new directory, with settings.
func prepared(t *testing.T, settings string, person approval.Approver,
	words ...string) (*runs.Prepared, error) {
	t.Helper()
	home := t.TempDir()
	if settings != "" {
		dir := filepath.Join(home, ".config", "sallyport")
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "config.toml"),
			[]byte(settings), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	p, err := Prepare("", nil, nil, nil)(t.Context(), &runs.Request{Args: words, Dir: t.TempDir(),
		Environ: []string{"HOME=" + home, "PATH=/usr/bin:/bin"}, Approver: person})
	if err == nil {
		t.Cleanup(func() {
			if err := p.Runner.Close(); err != nil {
				t.Error(err)
			}
			p.Close()
		})
	}
	return p, err
}

// TestPrepareErrors: what a run of a client cannot have is refused by name, and so is what run
// refuses.
func TestPrepareErrors(t *testing.T) {
	for _, test := range []struct {
		settings, words, want string
	}{
		{"", "--json x", "--json is not supported in a run of a client; run/result has the object"},
		{"", "--jsonl x", "--jsonl is not supported"}, {"", "--jsonl-drop x", "--jsonl-drop is not supported"},
		{"", "-i x", "--interactive is not supported in a run of a client; set openStdin"},
		{"", "-t x", "--tty is not supported in a run of a client; set tty"}, {"", "-t=false x", "--tty is not supported"},
		{"", "--fd 5 x", "--fd is not supported"}, {"", "-q x", "--quiet is not supported"}, {"", "--remote-tls-ca f x", "--remote-tls-ca is not supported in a run of a client; connect to that server"},
		{"", "--idle 5 x", "--idle is not supported"}, {"", "--detach x", "--detach is not supported"}, {"", "--help", "--help is not supported"},
		{"", "--record=/p x", "--record=FILE is not supported in a run of a client; leave FILE out"}, {"", "--record x", "--record records a terminal"},
		{"", "--unknown x", "unknown flag"}, {"", "--", "command args are empty"}, {"", "-C /nonexistent/dir x", "/nonexistent/dir"},
		{"x = 1\n", "x", "config.toml"},
	} {
		t.Run(test.settings+test.words, func(t *testing.T) {
			if _, err := prepared(t, test.settings, nil, strings.Fields(test.words)...); err == nil ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}

// TestWords: a server gets the flags that were given and are not about this machine, as data that it reads
// as they were read here.
func TestWords(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"x", "-- x"}, {"--detach -- ls --detach", "-- ls --detach"}, {"-it ls -t", "-- ls -t"},
		{"-iqtv ls", "--verbose -- ls"}, {"-t=false -q ls", "-- ls"}, {"-s read-only ls", "--sandbox=read-only -- ls"},
		{"-qsread-only --detach ls", "--sandbox=read-only -- ls"}, {"--cd --detach ls", "--cd=--detach -- ls"},
		{"--remote u --remote-tls-ca ca ls", "-- ls"}, {"--remote=u ls", "-- ls"}, {"-sread-only --env-inherit=none ls", "--sandbox=read-only --env-inherit=none -- ls"},
		{"--prefix-rule --detach a -- ls", "--prefix-rule=--detach --prefix-rule=a -- ls"},
		{"--fd 5 --json --rw a --rw b -e A -e B=-t -- --json", "--rw=a --rw=b --env=A --env=B=-t -- --json"},
		{"-c ls --no-config", "--command=ls --no-config --"},
	} {
		t.Run(test.args, func(t *testing.T) {
			var here, there Options
			words, err := syntax.ParseFlags(here.Flags(), strings.Fields(test.args))
			if err != nil {
				t.Fatal(err)
			}
			sent := here.Words(words)
			if got := strings.Join(sent, " "); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
			again, err := syntax.ParseFlags(there.Flags(), sent)
			if err != nil || !slices.Equal(again, words) || there.callers() != nil ||
				!slices.Equal(there.Words(again), sent) {
				t.Errorf("%v: %q, %v", err, there.Words(again), there.callers())
			}
		})
	}
}

// TestPrepare: flags and settings count, and what nobody can answer is not asked.
func TestPrepare(t *testing.T) {
	p, err := prepared(t, "sandbox = \"read-only\"\ntty = true\nquiet = true\n", says, "--timeout", "5", "--",
		"sh", "-c", "true")
	if err != nil {
		t.Fatal(err)
	}
	if p.Cmd.Timeout.Seconds() != 5 || !slices.Equal(p.Cmd.Args, []string{"sh", "-c", "true"}) ||
		p.Runner.Policy.Name() != sandbox.ReadOnly().Name() || p.Runner.Approval != approval.OnRequest {
		t.Errorf("%+v, %s, %s", p.Cmd, p.Runner.Policy.Name(), p.Runner.Approval)
	}
	if d, err := approval.Ask(t.Context(), p.Runner.Approver,
		&approval.Request{ID: "1", Available: []approval.Answer{approval.Approved}}); err != nil ||
		d.Answer != approval.Approved {
		t.Errorf("%+v, %v", d, err)
	}
	res := p.Refused(sallyport.ErrRefused)
	if res.ExitCode != 123 || res.End != sallyport.EndRefused || res.Error == "" {
		t.Errorf("%+v", res)
	}
	if p, err = prepared(t, "", nil, "true"); err != nil {
		t.Fatal(err)
	}
	if p.Runner.Approval != approval.Never { // as without a terminal
		t.Errorf("%s", p.Runner.Approval)
	}
	if _, err := approval.Ask(t.Context(), p.Runner.Approver,
		&approval.Request{ID: "1", Available: []approval.Answer{approval.Approved}}); !errors.Is(err,
		approval.ErrPass) {
		t.Error(err)
	}
}

// TestPrepareUpstream: the server's own variables choose the proxy of a client's run, and not the client's.
func TestPrepareUpstream(t *testing.T) {
	for _, test := range []struct{ ours, theirs, want string }{
		{"A=b", "HTTPS_PROXY=http://169.254.169.254:80", ""},
		{"HTTPS_PROXY=http://proxy:3128", "HTTPS_PROXY=http://169.254.169.254:80", "http://proxy:3128"},
		{"", "HTTPS_PROXY=http://169.254.169.254:80", ""},
	} {
		var own []string
		if test.ours != "" {
			own = append(own, test.ours)
		}
		p, err := Prepare("", own, nil, nil)(t.Context(), &runs.Request{
			Args: []string{"--allow-host", "example.com", "x"}, Dir: t.TempDir(),
			Environ: []string{"HOME=" + t.TempDir(), "PATH=/usr/bin:/bin", test.theirs},
		})
		if err != nil {
			t.Fatal(err)
		}
		host, err := network.ParseHost("example.com")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if u := p.Runner.Network.Upstream(network.Request{Protocol: network.HTTPSConnect, Host: host,
			Port: 443}); u != nil {
			got = u.String()
		}
		if got != test.want {
			t.Errorf("ours %q, theirs %q: %q, want %q", test.ours, test.theirs, got, test.want)
		}
		if err := p.Runner.Close(); err != nil {
			t.Error(err)
		}
		p.Close()
	}
}

// TestConfigure: what files and flags say reaches the command, each element once, and a zero is not the
// default.
func TestConfigure(t *testing.T) {
	w := newWorkbench(t, `max_output = 0
protect_hard_links = true
ownership = "error"
caches = false
observer = false
shell = "sh"
read = ["/usr", "/nonexistent/dir"]
deny = ["a"]
environment = { exclude = ["A*"], inherit = "core", set = { X = "1", Y = "2" } }
limits = { kill_after = 0, memory = "1GiB", cpus = 1.5, pids = 7, disk = "2GiB", output = "3MB", timeout = 5 }
`, "")
	o, _, err := w.options("--ro", "/etc", "--deny", "b", "-e", "X", "-e", "Z=3", "--pids", "9", "--level",
		"native", "--publish", "80,81:82")
	if err != nil {
		t.Fatal(err)
	}
	cmd, err := o.Command(&w.env, w.dir, []string{"true"})
	if err != nil {
		t.Fatal(err)
	}
	want := &sallyport.Cmd{
		Args: []string{"true"}, Dir: w.dir, Timeout: 5 * time.Second, Grace: -1,
		Retention:        sallyport.Retention{Bytes: -1},
		ProtectHardLinks: true, OwnershipErrors: true, NoCaches: true, NoObserver: true, Level: "native",
		Resources: executor.Resources{Memory: 1 << 30, CPUs: 1.5, PIDs: 9, Disk: 2 << 30, Output: 3e6},
		Publish:   []network.Publish{{Port: 80, HostPort: 80}, {Port: 81, HostPort: 82}},
		Files:     map[int]*os.File{},
		EnvPolicy: sallyport.EnvPolicy{
			Base: w.env.Environ, Inherit: sallyport.InheritCore, Exclude: []string{"A*"},
			Named: []string{"X"}, Set: map[string]string{"Y": "2", "Z": "3"},
		},
	}
	if diff := cmp.Diff(want, cmd, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.Equal(o.Readable, []string{"/usr", "/etc"}) || !slices.Equal(o.Denied, []string{"a", "b"}) {
		t.Errorf("%q, %q", o.Readable, o.Denied)
	}
}
