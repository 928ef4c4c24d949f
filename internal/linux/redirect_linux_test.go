// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestLearnRedirect: what the kernel cannot do is remembered: rules, IPv6, routes. That it had no room
// is not.
func TestLearnRedirect(t *testing.T) {
	failed := func(op launch.Op, value uint64, errno syscall.Errno) error {
		return &launch.StepError{Step: launch.Step{Op: op, Value: value}, Call: "sendto", Errno: errno}
	}
	// What a machine lacks, by letters: 4 is only IPv4, r no rules, n not even routes.
	for _, test := range []struct {
		name   string
		err    error
		try    int
		before string
		again  bool
		after  string
	}{
		{"no IPv6", failed(launch.OpNetlink, unix.NETLINK_ROUTE, unix.EAFNOSUPPORT), 1, "", true, "4"},
		{"no nf_tables", failed(launch.OpNetlink, unix.NETLINK_NETFILTER, unix.EPROTONOSUPPORT), 1, "", true, "r"},
		{"no nf_tables, without IPv6", failed(launch.OpNetlink, unix.NETLINK_NETFILTER, unix.EPROTONOSUPPORT), 2, "4", true, "4r"},
		{"no IPv6 behind it", failed(launch.OpNetlink, unix.NETLINK_ROUTE, unix.EAFNOSUPPORT), 2, "r", true, "4r"},
		{"no routes", failed(launch.OpNetlink, unix.NETLINK_ROUTE, unix.EOPNOTSUPP), 2, "4", true, "4rn"},
		{"no routes behind it", failed(launch.OpNetlink, unix.NETLINK_ROUTE, unix.EOPNOTSUPP), 3, "4r", true, "4rn"},
		{"a port that is taken", failed(launch.OpListen, 0, unix.EADDRINUSE), 3, "4r", true, "4rn"},
		{"nothing is left", failed(launch.OpListen, 0, unix.EADDRINUSE), 4, "4rn", false, "4rn"},
		{"no memory", failed(launch.OpNetlink, unix.NETLINK_NETFILTER, unix.ENOMEM), 1, "", true, ""},
		{"no buffers", failed(launch.OpNetlink, unix.NETLINK_ROUTE, unix.ENOBUFS), 1, "4", true, "4"},
		{"no descriptors", failed(launch.OpListen, 0, unix.EMFILE), 1, "", true, ""},
		{"still no memory", failed(launch.OpNetlink, unix.NETLINK_NETFILTER, unix.ENOMEM), shortTries, "", false, ""},
		{"another step", failed(launch.OpTmpfs, 0, unix.EPERM), 1, "", false, ""},
		{"another error", errors.New("x"), 1, "", false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := &Host{onlyIPv4: strings.Contains(test.before, "4"),
				unrouted: strings.Contains(test.before, "n")}
			if strings.Contains(test.before, "r") {
				h.unredirected = "of a test"
			}
			a := &attempt{host: h, level: plan.LevelNative}
			if got := a.learnRedirect(test.err, test.try); got != test.again {
				t.Errorf("another plan: %v", got)
			}
			after := ""
			for letter, is := range map[string]bool{"4": h.onlyIPv4, "r": h.unredirected != "",
				"n": h.unrouted} {
				if is != strings.Contains(test.after, letter) {
					after += fmt.Sprintf(" %s %v", letter, is)
				}
			}
			if after != "" {
				t.Errorf("want %q, but%s", test.after, after)
			}
		})
	}
}

// TestRoutedPorts: sockets are not made where another one of the launch is, nor where the command publishes
// a port, so that who connects there reaches the command and not what entries open.
func TestRoutedPorts(t *testing.T) {
	for _, test := range []struct {
		name    string
		entries string
		publish []network.Publish
		want    string
	}{
		{"no entry", "", nil, "[22 80 443]"},
		{"entries", "a.example:8080 b.example:443 localhost:5432 c.example", nil, "[22 80 443 5432 8080]"},
		{"the port of the proxy", "a.example:3128", nil, "[22 80 443]"},
		{"published", "a.example:8080", []network.Publish{{Port: 8080, HostPort: 9000}, {Port: 80, HostPort: 9001}}, "[22 443]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := network.Config{Mode: network.Full}
			for _, e := range strings.Fields(test.entries) {
				config.Entries = append(config.Entries, network.Entry{Pattern: e})
			}
			reaches, err := network.New(config)
			must(t, err)
			var r plan.Request
			a := &attempt{host: &Host{unredirected: "of a test"}, spec: &executor.Spec{Publish: test.publish},
				reaches: reaches}
			a.redirect(&r)
			if r.Redirect != nil || r.Routed == nil || fmt.Sprint(r.Routed.Ports) != test.want {
				t.Errorf("%+v, want ports %s", r.Routed, test.want)
			}
		})
	}
}

// TestWithoutRules: a kernel without rules that redirect connections is found out by the first start, and
// the result names what there is instead.
func TestWithoutRules(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for fact, want := range map[string]struct{ by, weaker string }{
		"no-nftables": {"routes", "programs that do not use the proxy reach hosts at these ports only: 22, 80, 443, where the command cannot listen: this kernel does not redirect connections (socket: protocol not supported)"},
		"no-netlink":  {"", "programs that do not use the proxy reach no host: this kernel has no routes for them (socket: address family not supported by protocol)"},
	} {
		t.Run(fact, func(t *testing.T) {
			r := nested(t, newArena(t), fact, plan.LevelNative, "net="+sandbox.NetworkProxy.String())
			if r.Code != 0 || r.Level != plan.LevelNative || !slices.Contains(r.By, "proxy") ||
				slices.Contains(r.By, "redirect") || slices.Contains(r.By, "routes") != (want.by != "") {
				t.Errorf("%+v", r)
			}
			if !slices.Contains(r.Weaker, want.weaker) {
				t.Errorf("%q lacks %q", r.Weaker, want.weaker)
			}
		})
	}
}

// TestRoutes: without rules of the kernel a command serves its own ports but for those that entries name,
// reaches what these open by name and by address, and nothing else.
func TestRoutes(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedFile(t, "/bin/bash")
	testenv.NeedProgram(t, "python3")
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer l.Close()
	serving.Go(func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			_, _ = io.WriteString(c, "reached\n")
			c.Close()
		}
	})
	_, port, _ := net.SplitHostPort(l.Addr().String())
	const script = `
get() { (exec 3<>/dev/tcp/$1/$2 && head -1 <&3) 2>/dev/null || echo closed; }
get git.localhost $0; get 127.0.0.1 $0; get 127.0.0.1 443; get 192.0.2.1 $0; get 192.0.2.1 5432; get refused.example $0; getent hosts refused.example || echo unknown
python3 -c 'if True:
	import socket, sys
	def serves(*at):
		s = socket.socket(socket.AF_INET6 if ":" in at[0] else socket.AF_INET)
		try:
			s.bind(at); s.listen(); return "free"
		except OSError as e:
			return "taken" if e.errno == 98 else e.strerror
	print(*[serves(*at) for at in [("0.0.0.0", 3000), ("127.0.0.1", 8080), ("0.0.0.0", 8000), ("0.0.0.0", int(sys.argv[1])), ("127.0.0.1", 443)]])
' $0`
	open, err := network.New(network.Config{Mode: network.Full,
		Entries: []network.Entry{{Pattern: "git.localhost:" + port}, {Pattern: "127.0.0.1:" + port},
			{Pattern: "example.com"}}})
	must(t, err)
	for _, c := range []struct {
		name            string
		blind, onlyIPv4 bool
	}{{"observed", false, false}, {"not observed", true, false}, {"without IPv6", false, true}} {
		t.Run(c.name, func(t *testing.T) {
			a := newArena(t)
			a.host.unredirected, a.host.onlyIPv4 = "of a test", c.onlyIPv4
			policy := a.policy().WithNetwork(sandbox.NetworkProxy)
			var end executor.Exit
			res, err := a.run(t, &job{args: []string{"/bin/bash", "-c", script, port}, policy: &policy,
				hosts: network.NewLive(open), blind: c.blind, after: &end})
			must(t, err)
			if want := "reached\nreached\nclosed\nclosed\nclosed\nclosed\nunknown\nfree free free taken taken\n"; res.out != want {
				t.Errorf("%q, want %q: %s", res.out, want, res.err)
			}
			weaker := []string{"programs that do not use the proxy reach hosts at these ports only: 22, 80, 443, " +
				port + ", where the command cannot listen: of a test"}
			if c.onlyIPv4 {
				weaker = append(weaker, "programs that do not use the proxy reach no IPv6 address: this kernel cannot redirect IPv6")
			}
			for _, w := range weaker {
				if !slices.Contains(end.Sandbox.Weaker, w) {
					t.Errorf("%q lacks %q", end.Sandbox.Weaker, w)
				}
			}
			var refused []string
			for _, d := range end.Denials {
				if d.Op == sandbox.Connect {
					refused = append(refused, strings.ReplaceAll(d.Addr, port, "PORT"))
				}
			}
			want := []string{"localhost:443", "192.0.2.1:PORT", "192.0.2.1:5432", "refused.example"}
			if c.blind { // the kernel refuses that alone
				want = slices.Delete(want, 2, 3)
			}
			if slices.Sort(refused); !slices.Equal(refused, slices.Sorted(slices.Values(want))) {
				t.Errorf("refused %q, want %q", refused, want)
			}
		})
	}
}

// TestRoutesPublish: who connects to a published port reaches the command, also where an entry names that
// port for another host, and connections there would come to the proxy.
func TestRoutesPublish(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	python := testenv.NeedProgram(t, "python3")
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	at := free.Addr().String()
	free.Close()
	open, err := network.New(network.Config{Mode: network.Full,
		Entries: []network.Entry{{Pattern: "a.example:8080"}}})
	must(t, err)
	a := newArena(t)
	a.host.unredirected = "of a test"
	policy := a.policy().WithNetwork(sandbox.NetworkProxy)
	r, w := pipe(t)
	const server = `import socket; s = socket.create_server(("0.0.0.0", 8080)); print("ready", flush=True); s.accept()[0].sendall(b"inside")`
	_, err = a.run(t, &job{
		args: []string{python, "-c", server}, policy: &policy, hosts: network.NewLive(open), stdout: w,
		ports: []network.Publish{{Port: 8080, HostPort: netip.MustParseAddrPort(at).Port()}},
		during: func(c *Child) {
			w.Close()
			if line, err := bufio.NewReader(r).ReadString('\n'); line != "ready\n" {
				t.Errorf("%q, %v", line, err)
				_ = c.Kill()
				return
			}
			conn, err := net.Dial("tcp4", at)
			must(t, err)
			defer conn.Close()
			if text, err := io.ReadAll(conn); string(text) != "inside" || err != nil {
				t.Errorf("%q, %v", text, err)
			}
		},
	})
	must(t, err)
}
