// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// managed returns a policy with a managed network, and the hosts that it opens.
func managed(tb testing.TB, ws string, hosts ...string) (sandbox.Policy, *network.Live) {
	tb.Helper()
	config := network.Config{Mode: network.Full}
	for _, h := range hosts {
		config.Entries = append(config.Entries, network.Entry{Pattern: h})
	}
	p, err := network.New(config)
	if err != nil {
		tb.Fatal(err)
	}
	policy := sandbox.WorkspaceWrite(ws).WithNetwork(sandbox.NetworkProxy)
	return policy.Bind(sandbox.Places{Dir: ws, SlashTmp: "/tmp"}), network.NewLive(p)
}

// BenchmarkManagedStart guards: start and end of /bin/true with a managed network, its connections led to
// the proxy, take at most 1.25 times as long as without a network.
func BenchmarkManagedStart(b *testing.B) {
	testenv.NeedUserNS(b)
	host := new(linux.Host)
	defer host.Close()
	ws := workspace(b)
	policy, hosts := managed(b, ws, "example.com")
	r := &executor.Spec{Args: []string{"/bin/true"}, Dir: ws, Env: []string{"PATH=/usr/bin:/bin"},
		Policy: policy, Network: hosts}
	vs := []Variant{{"managed", started(b, host, r)}, {"none", confined(b, host, ws)}}
	for b.Loop() {
		times, err := Rounds(rounds, vs)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(Middle(times[0]).Microseconds()), "managed-us")
		b.ReportMetric(float64(Middle(times[1]).Microseconds()), "none-us")
		b.ReportMetric(Ratio(times[0], times[1]), "x-none")
	}
}

// transferEnv makes this binary the client of BenchmarkTransfer: an address, how often to connect, and how
// much one download is.
const transferEnv = "SALLYPORT_BENCH_TRANSFER"

// A transfer is what the client of BenchmarkTransfer measured.
type transfer struct{ Get, Download time.Duration }

// transferMain connects for each GET, reads one download, and prints how long both took. With a proxy in
// its environment and "proxy" it connects by that.
func transferMain(what string) int {
	words := strings.Fields(what)
	at, way := words[0], words[1]
	gets, _ := strconv.Atoi(words[2])
	size, _ := strconv.Atoi(words[3])
	open := func() (net.Conn, error) { return net.Dial("tcp", at) }
	if way == "proxy" {
		proxy, err := url.Parse(os.Getenv("HTTP_PROXY"))
		if err != nil {
			return 1
		}
		open = func() (net.Conn, error) {
			c, err := net.Dial("tcp", proxy.Host)
			if err == nil {
				const ok = "HTTP/1.1 200 Connection established\r\n\r\n"
				fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", at, at)
				_, err = io.ReadFull(c, make([]byte, len(ok)))
			}
			return c, err
		}
	}
	one := func(n, most int, p []byte) (time.Duration, error) {
		begun := time.Now()
		c, err := open()
		if err != nil {
			return 0, err
		}
		defer c.Close()
		fmt.Fprintln(c, n)
		for total := 0; total < most; {
			n, err := c.Read(p)
			if total += n; err != nil {
				return 0, err
			}
		}
		return time.Since(begun), nil
	}
	var out transfer
	var took []time.Duration
	p := make([]byte, 256<<10)
	for range gets {
		d, err := one(2, 2, p)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		took = append(took, d)
	}
	slices.Sort(took)
	out.Get = took[len(took)/2]
	var err error
	if out.Download, err = one(size, size, p); err != nil {
		fmt.Println(err)
		return 1
	}
	_ = json.NewEncoder(os.Stdout).Encode(out)
	return 0
}

// giver is a server that sends as many bytes as a line asks for.
func giver(b *testing.B) string {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		block := make([]byte, 256<<10)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer c.Close()
				var n int
				if _, err := fmt.Fscanln(c, &n); err != nil {
					return
				}
				for n > 0 {
					sent, err := c.Write(block[:min(n, len(block))])
					if n -= sent; err != nil {
						return
					}
				}
			})
		}
	})
	b.Cleanup(func() {
		l.Close()
		group.Wait()
	})
	return l.Addr().String()
}

// BenchmarkTransfer guards, for a command that reaches this machine's loopback by the proxy: a download has
// at least 0.6 of the direct speed by CONNECT and 0.55 by redirection; a connection for each GET takes at
// most 3.5 and 3 times as long at the median.
func BenchmarkTransfer(b *testing.B) {
	testenv.NeedUserNS(b)
	host := new(linux.Host)
	defer host.Close()
	dir := workspace(b)
	at := giver(b)
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	text, err := os.ReadFile(self)
	program := filepath.Join(dir, "client")
	if err == nil {
		err = testenv.WriteProgram(program, text)
	}
	if err != nil {
		b.Fatal(err)
	}
	policy, hosts := managed(b, dir, at)
	gets, size, times := 300, 1<<30, 7
	if os.Getenv(onceEnv) != "" {
		gets, size, times = 10, 1<<20, 1
	}
	measure := func(way string) (out transfer) {
		env := []string{"PATH=/usr/bin:/bin", fmt.Sprintf("%s=%s %s %d %d", transferEnv, at, way, gets, size)}
		var text []byte
		var err error
		if way == "direct" {
			cmd := exec.Command(program)
			cmd.Env = env
			text, err = cmd.Output()
		} else {
			text, err = printed(host, &executor.Spec{Args: []string{program}, Dir: dir, Env: env,
				Policy: policy, Network: hosts, NoObserver: true})
		}
		if err == nil {
			err = json.Unmarshal(text, &out)
		}
		if err != nil {
			b.Fatalf("%s: %v, %s", way, err, text)
		}
		return out
	}
	for b.Loop() {
		var direct, other [2][]time.Duration // gets and downloads
		for i, way := range []string{"proxy", "redirect"} {
			direct, other = [2][]time.Duration{}, [2][]time.Duration{}
			for range times {
				for w, to := range map[string]*[2][]time.Duration{"direct": &direct, way: &other} {
					t := measure(w)
					to[0], to[1] = append(to[0], t.Get), append(to[1], t.Download)
				}
			}
			b.ReportMetric(Ratio(other[0], direct[0]), way+"-get-x-direct")
			b.ReportMetric(Ratio(direct[1], other[1]), way+"-download-x-direct")
			if i == 0 {
				b.ReportMetric(float64(Middle(direct[0]).Microseconds()), "direct-get-us")
			}
		}
	}
}

// printed returns what a command prints.
func printed(host *linux.Host, spec *executor.Spec) ([]byte, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	c, err := host.Start(context.Background(), spec, [3]*os.File{null, w, w})
	w.Close()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	_, err = out.ReadFrom(r)
	if code, _, lost := c.Wait(); err == nil && (code != 0 || lost != nil) {
		err = fmt.Errorf("exit %d, %w", code, lost)
	}
	if end := c.WaitAll(); err == nil {
		err = end
	}
	if end := c.Close(new(executor.Exit)); err == nil {
		err = end
	}
	return out.Bytes(), err
}

// BenchmarkIdleNetworks guards: the managed network of each of 256 idle commands costs at most 24 KiB of this
// process's resident memory, beside what the command costs without one, and no thread.
func BenchmarkIdleNetworks(b *testing.B) {
	testenv.NeedUserNS(b)
	if name := os.Getenv(idleEnv); name != "" {
		measureNetworks(b, name, os.Getenv(managedEnv) != "")
		return
	}
	for b.Loop() {
		with, without := idleProcess(b, managedEnv+"=1"), idleProcess(b, managedEnv+"=")
		b.ReportMetric(with["KiB-each"]-without["KiB-each"], "KiB-each")
		b.ReportMetric(with["heap-KiB-each"]-without["heap-KiB-each"], "heap-KiB-each")
		b.ReportMetric(with["stack-KiB-each"]-without["stack-KiB-each"], "stack-KiB-each")
		b.ReportMetric(with["goroutines-each"]-without["goroutines-each"], "goroutines-each")
		b.ReportMetric(with["more-threads"]-without["more-threads"], "more-threads")
	}
}

// managedEnv says that the commands of measureNetworks have a managed network.
const managedEnv = "SALLYPORT_BENCH_MANAGED"

// idleProcess measures in a process of its own.
func idleProcess(b *testing.B, variable string) map[string]float64 {
	return measuredIn(b, "BenchmarkIdleNetworks", variable)
}

func measuredIn(b *testing.B, benchmark, variable string) (seen map[string]float64) {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	name := filepath.Join(b.TempDir(), "seen")
	cmd := exec.Command(self, "-test.run", "^$", "-test.bench", "^"+benchmark+"$", "-test.benchtime", "1x")
	cmd.Env = append(os.Environ(), idleEnv+"="+name, variable)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, &seen)
	}
	if err != nil {
		b.Fatal(err)
	}
	return seen
}

// measureNetworks is BenchmarkIdleNetworks in the process that has the commands.
func measureNetworks(b *testing.B, name string, with bool) {
	cat := testenv.NeedProgram(b, "cat")
	host := new(linux.Host)
	defer host.Close()
	ws := workspace(b)
	spec := &executor.Spec{Args: []string{cat}, Dir: ws, Env: []string{"PATH=/usr/bin:/bin"},
		NoObserver: true,
		Policy:     sandbox.WorkspaceWrite(ws).Bind(sandbox.Places{Dir: ws, SlashTmp: "/tmp"})}
	if with {
		spec.Policy, spec.Network = managed(b, ws, "example.com")
	}
	in, w, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	null := null(b)
	var all []*linux.Child
	start := func(n int) {
		for range n {
			c, err := host.Start(context.Background(), spec, [3]*os.File{in, null, null})
			if err != nil {
				b.Fatal(err)
			}
			all = append(all, c)
		}
	}
	start(16)
	before := resident(b)
	start(idleSessions)
	after := resident(b)
	w.Close()
	in.Close()
	for _, c := range all {
		_, _, _ = c.Wait()
		_ = c.WaitAll()
		_ = c.Close(new(executor.Exit))
	}
	text, err := json.Marshal(map[string]float64{
		"KiB-each": (after.rss - before.rss) / idleSessions, "heap-KiB-each": (after.heap - before.heap) / idleSessions,
		"stack-KiB-each": (after.stacks - before.stacks) / idleSessions, "goroutines-each": (after.goroutines - before.goroutines) / idleSessions,
		"more-threads": after.threads - before.threads,
	})
	if err == nil {
		err = os.WriteFile(name, text, 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
}
