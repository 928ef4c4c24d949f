// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/netip"
	"time"

	"github.com/sallyport-dev/sallyport/network"
)

// Kind says what an [Event] is about.
type Kind uint8

// The kinds of events.
const (
	Decided Kind = iota // a request was allowed or refused
	Closed              // a connection that was allowed has ended, or could not be made
)

// Cause says why a connection ended.
type Cause string

// The causes.
const (
	Ended       Cause = "ended"        // both ends, or one of them, closed it
	Failed      Cause = "failed"       // it broke, or what came was malformed
	DialFailed  Cause = "dial_failed"  // no vetted address could be connected to
	Idle        Cause = "idle"         // nothing came for too long
	SNIRefused  Cause = "sni_mismatch" // TLS was for another host, which is not allowed
	Interrupted Cause = "interrupted"  // the Service was closed
	Revoked     Cause = "revoked"      // the policy has changed, and does not allow it any more
)

// Event is a decision, or the end of a connection.
type Event struct {
	Kind Kind
	// Host is the normalized host. For the reason invalid_host it is what the client sent,
	// quoted and at most 253 bytes of it.
	Host     string
	Port     uint16 // 0 where it could not be read
	Protocol network.Protocol
	Method   string // of plain HTTP; empty where it cannot be seen
	// Decision is what was decided, also of a connection that ended.
	Decision network.Decision
	// Addrs are the addresses of a name that was refused because the policy closes all of them.
	Addrs []netip.Addr
	// Failure says in a few words why the name has no address, or no address could be connected to.
	Failure string
	// Time is when it was decided.
	Time time.Time

	// The rest is of Closed only.

	// the address that was connected to; not valid if there was none, or an upstream proxy
	Resolved netip.AddrPort
	Up, Down int64         // bytes from the command and to it, without those of this proxy
	Duration time.Duration // since it was decided
	Cause    Cause
}

// report tells an event.
func (s *Service) report(e Event) {
	if s.command.Report == nil {
		return
	}
	s.tells.Lock()
	defer s.tells.Unlock()
	s.command.Report(e)
}
