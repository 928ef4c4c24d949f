// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/network"
)

// manyEntries returns a policy with 10 000 entries of all forms.
func manyEntries(tb testing.TB) *network.Policy {
	c := network.Config{Mode: network.Full, PublicSuffix: isTLD}
	forms := []string{"h%d.example.com", "*.d%d.example.com", "**.e%d.example.org:443",
		"api-*.f%d.example.com", "10.%d.0.0/16", "[2606:2800:%d::]/48", "93.184.%d.7"}
	for i := range 10_000 {
		n, form := i/len(forms)%256, forms[i%len(forms)]
		if form[0] == 'h' || form[0] == '*' || form[0] == 'a' {
			n = i
		}
		c.Entries = append(c.Entries, network.Entry{Pattern: fmt.Sprintf(form, n), Deny: i%5 == 0})
	}
	c.Entries[0] = network.Entry{Pattern: "a.b.c.d.target.example.net"}
	c.Entries[1] = network.Entry{Pattern: "*.target.example.org"}
	c.Entries[2] = network.Entry{Pattern: "t*.target.example.com"}
	c.Entries[3] = network.Entry{Pattern: "93.200.0.0/16"}
	c.Entries[4] = network.Entry{Pattern: "[64:ff9b::808:808]"}
	p, err := network.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

var allowedAmongMany = []struct{ name, host string }{
	{"Exact", "a.b.c.d.target.example.net"},
	{"Below", "a.b.c.d.target.example.org"},
	{"Inner", "tx.target.example.com"},
	{"Range", "93.200.1.1"},
	{"IPv6", "[64:ff9b::808:808]"},
}

// BenchmarkDecide claims that a decision among 10 000 entries takes at most 2 us, and that no
// memory is allocated when it allows. TestNoAllocations checks the latter.
func BenchmarkDecide(b *testing.B) {
	p := manyEntries(b)
	for _, bb := range allowedAmongMany {
		b.Run(bb.name, func(b *testing.B) {
			r := requestTo(b, bb.host)
			b.ReportAllocs()
			for b.Loop() {
				if p.Decide(r).Ruling != network.Allow {
					b.Fatal("refused")
				}
			}
		})
	}
	for name, host := range map[string]string{"Miss": "a.b.c.d.e.f.example.com",
		"Long": strings.Repeat("a.", 126) + "a"} {
		b.Run(name, func(b *testing.B) {
			r := requestTo(b, host)
			for b.Loop() {
				if p.Decide(r).Ruling == network.Allow {
					b.Fatal("allowed")
				}
			}
		})
	}
}

func TestNoAllocations(t *testing.T) {
	p := manyEntries(t)
	for _, tt := range allowedAmongMany {
		r := requestTo(t, tt.host)
		if n := testing.AllocsPerRun(100, func() {
			if p.Decide(r).Ruling != network.Allow {
				t.Fatal("refused")
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", tt.name, n)
		}
	}
}
