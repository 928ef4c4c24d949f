// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/net/access"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestNames: a command without a network is told at once that a name is not found, and the result
// names it, with or without an observer. Where this machine makes no such socket it runs all the same.
func TestNames(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	const script = `getent hosts registry.example.org; echo $?; getent hosts localhost >/dev/null; echo $?`
	for _, c := range []struct {
		name  string
		blind bool
		lacks bool
		found bool // the name is in the result
	}{{"observed", false, false, true}, {"not observed", true, false, true},
		{"a machine without", false, true, false}} {
		t.Run(c.name, func(t *testing.T) {
			a := newArena(t)
			a.host.unnamed = c.lacks
			var end executor.Exit
			res, err := a.run(t, &job{args: []string{"/bin/sh", "-c", script}, blind: c.blind, after: &end})
			must(t, err)
			if res.out != "2\n0\n" {
				t.Errorf("%+v", res)
			}
			named := slices.ContainsFunc(end.NetworkDenials, func(d executor.NetworkDenial) bool {
				return d.Host == "registry.example.org" && d.Port == 0 && d.Protocol == network.DNS &&
					d.Reason == network.NotAllowed
			})
			opens := slices.ContainsFunc(end.Denials, func(d sandbox.Denial) bool {
				return d.Addr == "registry.example.org" && d.Grant == "--allow-host registry.example.org" &&
					d.Rule == "network=none" && d.Source == sandbox.Proxied
			})
			if named != c.found || opens != c.found {
				t.Errorf("%+v\n%+v", end.NetworkDenials, end.Denials)
			}
		})
	}
}

// TestNamesOnly: of the name server there is a socket for datagrams, and nothing else: the command
// reaches no other port of its address and no other address, and the network stays "none".
func TestNamesOnly(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	server, ok := access.NameServer()
	if !ok || server.Addr().IsLoopback() {
		return // the address is the command's own
	}
	testenv.NeedFile(t, "/bin/bash")
	const script = `for at in tcp/$0/53 tcp/$0/80 udp/192.0.2.1/53 tcp/192.0.2.1/443; do (exec 3<>/dev/$at) 2>/dev/null && echo $at; done; (exec 3<>/dev/udp/$0/53) && echo names`
	for _, blind := range []bool{false, true} {
		a := newArena(t)
		var end executor.Exit
		res, err := a.run(t, &job{args: []string{"/bin/bash", "-c", script, server.Addr().String()},
			blind: blind, after: &end})
		must(t, err)
		if res.out != "names\n" {
			t.Errorf("%+v", res)
		}
		if m := end.Sandbox.Mechanism; slices.Contains(m, "proxy") || slices.Contains(m, "redirect") {
			t.Errorf("%q", m)
		}
	}
}

// BenchmarkNames compares starts that see which names are asked for with those that do not, in turn.
func BenchmarkNames(b *testing.B) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	must(b, err)
	defer null.Close()
	a := newArena(b)
	without := new(Host)
	without.unnamed = true
	b.Cleanup(func() { _ = without.Close() })
	spec := a.request(&job{args: []string{"/bin/true"}})
	one := func(h *Host) time.Duration {
		begun := time.Now()
		c, err := h.Start(context.Background(), spec, [3]*os.File{null, null, null})
		must(b, err)
		_, _, _ = c.Wait()
		must(b, c.WaitAll())
		must(b, c.Close(new(executor.Exit)))
		return time.Since(begun)
	}
	one(a.host)
	one(without)
	var took [2][]time.Duration
	for i := 0; b.Loop(); i++ {
		for _, j := range []int{i % 2, 1 - i%2} {
			took[j] = append(took[j], one([]*Host{without, a.host}[j]))
		}
	}
	for i := range took {
		slices.Sort(took[i])
	}
	off, on := took[0][len(took[0])/2], took[1][len(took[1])/2]
	b.ReportMetric(float64(off.Microseconds()), "without-us")
	b.ReportMetric(float64(on.Microseconds()), "with-us")
	b.ReportMetric(float64(on)/float64(off), "ratio")
}
