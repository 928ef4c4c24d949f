// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/net/access"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// actProxy does what needs the proxy: "fetch URL" and "tunnel HOST:PORT" print the status and what
// came, and "variable NAME" prints a variable. "direct URL" is fetch without the proxy, and "resolve
// NAME" prints the addresses of a name.
func actProxy(what string, next func() string) error {
	switch what {
	case "fetch":
		proxy, err := url.Parse(os.Getenv("HTTP_PROXY"))
		if err != nil {
			return err
		}
		return fetch(http.ProxyURL(proxy), next())
	case "tunnel":
		c, err := net.Dial("tcp", strings.TrimPrefix(os.Getenv("HTTPS_PROXY"), "http://"))
		if err != nil {
			return err
		}
		defer c.Close()
		to := next()
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to)
		res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect})
		if err != nil {
			return err
		}
		defer res.Body.Close()
		fmt.Println(res.StatusCode, res.Header.Get("x-proxy-error"))
		return nil
	case "direct":
		err := fetch(nil, next())
		var number syscall.Errno
		if errors.As(err, &number) {
			fmt.Println(true, unix.ErrnoName(number))
			return nil
		}
		return err
	case "datagram":
		return sendDatagram(next())
	case "resolve":
		list, err := (&net.Resolver{PreferGo: true}).LookupHost(context.Background(), next())
		var no *net.DNSError
		if errors.As(err, &no) {
			fmt.Println("not found:", no.IsNotFound)
			return nil
		}
		slices.Sort(list)
		fmt.Println(list)
		return err
	case "greeting":
		return readGreeting(next())
	case "variable":
		name := next()
		fmt.Printf("%s=%s\n", name, os.Getenv(name))
		return nil
	}
	return actOwn(what, next)
}

// sendDatagram asks the proxy for a UDP association, as SOCKS5 does (RFC 1928, 7), sends a datagram to
// an address by it, and prints what comes back, or nothing if that is nothing.
func sendDatagram(to string) error {
	at := strings.TrimPrefix(os.Getenv("HTTP_PROXY"), "http://")
	control, err := net.Dial("tcp", at)
	if err != nil {
		return err
	}
	defer control.Close()
	if _, err := control.Write([]byte{5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0}); err != nil {
		return err
	}
	answer := make([]byte, 12) // the method, and the address of the relay
	if _, err := io.ReadFull(control, answer); err != nil || answer[3] != 0 {
		fmt.Println("refused", answer[3], err)
		return nil
	}
	relay := netip.AddrPortFrom(netip.AddrFrom4([4]byte(answer[6:10])), binary.BigEndian.Uint16(answer[10:]))
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(relay))
	if err != nil {
		return err
	}
	defer conn.Close()
	dest := netip.MustParseAddrPort(to)
	head := append([]byte{0, 0, 0, 1}, dest.Addr().AsSlice()...)
	if _, err := conn.Write(append(binary.BigEndian.AppendUint16(head, dest.Port()), "ping"...)); err != nil {
		return err
	}
	const quiet = 300 * time.Millisecond // nothing comes of what is refused
	_ = conn.SetReadDeadline(time.Now().Add(quiet))
	if os.Getenv("PATIENT") != "" {
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	}
	reply := make([]byte, 100)
	n, err := conn.Read(reply)
	if err != nil {
		n = len(head) + 2
	}
	fmt.Printf("%q\n", reply[min(n, len(head)+2):n])
	return nil
}

// fetch prints the status of a URL, and what came or why the proxy refused it.
func fetch(proxy func(*http.Request) (*url.URL, error), from string) error {
	client := http.Client{Transport: &http.Transport{Proxy: proxy, DisableKeepAlives: true}}
	res, err := client.Get(from)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if code := res.Header.Get("x-proxy-error"); code != "" {
		b = []byte(code)
	}
	fmt.Println(res.StatusCode, string(b))
	return err
}

// A managedStage runs commands with a managed network.
type managedStage struct{ *stage }

func newManagedStage(t *testing.T) *managedStage {
	t.Helper()
	testenv.NeedUserNS(t)
	return &managedStage{newStage(t, placeAct(t))}
}

// originOf starts a server on this machine's loopback that answers every request with a word, and
// returns it as localhost:PORT.
func originOf(t *testing.T, word string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = io.WriteString(w, word)
	}))
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return "localhost:" + port
}

// command is "sallyport run WORD..." with variables beside the usual ones.
func (s *managedStage) command(t *testing.T, variables []string, words ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), attackBound)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "sallyport", append([]string{"run"}, words...)...)
	cmd.Dir = s.root + "/w"
	cmd.Env = append([]string{
		"HOME=" + s.root + "/home", "XDG_STATE_HOME=" + s.root + "/state", "GORACE=" + noRaceSleep,
		"PATH=" + s.bin + ":/usr/local/bin:/usr/bin:/bin",
	}, variables...)
	return cmd
}

// A managedResult is what these tests read of a result.
type managedResult struct {
	ExitCode int    `json:"exit_code"`
	Output   string `json:"output"`
	Sandbox  struct {
		Network   string   `json:"network"`
		Mechanism []string `json:"mechanism"`
	} `json:"sandbox"`
	NetworkDenials []networkDenial        `json:"network_denials"`
	NetworkHosts   []executor.NetworkHost `json:"network_hosts"`
	Denials        []struct {
		Op     string `json:"op"`
		Addr   string `json:"addr"`
		Source string `json:"source"`
		Grant  string `json:"grant"`
		Rule   string `json:"rule"`
	} `json:"denials"`
}

// A networkDenial is one of network_denials.
type networkDenial struct {
	Host     string `json:"host"`
	Port     int    `json:"port"`
	Protocol string `json:"protocol"`
	Reason   string `json:"reason"`
	Count    int    `json:"count"`
	FirstMS  int    `json:"first_ms"`
}

// json runs a command with --json.
func (s *managedStage) json(t *testing.T, words ...string) *managedResult {
	t.Helper()
	cmd := s.command(t, nil, append([]string{"--json"}, words...)...)
	out, err := cmd.Output()
	var r managedResult
	if jerr := json.Unmarshal(out, &r); jerr != nil {
		t.Fatalf("%q: %v, %v", out, err, jerr)
	}
	return &r
}

// TestManagedNetwork: a command reaches the hosts that flags name, through the proxy, and no other;
// the result names those that it was refused.
func TestManagedNetwork(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	s := newManagedStage(t)
	origin, other := originOf(t, "hello"), originOf(t, "other")
	r := s.json(t, "--allow-host", origin, "--", "act", "fetch", "http://"+origin+"/x", "tunnel", origin,
		"fetch", "http://"+other+"/", "fetch", "http://refused.example/", "tunnel", "refused.example:443",
		"tunnel", "refused.example:443",
		"variable", "SALLYPORT_NETWORK", "variable", "NODE_USE_ENV_PROXY")
	want := "200 hello\n200 \n403 blocked-by-allowlist\n403 blocked-by-allowlist\n403 blocked-by-allowlist\n403 blocked-by-allowlist\nSALLYPORT_NETWORK=proxy\nNODE_USE_ENV_PROXY=1\n"
	if r.Output != want {
		t.Errorf("%s", cmp.Diff(want, r.Output))
	}
	if r.Sandbox.Network != "proxy" || !slices.Contains(r.Sandbox.Mechanism, "netns") ||
		!slices.Contains(r.Sandbox.Mechanism, "proxy") {
		t.Errorf("%+v", r.Sandbox)
	}
	var lines []string
	for _, d := range r.NetworkDenials {
		lines = append(lines, fmt.Sprintf("%s:%d %s %s %d", d.Host, d.Port, d.Protocol, d.Reason, d.Count))
	}
	wantLines := []string{other + " http not_allowed_local 1", "refused.example:80 http not_allowed 1",
		"refused.example:443 https_connect not_allowed 2"}
	if diff := cmp.Diff(wantLines, lines); diff != "" {
		t.Errorf("network_denials: %s", diff)
	}
	lines = nil
	for _, d := range r.Denials {
		lines = append(lines, fmt.Sprintf("%s %s %s %s", d.Op, d.Addr, d.Source, d.Grant))
	}
	_, port, _ := strings.Cut(other, ":")
	wantLines = []string{fmt.Sprintf("connect %s proxied --grant loopback:%s", other, port)}
	for _, addr := range []string{"refused.example:80", "refused.example:443"} {
		wantLines = append(wantLines, fmt.Sprintf("connect %s proxied --allow-host %s", addr, addr))
	}
	if diff := cmp.Diff(wantLines, lines); diff != "" {
		t.Errorf("denials: %s", diff)
	}
	if h := r.NetworkHosts; len(h) != 1 || net.JoinHostPort(h[0].Host, fmt.Sprint(h[0].Port)) != origin ||
		h[0].Connections != 2 || h[0].Up == 0 || h[0].Down == 0 {
		t.Errorf("network_hosts: %+v", h)
	}
}

// TestManagedLines: what people read names the host, and the grant that it names works.
func TestManagedLines(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	s := newManagedStage(t)
	origin := originOf(t, "hello")
	script := `case "$(act fetch "$0")" in 200*) ;; *) exit 3 ;; esac`
	out, err := s.command(t, nil, "--allow-host", "other.example", "--", "sh", "-c", script, "http://"+origin+
		"/").CombinedOutput()
	_, port, _ := strings.Cut(origin, ":")
	want := "sallyport: blocked: connect to " + origin + ": this machine has a service at port " + port +
		"; allow with --grant loopback:" + port + "\n"
	if string(out) != want || err == nil {
		t.Errorf("%q, %v, want %q", out, err, want)
	}
	if out, err := s.command(t, nil, "--grant", "loopback:"+port, "--", "sh", "-c", script, "http://"+origin+
		"/").CombinedOutput(); len(out) > 0 || err != nil {
		t.Errorf("with the grant: %q, %v", out, err)
	}
	// A host that is denied by name cannot be allowed, and the line says by what.
	out, err = s.command(t, nil, "--allow-host", origin, "--deny-host", "localhost", "--", "sh", "-c", script,
		"http://"+origin+"/").CombinedOutput()
	want = "sallyport: blocked: connect to " + origin + "; denied by deny localhost (--deny-host)\n"
	if string(out) != want || err == nil {
		t.Errorf("%q, %v, want %q", out, err, want)
	}
}

// TestManagedStale: proxies that the caller uses do not reach the command, nor their passwords.
func TestManagedStale(t *testing.T) {
	t.Parallel()
	s := newManagedStage(t)
	cmd := s.command(t, []string{"HTTPS_PROXY=http://user:secret@192.0.2.1:8080", "no_proxy=*",
		"HTTP_PROXY=http://192.0.2.1:8080"},
		"--net", "proxy", "--", "act", "variable", "HTTPS_PROXY", "variable", "no_proxy", "fetch",
		"http://refused.example/")
	out, err := cmd.CombinedOutput()
	want := "HTTPS_PROXY=http://127.0.0.1:3128\nno_proxy=" + strings.Join(access.OwnHosts(), ",") +
		"\n403 blocked-by-allowlist\n"
	if string(out) != want || err != nil {
		t.Errorf("%q, %v, want %q", out, err, want)
	}
}

// needRedirect skips a test where the kernel does not redirect connections.
func (s *managedStage) needRedirect(t *testing.T) {
	t.Helper()
	if r := s.json(t, "--net", "proxy", "--", "act"); !slices.Contains(r.Sandbox.Mechanism, "redirect") {
		testenv.Lack(t, testenv.Redirect, "connections are not redirected here")
	}
}

// TestManagedPast: no way leads past the proxy, neither to this machine's loopback nor outside.
func TestManagedPast(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	s := newManagedStage(t)
	s.needRedirect(t)
	origin, other := originOf(t, "hello"), originOf(t, "other")
	_, port, _ := net.SplitHostPort(other)
	r := s.json(t, "--allow-host", origin, "--", "act", "tcp", "127.0.0.1:"+port, "direct",
		"http://192.0.2.1/", "direct", "https://192.0.2.1/",
		"direct", "http://[2001:db8::1]/", "sendto", "192.0.2.1:443")
	want := "errno ECONNREFUSED\n403 blocked-by-allowlist\ntrue ECONNRESET\n403 blocked-by-allowlist\nerrno EPERM\n"
	if want4 := strings.Replace(want, "ECONNRESET\n403 blocked-by-allowlist",
		"ECONNRESET\ntrue EADDRNOTAVAIL", 1); r.Output != want && r.Output != want4 {
		// without IPv6
		t.Errorf("%q, want %q", r.Output, want)
	}
}

// TestManagedRedirect: programs that know of no proxy reach the same hosts, by name and by address, and
// no others; names that the policy refuses are not found, and named in the result.
func TestManagedRedirect(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	s := newManagedStage(t)
	s.needRedirect(t)
	origin := originOf(t, "hello")
	_, port, _ := net.SplitHostPort(origin)
	r := s.json(t, "--allow-host", origin, "--allow-host", "*.localhost:"+port, "--allow-host",
		"allowed.example:443", "--", "act",
		"direct", "http://"+origin+"/", "direct", "http://127.0.0.1:"+port+"/", "direct",
		"http://app.localhost:"+port+"/",
		"resolve", "allowed.example", "resolve", "data.refused.example", "resolve", "www.allowed.example")
	want := "200 hello\n200 hello\n200 hello\n[198.18.0.2 fd5a:7970:6f72::2]\nnot found: true\nnot found: true\n"
	if got := strings.ReplaceAll(r.Output, "[198.18.0.2]", "[198.18.0.2 fd5a:7970:6f72::2]"); got != want {
		// without IPv6
		t.Errorf("%s", cmp.Diff(want, r.Output))
	}
	if !slices.Contains(r.Sandbox.Mechanism, "redirect") {
		t.Errorf("%+v", r.Sandbox)
	}
	var refused []string
	for _, d := range r.NetworkDenials {
		refused = append(refused, fmt.Sprintf("%s %s %s", d.Host, d.Protocol, d.Reason))
	}
	if diff := cmp.Diff([]string{"data.refused.example dns not_allowed",
		"www.allowed.example dns not_allowed"}, refused); diff != "" {
		t.Errorf("network_denials: %s", diff)
	}
}

// TestManagedServerFirst: a program that waits for its server to speak first, as ssh does, reaches the
// hosts and ports of the entries without a variable or a helper.
func TestManagedServerFirst(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	s := newManagedStage(t)
	s.needRedirect(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	t.Cleanup(func() { l.Close(); served.Wait() })
	served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(conn, "SSH-2.0-server\r\n")
			line, _ := bufio.NewReader(conn).ReadString('\n')
			fmt.Fprint(conn, "got ", line)
			conn.Close()
		}
	})
	_, port, _ := net.SplitHostPort(l.Addr().String())
	r := s.json(t, "--allow-host", "git.localhost:"+port, "--allow-host", l.Addr().String(), "--", "act",
		"greeting", "git.localhost:"+port, "greeting", l.Addr().String(), "greeting", "refused.example:22")
	const greeted = `"SSH-2.0-server\r\n" "got SSH-2.0-client\r\n"` + "\n"
	if want := greeted + greeted + "not found: true\n"; r.Output != want {
		t.Errorf("%q, want %q", r.Output, want)
	}
	if len(r.NetworkDenials) != 1 || r.NetworkDenials[0].Host != "refused.example" {
		t.Errorf("network_denials: %+v", r.NetworkDenials)
	}
}

// TestManagedOwn: what a command serves itself on its loopback interface is its own, also where it is
// named like a service of this machine.
func TestManagedOwn(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedProgram(t, "python3")
	s := newManagedStage(t)
	s.needRedirect(t)
	origin := originOf(t, "hello")
	script := `python3 -c 'if True:
	import http.server, threading, urllib.request
	class H(http.server.BaseHTTPRequestHandler):
		def do_GET(self):
			self.send_response(200); self.end_headers(); self.wfile.write(b"own")
		def log_message(self, *a): pass
	s = http.server.HTTPServer(("127.0.0.1", 0), H)
	threading.Thread(target=s.serve_forever, daemon=True).start()
	o = urllib.request.build_opener(urllib.request.ProxyHandler({}))
	print(o.open("http://127.0.0.1:%d/" % s.server_port).read().decode())
'`
	if out, err := s.command(t, nil, "--allow-host", origin, "--", "sh", "-c",
		script).CombinedOutput(); string(out) != "own\n" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
}

// TestManagedFirst: the proxy is there before the first instruction of a command.
func TestManagedFirst(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	s := newManagedStage(t)
	origin := originOf(t, "hello")
	for i := range 20 {
		out, err := s.command(t, nil, "--allow-host", origin, "--", "act", "fetch", "http://"+origin+
			"/").CombinedOutput()
		if string(out) != "200 hello\n" || err != nil {
			t.Fatalf("command %d: %q, %v", i, out, err)
		}
	}
}

// TestManagedApart: commands with different policies that run at the same time reach their own
// hosts only.
func TestManagedApart(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	s := newManagedStage(t)
	origins := []string{originOf(t, "first"), originOf(t, "second")}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			mine, other := origins[i%2], origins[1-i%2]
			words := []string{"--allow-host", mine, "--", "act"}
			want := ""
			for range 5 {
				words = append(words, "fetch", "http://"+mine+"/", "fetch", "http://"+other+"/")
				want += "200 " + []string{"first", "second"}[i%2] + "\n403 blocked-by-allowlist\n"
			}
			if out, err := s.command(t, nil, words...).CombinedOutput(); string(out) != want || err != nil {
				t.Errorf("command %d: %q, %v, want %q", i, out, err, want)
			}
		})
	}
	all.Wait()
}

// TestManagedDetached: a session has its network, too, and its result names what it was refused.
func TestManagedDetached(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	d := newParlor(t)
	origin := originOf(t, "hello")
	id := d.start(t, "--allow-host", origin, "--", d.inside(t, "act"), "fetch", "http://"+origin+"/",
		"tunnel", "refused.example:443")
	out, errs, code := d.run(t, "wait", "--json", id)
	var reply struct{ Result managedResult }
	if err := json.Unmarshal([]byte(out), &reply); err != nil || code != 0 {
		t.Fatalf("%q, %s, exit code %d, %v", out, errs, code, err)
	}
	r := &reply.Result
	if want := "200 hello\n403 blocked-by-allowlist\n"; r.Output != want {
		t.Errorf("%q, want %q", r.Output, want)
	}
	if len(r.NetworkDenials) != 1 || r.NetworkDenials[0].Host != "refused.example" {
		t.Errorf("%+v", r.NetworkDenials)
	}
}
