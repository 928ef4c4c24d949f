// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"math/big"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/network"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bound is how long a test waits for an event, which comes at once if it comes.
const bound = time.Minute

// A zone answers for names as testdata/zone.json says, and notes what it was asked for. The
// answers of "rebind" change with each question.
type zone struct {
	names map[string][]string

	mu    sync.Mutex
	asked []string
}

func readZone(t testing.TB) *zone {
	t.Helper()
	text, err := os.ReadFile("../../../network/testdata/zone.json")
	if err != nil {
		t.Fatal(err)
	}
	var z struct{ Names map[string][]string }
	if err := json.Unmarshal(text, &z); err != nil {
		t.Fatal(err)
	}
	return &zone{names: z.Names}
}

func (z *zone) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	name := strings.TrimSuffix(host, ".")
	z.asked = append(z.asked, name)
	list, ok := z.names[name]
	for rest := name; !ok && rest != ""; {
		_, rest, _ = strings.Cut(rest, ".")
		list, ok = z.names["*."+rest]
	}
	if len(list) > 0 && list[0] == "rebind" {
		times := 0
		for _, a := range z.asked {
			if a == name {
				times++
			}
		}
		list = []string{list[1:][min(times, len(list)-1)-1]}
	}
	var addrs []netip.Addr
	for _, text := range list {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	return addrs, nil
}

func (z *zone) questions() []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	return slices.Clone(z.asked)
}

// A lab is a proxy on a listener of loopback, whose dials lead to an origin on loopback.
type lab struct {
	t       testing.TB
	zone    *zone
	proxy   *Proxy
	command *Command
	service *Service
	addr    string
	origin  string // where all dials lead
	from    Origin // of connections that are led here; nil for clients of the proxy

	mu      sync.Mutex
	changed *sync.Cond
	dialed  []string
	events  []Event
	policy  *network.Policy
}

// newLab serves a policy. All connections lead to the address of origin; they are refused if that
// is empty.
func newLab(t testing.TB, policy *network.Policy, origin string, change ...func(*lab)) *lab {
	t.Helper()
	l := &lab{t: t, zone: readZone(t), origin: origin, policy: policy}
	l.changed = sync.NewCond(&l.mu)
	l.proxy = &Proxy{Resolver: l.zone, Dial: l.dial}
	l.command = &Command{CallID: "call-1", Policy: l.now, Report: l.report}
	for _, f := range change {
		f(l)
	}
	listener := listenLoopback(t)
	l.addr = listener.Addr().String()
	if l.from != nil {
		l.service = l.proxy.ServeRedirected(listener, l.command, l.from)
	} else {
		l.service = l.proxy.Serve(listener, l.command)
	}
	t.Cleanup(l.close)
	return l
}

func (l *lab) close() {
	if err := l.service.Close(); err != nil {
		l.t.Error(err)
	}
}

func (l *lab) now() *network.Policy {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.policy
}

// wait returns when a condition holds, which is looked at when something was dialed or told.
func (l *lab) wait(holds func() bool) {
	l.t.Helper()
	timer := time.AfterFunc(bound, l.changed.Broadcast)
	defer timer.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for end := time.Now().Add(bound); !holds(); l.changed.Wait() {
		if time.Now().After(end) {
			l.t.Fatal("it did not happen")
		}
	}
}

// settled waits until so many connections have ended, and returns the events.
func (l *lab) settled(ends int) []Event {
	l.t.Helper()
	l.wait(func() bool {
		n := 0
		for _, e := range l.events {
			if e.Kind == Closed {
				n++
			}
		}
		return n >= ends
	})
	return l.told()
}

func (l *lab) dial(ctx context.Context, d *net.Dialer, kind, address string) (net.Conn, error) {
	l.mu.Lock()
	l.dialed = append(l.dialed, address)
	l.changed.Broadcast()
	l.mu.Unlock()
	if err := d.Control(kind, address, nil); err != nil {
		return nil, err
	}
	if l.origin == "" {
		return nil, &net.OpError{Op: "dial", Net: kind, Err: syscall.ECONNREFUSED}
	}
	return dialFrom(l.origin).DialContext(ctx, kind, l.origin)
}

func (l *lab) report(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
	l.changed.Broadcast()
}

// told ends the service and returns its events.
func (l *lab) told() []Event {
	l.close()
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// connect opens a connection to the proxy.
func (l *lab) connect() *net.TCPConn {
	l.t.Helper()
	conn, err := dialFrom(l.addr).Dial("tcp", l.addr)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(bound))
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		l.t.Fatalf("%T", conn)
	}
	return tcp
}

// send opens a connection, sends text, and returns all that comes until the proxy closes it.
func (l *lab) send(text string) string {
	l.t.Helper()
	conn := l.connect()
	if _, err := io.WriteString(conn, text); err != nil {
		l.t.Fatal(err)
	}
	_ = conn.CloseWrite()
	all, err := io.ReadAll(conn)
	if err != nil {
		l.t.Fatalf("after %q: %v", all, err)
	}
	return string(all)
}

// loopbacks numbers the addresses of loopback that were used.
var loopbacks atomic.Uint32

// listenLoopback listens on one of many addresses of loopback, where the system has them: thousands
// of connections that have just ended would use up the ports of one, also for tests of others.
func listenLoopback(t testing.TB) net.Listener {
	t.Helper()
	pid, n := os.Getpid(), loopbacks.Add(1)
	address := netip.AddrFrom4([4]byte{127, byte(64 + pid>>8&63), byte(pid), byte(1 + n%250)})
	l, err := net.Listen("tcp", netip.AddrPortFrom(address, 0).String())
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// dialFrom dials from the address that is dialed, so that the ports are those of that, too.
func dialFrom(address string) *net.Dialer {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return &net.Dialer{}
	}
	return &net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(to.Addr(), 0))}
}

// full is the policy of the mode full with entries; one that begins with "!" denies.
func full(t testing.TB, entries ...string) *network.Policy {
	t.Helper()
	return makePolicy(t, network.Config{Mode: network.Full}, entries...)
}

func makePolicy(t testing.TB, c network.Config, entries ...string) *network.Policy {
	t.Helper()
	for _, e := range entries {
		pattern, deny := strings.CutPrefix(e, "!")
		c.Entries = append(c.Entries, network.Entry{Pattern: pattern, Deny: deny})
	}
	c.PublicSuffix = func(name string) bool { return !strings.Contains(name, ".") }
	p, err := network.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// listen serves connections on loopback, each by a goroutine, until the test ends.
func listen(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	l := listenLoopback(t)
	var group sync.WaitGroup
	group.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(bound))
				serve(conn)
			})
		}
	})
	t.Cleanup(func() { l.Close(); group.Wait() })
	return l.Addr().String()
}

// answerAny is an origin that answers whatever comes with text.
func answerAny(text string) func(net.Conn) {
	return func(conn net.Conn) {
		if _, err := conn.Read(make([]byte, 64<<10)); err == nil {
			_, _ = io.WriteString(conn, text)
		}
	}
}

const okResponse = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// certificate returns one that no client should trust.
func certificate(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// clientHello returns the first message of a TLS client, with its records.
func clientHello(t testing.TB, name string) []byte {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = tls.Client(b, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
	}()
	p := make([]byte, maxHello)
	n, err := bufio.NewReaderSize(a, maxHello).Read(p)
	if err != nil {
		t.Fatal(err)
	}
	a.Close()
	<-done
	return p[:n]
}
