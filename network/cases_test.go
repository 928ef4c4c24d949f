// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/network"
)

// A caseRow is a line of testdata/cases.jsonl.
type caseRow struct {
	ID, Policy, Note string
	Policies         map[string]struct {
		Mode        network.Mode
		Allow, Deny []string
		AllowLocal  bool `json:"allow_local"`
	}
	Req struct {
		Via, Target, Host, Method, SNI string
		TargetBase64                   string `json:"target_base64"`
	}
	Expect struct {
		Decision network.Ruling
		Reason   string
	}
}

// beyond are the rows about parts of a request that do not get here: the proxy's tests have them.
var beyond = map[string]string{
	"net-017": "the user in a URL", // refused as a whole here
	"net-026": "a target without a host",
	"net-027": "the Host header", "net-031": "the Host header", "net-032": "the Host header", "net-046": "the Host header",
	"net-033": "the scheme", "net-034": "the scheme",
	"net-040": "the name in TLS",
}

func TestCases(t *testing.T) {
	rows := readCases(t)
	policies := rows[0].Policies
	if len(rows) != 223 {
		t.Fatalf("%d lines", len(rows))
	}
	judged := 0
	for _, row := range rows[1:] {
		if _, ok := beyond[row.ID]; ok {
			continue
		}
		judged++
		t.Run(row.ID+" "+row.Note, func(t *testing.T) {
			p := policies[row.Policy]
			c := network.Config{Mode: p.Mode, AllowPrivate: p.AllowLocal, PublicSuffix: isTLD}
			for _, text := range p.Allow {
				c.Entries = append(c.Entries, network.Entry{Pattern: text})
			}
			for _, text := range p.Deny {
				c.Entries = append(c.Entries, network.Entry{Pattern: text, Deny: true})
			}
			policy, err := network.New(c)
			if row.Expect.Reason == "config_error" {
				if bad := new(network.EntryError); !errors.As(err, &bad) {
					t.Fatalf("New: %v, want an EntryError", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			d := judge(t, policy, row)
			if d.Ruling != row.Expect.Decision || string(d.Reason) != row.Expect.Reason {
				t.Errorf("%s: %v %s, want %v %s", row.Req.Target, d.Ruling, d.Reason, row.Expect.Decision,
					row.Expect.Reason)
			}
		})
	}
	if judged != 213 || judged+len(beyond) != 222 {
		t.Errorf("%d of 222 rows were judged", judged)
	}
}

// judge decides on a request as a way of capture does.
func judge(t *testing.T, p *network.Policy, row caseRow) network.Decision {
	target, standard := row.Req.Target, uint16(0)
	r := network.Request{Method: row.Req.Method}
	switch row.Req.Via {
	case "http":
		var ok bool
		if target, ok = strings.CutPrefix(target, "http://"); !ok {
			t.Fatalf("target %q", target)
		}
		target, standard = strings.TrimSuffix(target, "/"), 80
		if r.Method == "" {
			r.Method = "GET"
		}
	case "connect":
		r.Protocol = network.HTTPSConnect
	case "socks5":
		r.Protocol = network.SOCKS5TCP
		if raw, err := base64.StdEncoding.DecodeString(row.Req.TargetBase64); err == nil && len(raw) > 0 {
			target = string(raw)
		}
	default:
		t.Fatalf("unknown way %q", row.Req.Via)
	}
	var err error
	if r.Host, r.Port, err = network.ParseAuthority(target, standard); err != nil {
		return network.Decision{Ruling: network.Reject, Reason: network.InvalidHost}
	}
	d := p.Decide(r)
	if d.Ruling != network.Allow {
		return d
	}
	addrs := r.Host.LocalAddrs()
	if addr, ok := r.Host.Addr(); ok {
		addrs = []netip.Addr{addr}
	} else if addrs == nil {
		addrs = lookup(t, r.Host.Name())
	}
	_, d = p.Vet(r, addrs)
	return d
}

// lookup returns the addresses of a name in testdata/zone.json.
func lookup(t *testing.T, name string) (addrs []netip.Addr) {
	text, err := os.ReadFile("testdata/zone.json")
	if err != nil {
		t.Fatal(err)
	}
	var zone struct{ Names map[string][]string }
	if err := json.Unmarshal(text, &zone); err != nil {
		t.Fatal(err)
	}
	list, ok := zone.Names[name]
	for rest := name; !ok && rest != ""; {
		_, rest, _ = strings.Cut(rest, ".")
		list, ok = zone.Names["*."+rest]
	}
	if len(list) > 0 && list[0] == "rebind" { // the first answer; there is no second look-up
		list = list[1:2]
	}
	for _, text := range list {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	return addrs
}

func readCases(t *testing.T) (rows []caseRow) {
	text, err := os.ReadFile("testdata/cases.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var row caseRow
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// isTLD stands for a list of public suffixes.
func isTLD(name string) bool {
	return name == "com" || name == "org" || name == "net" || name == "co.uk"
}
