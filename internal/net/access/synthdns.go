// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/sallyport-dev/sallyport/network"
)

const (
	// MaxNames is how many names have an address that is given out again. One that was given out stands
	// for its name until MaxAddresses others were.
	MaxNames     = 1 << 16
	MaxAddresses = 1<<17 - 1
	// lifetime is how long a client may keep an answer, in seconds.
	lifetime = 60
)

// The ranges of the addresses that stand for names: one that is for tests of networks (RFC 2544), and
// a local one (RFC 4193). Neither has hosts that a policy could allow by name.
var (
	range4 = netip.MustParsePrefix("198.18.0.0/15")
	range6 = netip.MustParsePrefix("fd5a:7970:6f72::/96")
)

// A SyntheticNames answers for one command. Decide and Report must be set before use; its methods are
// safe for concurrent use.
type SyntheticNames struct {
	// Decide says whether the policy may open a name on some port: Allow and Ask mean that it may.
	Decide func(network.Host) network.Decision
	// Report is told of each name that is refused. It must not block.
	Report func(network.Host, network.Decision)

	mu    sync.Mutex
	index map[string]uint32 // of names in slots
	slots []string          // by index
	next  uint32            // the index that is given out next, once all were
	first uint32            // the oldest index whose name is in index
}

// Host returns the name that an address stands for, or false if it stands for none.
func (s *SyntheticNames) Host(addr netip.Addr) (network.Host, bool) {
	addr = addr.Unmap()
	var i uint32
	switch b := addr.AsSlice(); {
	case range4.Contains(addr):
		base := range4.Addr().As4()
		i = binary.BigEndian.Uint32(b) - binary.BigEndian.Uint32(base[:])
	case range6.Contains(addr):
		i = binary.BigEndian.Uint32(b[12:])
	default:
		return network.Host{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i == 0 || int(i) > len(s.slots) {
		return network.Host{}, false
	}
	h, err := network.ParseHost(s.slots[i-1])
	return h, err == nil
}

// of returns the index, from 1 on, of the addresses that stand for a name.
func (s *SyntheticNames) of(name string) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, ok := s.index[name]; ok {
		return i + 1
	}
	if s.index == nil {
		s.index = map[string]uint32{}
	}
	i := s.next
	if int(i) < len(s.slots) {
		s.slots[i] = name
	} else {
		s.slots = append(s.slots, name)
	}
	s.next = (s.next + 1) % MaxAddresses
	s.index[name] = i
	if len(s.index) > MaxNames {
		delete(s.index, s.slots[s.first])
		s.first = (s.first + 1) % MaxAddresses
	}
	return i + 1
}

// Answer returns the answer to a message, or nil if there is none.
func (s *SyntheticNames) Answer(message []byte) []byte {
	q, code, ok := parse(message)
	switch {
	case !ok:
		return nil
	case code == dnsmessage.RCodeSuccess && q.questions[0].Class != dnsmessage.ClassINET:
		code = dnsmessage.RCodeRefused
	}
	if code != dnsmessage.RCodeSuccess {
		return q.answer(code, "")
	}
	host, err := network.ParseHost(hostOf(q.questions[0]))
	if _, literal := host.Addr(); err != nil || literal {
		return q.answer(dnsmessage.RCodeNameError, "") // such a name cannot exist
	}
	d := s.Decide(host)
	open := d.Ruling == network.Allow || d.Ruling == network.Ask
	if !open && !host.IsLocal() {
		s.Report(host, d)
		return q.answer(dnsmessage.RCodeNameError, "the network policy of the sandbox refuses this name")
	}
	kind := q.questions[0].Type
	if kind != dnsmessage.TypeA && kind != dnsmessage.TypeAAAA {
		return q.answer(dnsmessage.RCodeSuccess, "") // the name exists, and has nothing of that type
	}
	return q.answer(dnsmessage.RCodeSuccess, "", s.addresses(host, open, kind == dnsmessage.TypeA)...)
}

// hostOf returns the name that a question is about. Where a client looks for a service of a host, as apt
// does (_http._tcp.HOST, RFC 2782), that is the host: it is what the client connects to then.
func hostOf(q dnsmessage.Question) string {
	name := strings.TrimSuffix(q.Name.String(), ".")
	for q.Type != dnsmessage.TypeA && q.Type != dnsmessage.TypeAAAA && strings.HasPrefix(name, "_") {
		_, rest, more := strings.Cut(name, ".")
		if !more {
			break
		}
		name = rest
	}
	return name
}

// addresses returns those of one family for a host. Local names lead to the command itself, unless the
// policy opens one: localhost is found without a question, so it stays what it is.
func (s *SyntheticNames) addresses(host network.Host, open, four bool) (list []dnsmessage.ResourceBody) {
	if host.IsLocal() && (!open || !strings.HasSuffix(host.Name(), ".localhost")) {
		for _, a := range host.LocalAddrs() {
			switch {
			case a.Is4() && four:
				list = append(list, &dnsmessage.AResource{A: a.As4()})
			case !a.Is4() && !four:
				list = append(list, &dnsmessage.AAAAResource{AAAA: a.As16()})
			}
		}
		return list
	}
	i := s.of(host.Name())
	if four {
		a := range4.Addr().As4()
		binary.BigEndian.PutUint32(a[:], binary.BigEndian.Uint32(a[:])+i)
		return append(list, &dnsmessage.AResource{A: a})
	}
	a := range6.Addr().As16()
	binary.BigEndian.PutUint32(a[12:], i)
	return append(list, &dnsmessage.AAAAResource{AAAA: a})
}

// Serve answers the datagrams of a socket until it is closed.
func (s *SyntheticNames) Serve(conn net.PacketConn) {
	b := make([]byte, maxQuery)
	for {
		n, from, err := conn.ReadFrom(b)
		if err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() { //nolint:errorlint // as net returns it
				continue
			}
			return
		}
		if answer := s.Answer(b[:n]); answer != nil {
			_, _ = conn.WriteTo(answer, from) // the client asks again
		}
	}
}
