// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
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
		Via, Target, Host, Method, SNI, Atyp string
		TargetBase64                         []byte `json:"target_base64"`
	}
	Expect struct {
		Decision network.Ruling
		Reason   network.Reason
	}
}

// TestCases plays all rows over a real listener: the decision and its reason, that the origin was
// reached or not, that only vetted addresses were dialed, and that no refused name was resolved.
func TestCases(t *testing.T) {
	origin := listen(t, answerAny(okResponse))
	rows := readCases(t)
	policies := rows[0].Policies
	if len(rows) != 223 {
		t.Fatalf("%d lines", len(rows))
	}
	for _, row := range rows[1:] {
		t.Run(row.ID+" "+row.Note, func(t *testing.T) {
			given := policies[row.Policy]
			entries := slices.Clone(given.Allow)
			for _, e := range given.Deny {
				entries = append(entries, "!"+e)
			}
			if row.Expect.Reason == "config_error" {
				var bad *network.EntryError
				if _, err := network.New(network.Config{Entries: []network.Entry{{Pattern: entries[0]}}}); !errors.As(err, &bad) {
					t.Errorf("New: %v, want an EntryError", err)
				}
				return
			}
			l := newLab(t, makePolicy(t, network.Config{Mode: given.Mode, AllowPrivate: given.AllowLocal},
				entries...), origin)
			got := l.play(row)
			l.checkCase(row, got)
		})
	}
}

// play sends the request of a row and returns the decision that the client sees.
func (l *lab) play(row caseRow) network.Ruling {
	target := row.Req.Target
	if len(row.Req.TargetBase64) > 0 {
		target = string(row.Req.TargetBase64)
	}
	if row.Req.Via == "socks5" {
		return l.playSOCKS(row, target)
	}
	method, host := row.Req.Method, row.Req.Host
	if row.Req.Via == "connect" {
		method = "CONNECT"
	} else if method == "" {
		method = "GET"
	}
	if host == "" {
		host, _, _ = parseTarget(target)
		if row.Req.Via == "connect" {
			host = target
		}
	}
	conn := l.connect()
	text := method + " " + target + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"
	if _, err := io.WriteString(conn, text); err != nil {
		l.t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	line, err := r.ReadString('\n')
	if err != nil {
		l.t.Fatal(err)
	}
	switch {
	case strings.HasPrefix(line, "HTTP/1.1 400 "):
		return network.Reject
	case strings.HasPrefix(line, "HTTP/1.1 403 "):
		return network.Deny
	case !strings.HasPrefix(line, "HTTP/1.1 200 "):
		l.t.Fatalf("answer %q", line)
	case row.Req.Via == "connect":
		if line, err := r.ReadString('\n'); line != "\r\n" {
			l.t.Fatalf("%q, %v", line, err)
		}
		return l.playTunnel(row, conn, r)
	}
	if all, err := io.ReadAll(r); err != nil || method != "HEAD" &&
		!bytes.HasSuffix(all, []byte("\r\n\r\nok")) {
		l.t.Fatalf("%q, %v", all, err)
	}
	return network.Allow
}

// playSOCKS sends the request of a row by SOCKS5.
func (l *lab) playSOCKS(row caseRow, target string) network.Ruling {
	colon := strings.LastIndexByte(target, ':')
	host := target[:colon]
	port, err := strconv.ParseUint(target[colon+1:], 10, 16)
	if err != nil {
		l.t.Fatal(err)
	}
	request := append([]byte{5, 1, 0, addressName, byte(len(host))}, host...)
	if addr, err := netip.ParseAddr(host); err == nil && row.Req.Atyp != "name" {
		request = append([]byte{5, 1, 0, addressIPv4}, addr.AsSlice()...)
	}
	request = append(request, byte(port>>8), byte(port))
	conn := l.connect()
	reply := l.socks(conn, request)
	switch reply {
	case replyOK:
		return l.playTunnel(row, conn, bufio.NewReader(conn))
	case replyFailed:
		return network.Reject
	}
	return network.Deny
}

// socks sends a greeting and a request, and returns the reply. It reads the address of IPv4 only.
func (l *lab) socks(conn net.Conn, request []byte) byte {
	l.t.Helper()
	if _, err := conn.Write(append([]byte{5, 1, 0}, request...)); err != nil {
		l.t.Fatal(err)
	}
	p := make([]byte, 12)
	if _, err := io.ReadFull(conn, p); err != nil || p[0] != 5 || p[1] != 0 || p[2] != 5 {
		l.t.Fatalf("reply % x, %v", p, err)
	}
	return p[3]
}

// playTunnel sends TLS or a line through a tunnel. What is cut without an answer was denied.
func (l *lab) playTunnel(row caseRow, conn net.Conn, r io.Reader) network.Ruling {
	first := []byte("hello\r\n")
	if row.Req.SNI != "" {
		first = clientHello(l.t, row.Req.SNI)
	}
	if _, err := conn.Write(first); errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return network.Deny
	} else if err != nil {
		l.t.Fatal(err)
	}
	if all, _ := io.ReadAll(r); string(all) != okResponse {
		return network.Deny
	}
	return network.Allow
}

// checkCase compares what the client saw and what was told with the row.
func (l *lab) checkCase(row caseRow, got network.Ruling) {
	l.t.Helper()
	if got != row.Expect.Decision {
		l.t.Errorf("the client sees %v, want %v", got, row.Expect.Decision)
	}
	var last network.Decision
	for _, e := range l.told() {
		if e.Kind == Decided {
			last = e.Decision
		}
	}
	if last.Ruling != row.Expect.Decision || last.Reason != row.Expect.Reason {
		l.t.Errorf("told %v %s, want %v %s", last.Ruling, last.Reason, row.Expect.Decision, row.Expect.Reason)
	}
	resolved := l.zone.questions()
	if len(resolved) > 1 || len(resolved) > 0 &&
		(last.Ruling == network.Reject || last.Reason == network.NotAllowed) {
		l.t.Errorf("resolved %q", resolved)
	}
	if reached := last.Ruling == network.Allow ||
		last.Reason == network.SNIMismatch; reached != (len(l.dialed) == 1) {
		l.t.Errorf("dialed %q", l.dialed)
	}
}

// readCases returns the rows, first the header.
func readCases(t *testing.T) []caseRow {
	t.Helper()
	text, err := os.ReadFile("../../../network/testdata/cases.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var rows []caseRow
	for line := range bytes.Lines(text) {
		var row caseRow
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		rows = append(rows, row)
	}
	return rows
}
