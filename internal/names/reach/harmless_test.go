// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestHarmlessCorpus reads testdata/denials.txt: denials as the programs gave them, and whether
// they are known to be harmless.
func TestHarmlessCorpus(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "denials.txt"))
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) < 5 {
			t.Fatalf("%q has too few words", line)
		}
		decision, exit, program, name, args := words[0], words[1], words[2], words[3], words[4:]
		count[decision]++
		t.Run(strings.Join(words[1:], " "), func(t *testing.T) {
			r := runOf(sandbox.WorkspaceWrite("/w"))
			r.Args = args
			ds := writes(name)
			if addr, ok := strings.CutPrefix(name, "connect:"); ok {
				ds[0].Access = sandbox.Access{Op: sandbox.Connect, Addr: addr}
			} else if call, ok := strings.CutPrefix(name, "call:"); ok {
				ds[0].Access = sandbox.Access{Op: sandbox.Syscall, Call: call}
			}
			ds[0].Program = "/usr/bin/" + program
			code := 0
			if exit == "failed" {
				code = 1
			}
			r.Weigh(ds, code)
			if got := ds[0].Harmless != ""; got != (decision == "harmless") {
				t.Errorf("harmless: %q, want %s", ds[0].Harmless, decision)
			}
		})
	}
	if count["harmless"] < 30 || count["matters"] < 25 || len(count) != 2 {
		t.Errorf("the corpus has %v", count)
	}
}

// TestHarmlessNeedsEvidence: a guess and other operations are never harmless, and other homes
// are another user's.
func TestHarmlessNeedsEvidence(t *testing.T) {
	r := runOf(sandbox.WorkspaceWrite("/w"))
	seen := sandbox.Denial{Access: sandbox.Access{Op: sandbox.Write, Path: "/h/.bash_history"},
		Program: "/bin/bash", Source: sandbox.Notified}
	for name, change := range map[string]func(*sandbox.Denial){
		"a guess":       func(d *sandbox.Denial) { d.Source = sandbox.Guessed },
		"reading":       func(d *sandbox.Denial) { d.Op = sandbox.Read },
		"another home":  func(d *sandbox.Denial) { d.Path = "/home/b/.bash_history" },
		"a longer name": func(d *sandbox.Denial) { d.Path = "/h/.bash_history/x" },
		"no program":    func(d *sandbox.Denial) { d.Program = "" },
	} {
		t.Run(name, func(t *testing.T) {
			ds := []sandbox.Denial{seen, seen}
			change(&ds[1])
			r.Weigh(ds, 0)
			if ds[0].Harmless == "" || ds[1].Harmless != "" {
				t.Errorf("%q and %q", ds[0].Harmless, ds[1].Harmless)
			}
		})
	}
}

// TestOrder: the likeliest cause comes first.
func TestOrder(t *testing.T) {
	begin := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	denial := func(second int, program, name, errno string) sandbox.Denial {
		return sandbox.Denial{
			Access: sandbox.Access{Op: sandbox.Write, Path: name}, Errno: errno, Source: sandbox.Notified,
			Program: "/usr/bin/" + program, Time: begin.Add(time.Duration(second) * time.Second),
		}
	}
	guessed := denial(9, "make", "/etc/guess", "EROFS")
	guessed.Source = sandbox.Guessed
	script := denial(1, "node", "/etc/n", "EROFS")
	script.Name = "make all"
	lookup := denial(1, "curl", "", "ENETUNREACH")
	lookup.Op, lookup.Addr = sandbox.Connect, "10.0.0.1:53"
	refused := denial(1, "curl", "", "")
	refused.Op, refused.Addr, refused.Source, refused.Program = sandbox.Connect, "a.example:443",
		sandbox.Proxied, ""
	call := func(second, pid int, name, errno, grant string) sandbox.Denial {
		d := denial(second, "ping", "", errno)
		d.Op, d.Path, d.Call, d.Grant, d.PID = sandbox.Syscall, name, name, grant, pid
		return d
	}
	ping, raw := call(1, 7, "dgram", "EPROTONOSUPPORT", "--allow icmp"), call(2, 7, "raw", "EPERM", "")
	for _, test := range []struct {
		name string
		exit int
		said string
		ds   []sandbox.Denial
		want string // paths
	}{
		{"the last one", 1, "", []sandbox.Denial{denial(1, "cc", "/etc/a", "EROFS"), denial(2, "cc", "/etc/b", "EROFS")}, "/etc/b /etc/a"},
		{"the program itself", 1, "", []sandbox.Denial{denial(1, "make", "/etc/a", "EROFS"), denial(2, "cc", "/etc/b", "EROFS")}, "/etc/a /etc/b"},
		{"the program by the name it has chosen", 1, "", []sandbox.Denial{script, denial(2, "cc", "/etc/b", "EROFS")}, "/etc/n /etc/b"},
		{"the error in the output", 1, "x: Permission denied\n", []sandbox.Denial{denial(1, "cc", "/etc/a", "EACCES"), denial(2, "make", "/etc/b", "EROFS")}, "/etc/a /etc/b"},
		{"the name beside the error", 1, "cp: /etc/a: Read-only file system\n", []sandbox.Denial{denial(1, "cc", "/etc/a", "EROFS"), denial(2, "make", "/etc/b", "EROFS")}, "/etc/a /etc/b"},
		{"the name elsewhere", 1, "/etc/a is old\nRead-only file system\n", []sandbox.Denial{denial(1, "cc", "/etc/a", "EROFS"), denial(2, "make", "/etc/b", "EROFS")}, "/etc/b /etc/a"},
		{"a lookup", 6, "curl: (6) Could not resolve host: example.org\n", []sandbox.Denial{lookup, denial(2, "make", "/etc/b", "EROFS")}, " /etc/b"},
		{"a host", 22, "curl: (22) The requested URL returned error: 403\n", []sandbox.Denial{denial(2, "make", "/etc/b", "EROFS"), refused}, " /etc/b"},
		{"a host by its name", 1, "read-only file system\nhttps://a.example/x: 403 Forbidden\n", []sandbox.Denial{denial(2, "make", "/etc/b", "EROFS"), refused}, " /etc/b"},
		{"a host, and nothing about it", 1, "read-only file system\n", []sandbox.Denial{refused, denial(2, "make", "/etc/b", "EROFS")}, "/etc/b "},
		{"as Go prints it", 1, "open /etc/a: read-only file system\n", []sandbox.Denial{denial(1, "cc", "/etc/a", "EROFS"), denial(2, "make", "/etc/b", "EPERM")}, "/etc/a /etc/b"},
		{"as Node prints it", 1, "Error: EROFS: open '/etc/a'\n", []sandbox.Denial{denial(1, "cc", "/etc/a", "EROFS"), denial(2, "make", "/etc/b", "EPERM")}, "/etc/a /etc/b"},
		{"what was seen before a guess", 1, "guess: read-only file system", []sandbox.Denial{guessed, denial(1, "cc", "/etc/a", "EPERM")}, "/etc/a /etc/guess"},
		{"harmless ones at the end", 1, "/h/.bash_history: read-only file system", []sandbox.Denial{denial(9, "bash", "/h/.bash_history", "EROFS"), denial(1, "cc", "/etc/a", "EPERM")}, "/etc/a /h/.bash_history"},
		{"a call that was made instead of one that a flag opens", 2, "ping: socket: Operation not permitted\n", []sandbox.Denial{ping, raw}, "dgram raw"},
		{"a call of another process", 2, "ping: socket: Operation not permitted\n", []sandbox.Denial{ping, call(2, 8, "raw", "EPERM", "")}, "raw dgram"},
		{"after success as they came", 0, "", []sandbox.Denial{denial(1, "cc", "/etc/a", "EROFS"), denial(2, "make", "/etc/b", "EROFS")}, "/etc/a /etc/b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := runOf(sandbox.WorkspaceWrite("/w"))
			r.Args = []string{"/usr/bin/make", "all"}
			ds := slices.Clone(test.ds)
			ds = r.Weigh(ds, test.exit, nil, []byte(test.said))
			var got []string
			for _, d := range ds {
				got = append(got, d.Path)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLasting: what looks as if it were made for one run is cut off.
func TestLasting(t *testing.T) {
	for _, test := range []struct{ name, want string }{
		{"/srv/data/x", "/srv/data/x"},
		{"/srv/data/2026-08-01/x", "/srv/data"},
		{"/srv/logs/app-20260801.log", "/srv/logs"},
		{"/srv/logs/2026-08-01T12_00_00_000Z-debug-0.log", "/srv/logs"},
		{"/srv/run/app.31415.lock", "/srv/run"},
		{"/srv/run/app-123", "/srv/run"},
		{"/srv/c/go-build314827439/b001", "/srv/c"},
		{"/srv/c/tmp.Xa8sKd2f1Q", "/srv/c"},
		{"/srv/c/tmpab3x_9k1/y", "/srv/c"},
		{"/srv/c/.tmp4Zq/y", "/srv/c"},
		{"/srv/c/config.Ab3xY9", "/srv/c"},
		{"/srv/c/6fa459ea-ee8a-3ca4-894e-db77e160355e/z", "/srv/c"},
		{"/srv/c/d41d8cd98f00b204e9800998ecf8427e", "/srv/c"},
		{"/srv/c/1a2b3c4d", "/srv/c"},
		// names that stay
		{"/srv/c/sha256sum", "/srv/c/sha256sum"},
		{"/srv/c/x86_64-linux-gnu", "/srv/c/x86_64-linux-gnu"},
		{"/srv/c/python3.11/site-packages", "/srv/c/python3.11/site-packages"},
		{"/srv/c/MyClass2Impl", "/srv/c/MyClass2Impl"},
		{"/srv/c/libfoo.so.1.2.3", "/srv/c/libfoo.so.1.2.3"},
		{"/srv/c/template", "/srv/c/template"},
		{"/srv/c/tmpfiles.d", "/srv/c/tmpfiles.d"},
		{"/srv/c/v18", "/srv/c/v18"},
		{"/srv/c/base64url", "/srv/c/base64url"},
		{"/srv/c/decade", "/srv/c/decade"},
		// what the command's own directory lies in is there in the next run too
		{"/jobs/12345/w/x", "/jobs/12345/w/x"},
		{"/jobs/12345/out/x", "/jobs/12345/out/x"},
		{"/jobs/12345/out/67890/x", "/jobs/12345/out"},
		{"/", "/"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &DeniedRun{Dir: "/jobs/12345/w"}
			if got := r.lasting(test.name); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// TestWider: what no narrow grant allows gets the wider flags, with a warning, and what the
// policy denies by an entry gets none.
func TestWider(t *testing.T) {
	ws := sandbox.WorkspaceWrite("/w")
	there := []string{"/etc/hosts", "/srv/data/x", "/h/.bashrc", "/h/.cache/x", "/h/go/pkg/mod",
		"/w/.git/hooks/post", "/h/.ssh/config", "/srv/data/2026-08-01/x"}
	connect := func(network, addr string) []sandbox.Denial {
		return []sandbox.Denial{{Access: sandbox.Access{Op: sandbox.Connect, Net: network, Addr: addr},
			Source: sandbox.Notified}}
	}
	noGrant := writes("/etc/x")
	noGrant[0].NoGrant = true
	guess := writes("/etc/x")
	guess[0].Source = sandbox.Guessed
	for _, test := range []struct {
		name        string
		policy      sandbox.Policy
		ds          []sandbox.Denial
		grant, want string
		warned      bool
	}{
		{"narrow enough", ws, writes("/srv/data/x"), "--rw /srv/data/x", "", false},
		{"a date in the path", ws, writes("/srv/data/2026-08-01/x"), "--rw /srv/data", "", false},
		{"a new file of the system", ws, writes("/etc/new"), "", "--rw /etc", true},
		{"a new top directory", ws, writes("/data"), "", "-s full-access", true},
		{"a setting of the kernel", ws, writes("/proc/sys/vm/swappiness"), "", "-s full-access", true},
		{"a start-up file", ws, writes("/h/.bashrc"), "", "--rw /h/.bashrc", true},
		{"a new start-up file", ws, writes("/h/.zshrc"), "", "--rw /h --grant home-config", true},
		{"a whole cache", ws, writes("/h/.cache"), "", "--rw /h/.cache", true},
		{"a whole module cache", ws.WithEntries(sandbox.PathEntry("/h/go/pkg/mod", sandbox.LevelRead)), writes("/h/go/pkg/mod"), "", "--rw /h/go/pkg/mod", true},
		{"a new key", ws, writes("/h/.ssh/known_hosts"), "", "--rw /h/.ssh", true},
		{"a hook", ws, writes("/w/.git/hooks/post"), "", "--rw /w/.git/hooks/post", true},
		{"no network", ws, connect("tcp", "192.0.2.1:443"), "", "--net host", true},
		{"a name server of this machine", ws, connect("udp", "127.0.0.53:53"), "", "--net host", true},
		{"a unix socket", ws, connect("unix", "/run/docker.sock"), "", "--allow unix", true},
		{"an abstract socket", ws, connect("unix", "@x"), "", "--allow unix", true},
		{"a process outside", ws, []sandbox.Denial{{Access: sandbox.Access{Op: sandbox.Signal}, Source: sandbox.Notified}}, "", "-s full-access", true},
		{"a deny entry", ws.WithEntries(sandbox.PathEntry("/w/no", sandbox.LevelDeny)), writes("/w/no/x"), "", "", false},
		{"a deny glob", ws.WithEntries(sandbox.GlobEntry("/srv/**/x")), writes("/srv/data/x"), "", "", false},
		{"what fails outside too", ws, noGrant, "", "", false},
		{"a guess", ws, guess, "", "", false},
		{"a network that is open", ws.WithNetwork(sandbox.NetworkHost), connect("tcp", "192.0.2.1:443"), "", "", false},
		{"full access", sandbox.FullAccess(), connect("tcp", "192.0.2.1:443"), "", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, ds := runOf(test.policy, there...), slices.Clone(test.ds)
			r.Complete(ds)
			if ds[0].Grant != test.grant || ds[0].Wider != test.want {
				t.Errorf("%q and %q, want %q and %q", ds[0].Grant, ds[0].Wider, test.grant, test.want)
			}
			if got := GrantWarning(ds[0].Wider, "/h"); (got != "") != test.warned {
				t.Errorf("the warning is %q", got)
			}
			if got := GrantWarning(ds[0].Grant, "/h"); got != "" {
				t.Errorf("%q is a grant with a warning: %s", ds[0].Grant, got)
			}
		})
	}
}

// TestCacheOfFreshProject: the directory that a tool makes on the way to its cache has the grant of the
// tool, also where the workspace has no file of it yet; not where the command is the tool, which had it.
func TestCacheOfFreshProject(t *testing.T) {
	for _, test := range []struct{ tool, name, want string }{
		{"sh", "/h/.local/share/pnpm/store/v3", "--grant cache:pnpm"},
		{"make", "/h/.cache/pnpm", "--grant cache:pnpm"},
		{"pnpm", "/h/.local/share/pnpm/store/v3", ""},
		{"make", "/h/.cache/ccache/tmp", "--grant cache:ccache"},
		{"make", "/h/.cache", "--grant cache:ccache"},
		{"ccache", "/h/.cache", ""},
		{"other", "/h/.local", ""},
		{"pnpm", "/h/.pnpm", ""},
	} {
		r, ds := runOf(sandbox.WorkspaceWrite("/w")), writes(test.name)
		r.Args = []string{test.tool, "install"}
		r.Complete(ds)
		if ds[0].Grant != test.want {
			t.Errorf("%s %s: %q, want %q", test.tool, test.name, ds[0].Grant, test.want)
		}
	}
}
