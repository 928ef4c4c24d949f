// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/net/intercept"
	"github.com/sallyport-dev/sallyport/internal/net/proxy"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// partCases is the word with which this binary plays rows inside a sandbox: a file of them, and how.
const partCases = "cases"

// The ways by which a row is played.
const (
	byProxy    = "proxy"    // as the row says: HTTP, CONNECT or SOCKS5
	byRedirect = "redirect" // by name and connect, as programs do that know of no proxy
	byRoutes   = "routes"   // the same where the kernel has no rules that redirect connections
	byBurst    = "burst"    // not at all: a number of connections, as fast as they can be made
	byFlood    = "flood"    // not at all: hundreds of connections that never say a whole request
)

// A hostCase is a line of testdata/cases.jsonl.
type hostCase struct {
	ID, Policy, Note string
	Policies         map[string]struct {
		Mode        network.Mode
		Allow, Deny []string
		AllowLocal  bool `json:"allow_local"`
	}
	Req struct {
		Via, Target, Host, Method, SNI, Atyp string
		TargetBase64                         []byte `json:"target_base64"`
	}
	Expect struct {
		Decision network.Ruling
		Reason   network.Reason
	}
}

const caseOK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"

// authority returns the host and port of a row.
func (c *hostCase) authority() (host, port string) {
	if c.Req.Via != "http" {
		host, port, _ = net.SplitHostPort(c.Req.Target)
		return host, port
	}
	u, err := url.Parse(c.Req.Target)
	if err != nil {
		return "", ""
	}
	if port = u.Port(); port == "" {
		port = "80"
	}
	return u.Hostname(), port
}

// redirectable reports whether a program without a proxy can do what a row does: a name or an address, and
// nothing odd around it. Loopback is the command's own there, unless an entry names a port.
func (c *hostCase) redirectable() bool {
	host, port := c.authority()
	if host == "" || port == "" || c.Req.Host != "" || c.Req.Atyp != "" || c.Req.Method != "" ||
		len(c.Req.TargetBase64) > 0 || c.Expect.Decision == network.Reject {
		return false
	}
	h, err := network.ParseHost(host)
	if err != nil {
		return false
	}
	if addr, literal := h.Addr(); literal { // the program reads other spellings as names
		plain, err := netip.ParseAddr(host)
		return err == nil && plain == addr && !addr.IsLoopback() && !addr.IsUnspecified()
	}
	return h.LocalAddrs() == nil
}

// casesMain plays the rows of a file, and prints a line for each: its ID and what the client sees.
func casesMain(file, way string) int {
	switch way {
	case byFlood:
		return floodMain()
	case byBurst:
		return burstMain(file)
	}
	text, err := os.ReadFile(file)
	var rows []hostCase
	if err == nil {
		err = json.Unmarshal(text, &rows)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for i := range rows {
		seen, err := rows[i].play(way)
		if err != nil {
			seen = network.Deny // a connection that is not made, or cut
		}
		fmt.Println(rows[i].ID, seen)
	}
	return 0
}

// burstMain makes connections, by the proxy and by redirection, 500 at once, and prints how many were
// answered.
func burstMain(count string) int {
	n, _ := strconv.Atoi(count)
	var answered atomic.Int64
	var group sync.WaitGroup
	slots := make(chan struct{}, 500)
	row := hostCase{}
	row.Req.Via, row.Req.Target = "connect", "api.example.com:443"
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if got, err := row.play([]string{byProxy, byRedirect}[i%2]); err == nil && got == network.Allow {
				answered.Add(1)
			} else if err != nil {
				fmt.Println(err)
			}
		})
	}
	group.Wait()
	fmt.Println(answered.Load())
	return 0
}

// floodMain opens more connections to the proxy than it serves at once, by both ways, and holds them with
// half a request, or none, until its input ends.
func floodMain() int {
	at, err := url.Parse(os.Getenv("HTTP_PROXY"))
	if err != nil {
		return 1
	}
	var held []net.Conn
	for i := range 600 {
		to := at.Host
		if i%3 == 0 {
			to = "93.184.216.34:80"
		}
		c, err := net.DialTimeout("tcp", to, time.Minute)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		held = append(held, c)
		_, _ = io.WriteString(c, []string{"", "GET http://api.example.com/ HTTP/1.1\r\nX: ", "\x05\x01"}[i%3])
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return len(held) - 600
}

// play performs the request of a row.
func (c *hostCase) play(way string) (network.Ruling, error) {
	if way == byRedirect || way == byRoutes {
		host, port := c.authority()
		conn, err := (&net.Dialer{Timeout: time.Minute, Resolver: &net.Resolver{PreferGo: true}}).Dial("tcp",
			net.JoinHostPort(host, port))
		if err != nil {
			return network.Deny, err
		}
		defer conn.Close()
		if port == "80" {
			return c.exchange(conn, "GET / HTTP/1.1\r\nHost: "+net.JoinHostPort(host, port)+
				"\r\nConnection: close\r\n\r\n")
		}
		return c.through(conn, conn)
	}
	at, err := url.Parse(os.Getenv("HTTP_PROXY"))
	if err != nil {
		return network.Deny, err
	}
	conn, err := net.Dial("tcp", at.Host)
	if err != nil {
		return network.Deny, err
	}
	defer conn.Close()
	if c.Req.Via == "socks5" {
		return c.socks(conn)
	}
	method, target, host := c.Req.Method, c.Req.Target, c.Req.Host
	if len(c.Req.TargetBase64) > 0 {
		target = string(c.Req.TargetBase64)
	}
	if host == "" {
		host = target
		if _, rest, ok := strings.Cut(target, "://"); ok {
			host, _, _ = strings.Cut(rest, "/")
		}
	}
	if method == "" {
		method = "GET"
	}
	if c.Req.Via == "connect" {
		method = "CONNECT"
	}
	return c.exchange(conn, method+" "+target+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
}

// exchange sends a request and reads what the status says, and goes on in a tunnel.
func (c *hostCase) exchange(conn net.Conn, request string) (network.Ruling, error) {
	if _, err := io.WriteString(conn, request); err != nil {
		return network.Deny, err
	}
	r := bufio.NewReader(conn)
	line, err := r.ReadString('\n')
	switch {
	case strings.HasPrefix(line, "HTTP/1.1 400 "):
		return network.Reject, nil
	case err != nil || !strings.HasPrefix(line, "HTTP/1.1 200 "):
		return network.Deny, err
	case c.Req.Via == "connect" && strings.HasPrefix(request, "CONNECT "):
		if _, err := r.ReadString('\n'); err != nil {
			return network.Deny, err
		}
		return c.through(conn, r)
	}
	return network.Allow, nil
}

// socks sends the request of a row by SOCKS5.
func (c *hostCase) socks(conn net.Conn) (network.Ruling, error) {
	i := strings.LastIndexByte(c.Req.Target, ':')
	host := c.Req.Target[:i]
	port, err := strconv.ParseUint(c.Req.Target[i+1:], 10, 16)
	if err != nil {
		return network.Deny, err
	}
	request := append([]byte{5, 1, 0, 5, 1, 0, 3, byte(len(host))}, host...)
	if addr, err := netip.ParseAddr(host); err == nil && c.Req.Atyp != "name" {
		request = append([]byte{5, 1, 0, 5, 1, 0, 1}, addr.AsSlice()...)
	}
	reply := make([]byte, 12)
	if _, err = conn.Write(append(request, byte(port>>8), byte(port))); err == nil {
		_, err = io.ReadFull(conn, reply)
	}
	switch {
	case err != nil:
		return network.Deny, err
	case reply[3] == 1:
		return network.Reject, nil
	case reply[3] != 0:
		return network.Deny, nil
	}
	return c.through(conn, conn)
}

// through sends TLS or a line through a tunnel. What is cut without an answer was denied.
func (c *hostCase) through(conn net.Conn, r io.Reader) (network.Ruling, error) {
	if c.Req.SNI != "" { // the origin answers without TLS
		err := tls.Client(conn, &tls.Config{ServerName: c.Req.SNI, InsecureSkipVerify: true}).Handshake()
		var plain tls.RecordHeaderError
		if errors.As(err, &plain) && bytes.HasPrefix(plain.RecordHeader[:], []byte("HTTP/")) {
			return network.Allow, nil
		}
		return network.Deny, err
	}
	if _, err := io.WriteString(conn, "hello\r\n"); err != nil {
		return network.Deny, err
	}
	if half, ok := conn.(*net.TCPConn); ok {
		_ = half.CloseWrite() // so that nothing waits for the rest of a request
	}
	if all, _ := io.ReadAll(r); string(all) != caseOK {
		return network.Deny, nil
	}
	return network.Allow, nil
}

// A caseZone has the names of testdata/zone.json, and notes what it was asked for.
type caseZone struct {
	Names map[string][]string

	mu    sync.Mutex
	asked map[string]bool
}

// LookupNetIP implements netproxy.Resolver.
func (z *caseZone) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	name := strings.TrimSuffix(host, ".")
	z.asked[name] = true
	list, ok := z.Names[name]
	for rest := name; !ok && rest != ""; {
		_, rest, _ = strings.Cut(rest, ".")
		list, ok = z.Names["*."+rest]
	}
	if len(list) > 1 && list[0] == "rebind" {
		list = list[1:2] // each row asks once
	}
	var addrs []netip.Addr
	for _, text := range list {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	return addrs, nil
}

// caseOrigin is a server that answers whatever it is sent.
func caseOrigin(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	var group sync.WaitGroup
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer c.Close()
				if _, err := c.Read(make([]byte, 1024)); err == nil {
					_, _ = io.WriteString(c, caseOK)
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		group.Wait()
	})
	return l.Addr().String()
}

// TestSameCases: the rows here, which an ordinary user gets a copy of, are those of package network.
func TestSameCases(t *testing.T) {
	for _, name := range []string{"cases.jsonl", "zone.json"} {
		here, err := os.ReadFile("testdata/" + name)
		must(t, err)
		there, err := os.ReadFile("../../network/testdata/" + name)
		must(t, err)
		if !bytes.Equal(here, there) {
			t.Errorf("%s differs", name)
		}
	}
}

// readHostCases returns the rows by policy, and the policies.
func readHostCases(t *testing.T) (header hostCase, rows map[string][]hostCase) {
	t.Helper()
	text, err := os.ReadFile("testdata/cases.jsonl")
	must(t, err)
	rows = map[string][]hostCase{}
	for line := range bytes.Lines(text) {
		var row hostCase
		must(t, json.Unmarshal(line, &row))
		switch {
		case row.Policies != nil:
			header = row
		case row.Expect.Reason != "config_error":
			rows[row.Policy] = append(rows[row.Policy], row)
		}
	}
	return header, rows
}

// TestNetworkCases plays all rows inside a real sandbox, by each way that leads out of it: what the program
// sees is what the row expects, and no name is looked up that the policy refuses.
func TestNetworkCases(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	origin := caseOrigin(t)
	header, all := readHostCases(t)
	text, err := os.ReadFile("testdata/zone.json")
	must(t, err)
	played := map[string]int{}
	for name, rows := range all {
		for _, way := range []string{byProxy, byRedirect, byRoutes} {
			t.Run(name+"/"+way, func(t *testing.T) {
				zone := &caseZone{asked: map[string]bool{}}
				must(t, json.Unmarshal(text, zone))
				rows := rows
				if way != byProxy {
					rows = slices.DeleteFunc(slices.Clone(rows),
						func(c hostCase) bool { return !c.redirectable() })
				}
				a := newArena(t)
				if way == byRoutes {
					a.host.unredirected = "of a test"
				}
				a.host.proxy = proxy.Proxy{Resolver: zone,
					Dial: func(ctx context.Context, d *net.Dialer, kind, address string) (net.Conn, error) {
						if d.Control != nil { // the second wall is asked, as the kernel would be
							if err := d.Control(kind, address, nil); err != nil {
								return nil, err
							}
						}
						return new(net.Dialer).DialContext(ctx, kind, origin)
					}}
				given := header.Policies[name]
				config := network.Config{Mode: given.Mode, AllowPrivate: given.AllowLocal,
					PublicSuffix: intercept.IsPublicSuffix}
				for _, p := range given.Allow {
					config.Entries = append(config.Entries, network.Entry{Pattern: p, Broad: true})
				}
				for _, p := range given.Deny {
					config.Entries = append(config.Entries, network.Entry{Pattern: p, Deny: true})
				}
				policy, err := network.New(config)
				must(t, err)
				if way == byRoutes { // at other ports nothing is reached
					rows = slices.DeleteFunc(rows, func(c hostCase) bool {
						_, port := c.authority()
						n, _ := strconv.ParseUint(port, 10, 16)
						return c.Expect.Decision == network.Allow &&
							!slices.Contains(append(policy.Ports(), 22, 80, 443), uint16(n))
					})
				}
				a.playCases(t, way, rows, network.NewLive(policy))
				played[way] += len(rows)
				zone.check(t, rows)
			})
		}
	}
	if played[byProxy] != 221 || played[byRedirect] < 100 || played[byRoutes] < 100 {
		t.Errorf("played %v", played)
	}
}

// TestNetworkBurst: of many connections at once none is lost, also beyond what is served at a time.
func TestNetworkBurst(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	count := strconv.Itoa(testenv.Rounds(1000, 10000))
	a := newArena(t)
	origin := caseOrigin(t)
	zone := &caseZone{Names: map[string][]string{"api.example.com": {"93.184.216.34"}},
		asked: map[string]bool{}}
	a.host.proxy = proxy.Proxy{Resolver: zone, Dial: func(ctx context.Context, _ *net.Dialer, kind,
		_ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, kind, origin)
	}}
	open, err := network.New(network.Config{Mode: network.Full,
		Entries: []network.Entry{{Pattern: "api.example.com"}}})
	must(t, err)
	policy := a.policy().WithNetwork(sandbox.NetworkProxy)
	var end executor.Exit
	res, err := a.run(t, &job{args: []string{os.Getenv(programVar), partCases, count, byBurst},
		policy: &policy, hosts: network.NewLive(open), after: &end})
	must(t, err)
	if res.out != count+"\n" {
		t.Errorf("%s connections, answered: %s; exit code %d, signal %d, %v, %.2000s; %+v", count, res.out,
			res.code, res.signal, res.lost, res.err, end)
	}
	// A program may try a second address of a name beside the first.
	if n, _ := strconv.Atoi(count); len(end.NetworkHosts) != 1 || end.NetworkHosts[0].Connections < n {
		t.Errorf("counted %+v", end.NetworkHosts)
	}
}

// TestNetworkFlood: a command that takes all connections that its proxy serves, and says nothing on them,
// slows no other command.
func TestNetworkFlood(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	header, all := readHostCases(t)
	a := newArena(t)
	zone := &caseZone{Names: map[string][]string{"api.example.com": {"93.184.216.34"}},
		asked: map[string]bool{}}
	origin := caseOrigin(t)
	a.host.proxy = proxy.Proxy{Resolver: zone, Dial: func(ctx context.Context, _ *net.Dialer, kind,
		_ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, kind, origin)
	}}
	open, err := network.New(network.Config{Mode: network.Full,
		Entries: []network.Entry{{Pattern: header.Policies["exact"].Allow[0]}, {Pattern: "93.184.216.34"}}})
	must(t, err)
	var rows []hostCase
	for _, row := range all["exact"] {
		if host, _ := row.authority(); host == "api.example.com" && row.Expect.Decision == network.Allow {
			rows = append(rows, row)
		}
	}
	inR, inW := pipe(t)
	outR, outW := pipe(t)
	policy := a.policy().WithNetwork(sandbox.NetworkProxy)
	res, err := a.run(t, &job{
		args: []string{os.Getenv(programVar), partCases, "-", byFlood}, policy: &policy,
		hosts: network.NewLive(open), stdin: inR, stdout: outW,
		during: func(*Child) {
			outW.Close()
			line, err := bufio.NewReader(outR).ReadString('\n')
			if line != "ready\n" || len(rows) < 3 {
				t.Errorf("%q, %v, %d rows", line, err, len(rows))
			}
			begun := time.Now()
			a.playCases(t, byProxy, rows, network.NewLive(open))
			if took := time.Since(begun); took > 5*time.Second { // a head that does not come takes 10
				t.Errorf("the other command took %v", took)
			}
			inW.Close()
		},
	})
	outR.Close()
	inR.Close()
	if err != nil || res.code != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

// playCases plays rows in one sandbox.
func (a *arena) playCases(t *testing.T, way string, rows []hostCase, hosts *network.Live) {
	t.Helper()
	text, err := json.Marshal(rows)
	must(t, err)
	file := filepath.Join(a.ws, "cases.json")
	must(t, os.WriteFile(file, text, 0o644))
	policy := a.policy().WithNetwork(sandbox.NetworkProxy)
	var end executor.Exit
	res, err := a.run(t, &job{args: []string{os.Getenv(programVar), partCases, file, way}, policy: &policy,
		hosts: hosts, after: &end})
	must(t, err)
	if way != byProxy && !slices.Contains(end.Sandbox.Mechanism, way) {
		t.Fatalf("connections are not redirected here: %q", end.Sandbox.Mechanism)
	}
	lines := strings.Split(strings.TrimSpace(res.out), "\n")
	if len(lines) != len(rows) && len(rows) > 0 {
		t.Fatalf("%+v", res)
	}
	for i := range rows {
		if want := rows[i].ID + " " + rows[i].Expect.Decision.String(); lines[i] != want {
			t.Errorf("%s (%s): seen %q, want %q", rows[i].Note, rows[i].Req.Target, lines[i], want)
		}
	}
}

// check reports names that were looked up although no row lets them be.
func (z *caseZone) check(t *testing.T, rows []hostCase) {
	t.Helper()
	may := map[string]bool{}
	for i := range rows {
		if r := &rows[i]; r.Expect.Decision != network.Reject && r.Expect.Reason != network.NotAllowed {
			host, _ := r.authority()
			if h, err := network.ParseHost(host); err == nil {
				may[h.Name()] = true
			}
		}
	}
	for name := range z.asked {
		if !may[name] {
			t.Errorf("%s was looked up", name)
		}
	}
}
