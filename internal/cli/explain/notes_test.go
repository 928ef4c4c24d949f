// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// seenNames returns denials of one kind that were seen.
func seenNames(op sandbox.Op, rule, grant, errno string, targets ...string) []sandbox.Denial {
	var ds []sandbox.Denial
	for _, target := range targets {
		d := sandbox.Denial{Access: sandbox.Access{Op: op, Path: target}, Errno: errno,
			Source: sandbox.Notified, Rule: rule, Grant: grant}
		if op == sandbox.Connect || op == sandbox.Bind {
			d.Path, d.Addr = "", target
		}
		ds = append(ds, d)
	}
	return ds
}

// numbered returns paths in a directory.
func numbered(directory string, n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%s/%d", directory, i))
	}
	return names
}

// guessNote is a denial that was inferred.
func guessNote(grant string) []sandbox.Denial {
	return []sandbox.Denial{{Access: sandbox.Access{Op: sandbox.Write, Path: "/etc/x"}, Errno: "EROFS",
		Rule: "/=read", Grant: grant}}
}

func TestDenialNotes(t *testing.T) {
	const root = "/=read"
	hosts := seenNames(sandbox.Write, root, "--rw /etc/hosts", "EROFS", "/etc/hosts")
	often := seenNames(sandbox.Write, root, "--rw /etc/hosts", "EROFS", "/etc/hosts")
	often[0].Count = 3
	net := seenNames(sandbox.Connect, "network=none", "", "ENETUNREACH", "93.184.216.34:443",
		"93.184.216.34:80")
	for i := range net {
		net[i].Wider = "--net host"
	}
	host := append(seenNames(sandbox.Connect, "network=proxy", "--allow-host a.example:443", "",
		"a.example:443"),
		seenNames(sandbox.Connect, "deny b.example (--deny-host)", "", "", "b.example:443")...)
	for i := range host {
		host[i].Source = sandbox.Proxied
	}
	socket := seenNames(sandbox.Connect, "unix sockets", "", "EACCES", "/run/docker.sock")
	socket[0].Wider = "--allow unix"
	shell := seenNames(sandbox.Write, root, "", "EROFS", "/home/a/.bashrc")
	shell[0].Wider = "--rw /home/a/.bashrc"
	counters := seenNames(sandbox.Write, root, "", "EROFS", "/home/a/.config/go")
	counters[0].Harmless = "telemetry counters of Go"
	calls := seenNames(sandbox.Syscall, "system call filter", "--allow icmp", "EPROTONOSUPPORT", "", "")
	calls[0].Call, calls[1].Call = "socket(AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6)",
		"socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP)"
	for _, test := range []struct {
		name    string
		ds      []sandbox.Denial
		omitted int
		want    string // lines
	}{
		{"nothing", nil, 0, ""},
		{"a file", hosts, 0, "blocked: write /etc/hosts (EROFS); allow with --rw /etc/hosts"},
		{"several times", often, 0, "blocked: write /etc/hosts (EROFS, 3 times); allow with --rw /etc/hosts"},
		{"a cache", seenNames(sandbox.Write, root, "--grant cache:npm", "EROFS", numbered("/home/a/.npm/_cacache", 14)...), 0,
			"blocked: write ~/.npm/_cacache (14 files); allow with --grant cache:npm"},
		{"a directory and what is in it", seenNames(sandbox.Write, root, "--rw /srv/d", "EROFS", "/srv/d", "/srv/d/x"), 0,
			"blocked: write /srv/d (2 files); allow with --rw /srv/d"},
		{"two directories that one grant opens", seenNames(sandbox.Write, root, "--grant cache:go", "EROFS", "/home/a/.cache/x", "/home/a/go/y"), 0,
			"blocked: write ~ (2 files); allow with --grant cache:go"},
		{"addresses are one line", net, 0, "blocked: connect to 93.184.216.34:443 and 1 more; allow with --net host (opens the whole network)"},
		{"an address", net[:1], 0, "blocked: connect to 93.184.216.34:443 (ENETUNREACH); allow with --net host (opens the whole network)"},
		{"a host that the proxy refused", host[:1], 0, "blocked: connect to a.example:443; allow with --allow-host a.example:443"},
		{"one that an entry denies", host[1:], 0, "blocked: connect to b.example:443; denied by deny b.example (--deny-host)"},
		{"hosts and an address", append(host[:2:2], net[0]), 0, "blocked: connect to a.example:443; allow with --allow-host a.example:443\n" +
			"blocked: connect to b.example:443; denied by deny b.example (--deny-host)\n" +
			"blocked: connect to 93.184.216.34:443 (ENETUNREACH); allow with --net host (opens the whole network)"},
		{"denied", seenNames(sandbox.Read, "deny /w/**/.env", "", "EACCES", "/w/.env"), 0, "blocked: read /w/.env (EACCES); denied by deny /w/**/.env"},
		{"denied by its path", seenNames(sandbox.Exec, "/w/no=deny", "", "EACCES", "/w/no/x"), 0, "blocked: execute /w/no/x (EACCES); denied by /w/no=deny"},
		{"denied by a rule about the command", seenNames(sandbox.Write, "rule /r:3:1 (sandbox=read-only)", "", "EROFS", "/w/x"), 0, "blocked: write /w/x (EROFS); denied by rule /r:3:1 (sandbox=read-only)"},
		{"a socket", socket, 0, "blocked: connect to /run/docker.sock (EACCES); allow with --allow unix (opens all unix sockets)"},
		{"a start-up file", shell, 0, "blocked: write ~/.bashrc (EROFS); allow with --rw /home/a/.bashrc (warning: programs outside run it when they start)"},
		{"a process outside", seenNames(sandbox.Signal, "processes outside", "", "", ""), 0, "blocked: signal a process outside the sandbox"},
		{"no grant, one directory", seenNames(sandbox.Write, root, "", "EROFS", numbered("/etc", 3)...), 0, "blocked: write /etc (3 files)"},
		{"an opening", seenNames(sandbox.Write, "", "--allow userns", "EPERM", "/x"), 0, "blocked: write /x (EPERM); allow with --allow userns"},
		{"system calls that one flag opens", calls, 0, "blocked: make the system call socket(AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6) and 1 more; allow with --allow icmp"},
		{"harmless ones", append(counters, hosts...), 0, "blocked: write /etc/hosts (EROFS); allow with --rw /etc/hosts"},
		{"only harmless ones", counters, 7, ""},
		{"those that were only counted", hosts, 40, "blocked: write /etc/hosts (EROFS); allow with --rw /etc/hosts\n40 further denials"},
		{"a guess with a grant", guessNote("--rw /etc/x"), 0, "probably blocked: write /etc/x (EROFS); allow with --rw /etc/x"},
		{"a guess without a grant", guessNote(""), 0, ""},
		{"control characters", seenNames(sandbox.Write, root, "--rw '/a\x1b[2J/b'", "EROFS", "/a\x1b[2J/b"), 0,
			`blocked: write "/a\x1b[2J/b" (EROFS); allow with --rw $'/a\033[2J/b'`},
		{"a line end", seenNames(sandbox.Write, root, "--rw '/d/a\nb'", "", "/d/a\nb"), 0, `blocked: write "/d/a\nb"; allow with --rw $'/d/a\nb'`},
		{"an unknown grant", seenNames(sandbox.Write, root, "see \x1b[1mthere", "", "/a"), 0, `blocked: write /a; allow with "see \x1b[1mthere"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := strings.Join(Denials(test.ds, test.omitted, "/home/a"), "\n")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestShortlist: at most three lines, the likeliest cause first, then what needs the user.
func TestShortlist(t *testing.T) {
	for _, test := range []struct{ causes, needs, want string }{
		{"", "", ""},
		{"a", "", "a"},
		{"a b", "", "a b"},
		{"a b c", "", "a|b (1 more: run `sallyport why`)"},
		{"", "x y", "x y"},
		{"a b", "x", "a x b"},
		{"a b c", "x", "a|x|b (1 more: run `sallyport why`)"},
		{"a b", "x y", "a|x|y (1 more: run `sallyport why`)"},
		{"a", "x y z", "a|x|y (1 more: run `sallyport why`)"},
	} {
		t.Run(test.causes+"; "+test.needs, func(t *testing.T) {
			want := strings.FieldsFunc(test.want, func(r rune) bool { return r == '|' })
			if !strings.Contains(test.want, "|") {
				want = strings.Fields(test.want)
			}
			got := Shortlist(strings.Fields(test.causes), strings.Fields(test.needs))
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOfflineLine names what was tried and by what, as far as it is known.
func TestOfflineLine(t *testing.T) {
	for _, test := range []struct{ addr, name, program, want string }{
		{"10.0.0.1:53", "npm ci", "/usr/bin/node", "(DNS lookup, npm)"},
		{"[fe80::1]:53", "", "/usr/bin/curl", "(DNS lookup, curl)"},
		{"192.0.2.1:443", "curl", "/usr/bin/curl", "(192.0.2.1:443, curl)"},
		{"", "curl", "", "(curl)"},
		{"192.0.2.1:5353", "", "", "(192.0.2.1:5353)"},
		{"", "\x1b[2J", "", `("\x1b[2J")`},
		{"", "", "", ""},
	} {
		d := sandbox.Denial{Access: sandbox.Access{Op: sandbox.Connect, Addr: test.addr}, Name: test.name,
			Program: test.program}
		want := strings.Join(strings.Fields("network is off "+test.want), " ") + "; allow with --net host"
		if got := Offline(&d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTilde(t *testing.T) {
	for _, test := range []struct{ name, home, want string }{
		{"/home/a/x", "/home/a", "~/x"}, {"/home/a", "/home/a/", "~"}, {"/home/ab", "/home/a", "/home/ab"}, {"/x", "/", "/x"}, {"/x", "", "/x"},
	} {
		t.Run(test.name+" in "+test.home, func(t *testing.T) {
			if got := Tilde(test.name, test.home); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// FuzzShellWord lets a shell judge: it reads the word that was quoted, and nothing in
// the quoted one moves a terminal.
func FuzzShellWord(f *testing.F) {
	testenv.NeedProgram(f, "bash")
	for _, s := range []string{"", "plain", "a b", "it's", "$HOME `x` \\", "\x1b[2J", "\xff\xfe'", "a\nb",
		"é\u202e", "!x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.ContainsRune(s, 0) {
			return
		}
		word := ShellWord(s)
		if text.Word(word) != word {
			t.Errorf("%q is quoted as %q", s, word)
		}
		cmd := exec.CommandContext(t.Context(), "bash", "-c", "printf %s "+word)
		cmd.Env = []string{"LC_ALL=C"}
		if got, err := cmd.Output(); err != nil || string(got) != s {
			t.Errorf("%q is quoted as %q, which is read as %q, %v", s, word, got, err)
		}
	})
}

// TestNewLine: one line names what is new, as from the directory of the run, escaped and bounded.
func TestNewLine(t *testing.T) {
	at := func(names ...string) (out []executor.New) {
		for _, n := range names {
			out = append(out, executor.New{Path: n, Grant: "--grant git"})
		}
		return out
	}
	many := make([]string, 12)
	for i := range many {
		many[i] = fmt.Sprintf("/w/r%02d/.git", i)
	}
	files := at("/w/.vscode/e", "/w/sub/.git")
	files[0].More = 7
	granted := at("/w/a/.git", "/w/b/.git")
	granted[0].Granted = true
	for _, test := range []struct {
		list []executor.New
		dir  string
		want string
	}{
		{nil, "/w", ""},
		{at("/w/.vscode/tasks.json", "/w/sub/.git"), "/w", "new: .vscode/tasks.json, sub/.git"},
		{at("/h/x/.git", "/wx/.git"), "/w", "new: ~/x/.git, /wx/.git"},
		{at("/.envrc"), "/", "new: .envrc"},
		{at("/w/a\x1b[2J/.git"), "/w", `new: "a\x1b[2J/.git"`},
		{files, "/w", "new: .vscode/e and 7 more, sub/.git"},
		{granted, "/w", "new: b/.git"},
		{granted[:1], "/w", ""},
		{at(many...), "/w", "new: " + strings.Join(shortened(many[:10]), ", ") + " and 2 more (run `sallyport why` for details)"},
	} {
		if got := NewNames(test.list, test.dir, "/h"); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func shortened(names []string) (out []string) {
	for _, n := range names {
		out = append(out, strings.TrimPrefix(n, "/w/"))
	}
	return out
}
