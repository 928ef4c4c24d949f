// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Redirection says where connections are led. The ports must not be zero.
type Redirection struct {
	TCP uint16 // the port of the loopback interface that gets connections
	DNS uint16 // the one that gets datagrams to port 53, on 127.0.0.1 and ::1
	// Local are ports of the loopback interface from which connections are redirected, too; with none
	// a connection to a loopback address reaches what the command itself serves there.
	Local []uint16
}

// Routes returns the messages for NETLINK_ROUTE after which every address of a family (AF_INET or
// AF_INET6) is one of this namespace, reached from its loopback address. The last asks for an
// acknowledgment.
func Routes(family int) []byte { return route(family, nil) }

// LocalRoutes is [Routes] for one address only.
func LocalRoutes(addr netip.Addr) []byte {
	if addr.Is4() {
		return route(unix.AF_INET, addr.AsSlice())
	}
	return route(unix.AF_INET6, addr.AsSlice())
}

// route returns the message for an address, or for all of a family.
func route(family int, to []byte) []byte {
	source := []byte{127, 0, 0, 1}
	if family == unix.AF_INET6 {
		source = append(make([]byte, 15), 1)
	}
	const loopback = 1 // the index of lo, the first interface of every namespace
	var m netlinkMessage
	m.begin(unix.RTM_NEWROUTE, unix.NLM_F_REQUEST|unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	// struct rtmsg
	m.add(byte(family), byte(8*len(to)), 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_STATIC, unix.RT_SCOPE_HOST,
		unix.RTN_LOCAL)
	m.u32(0)
	if to != nil {
		m.attribute(unix.RTA_DST, to)
	}
	m.attribute(unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, loopback))
	m.attribute(unix.RTA_PREFSRC, source)
	m.end()
	return m.bytes
}

// The names of the table and its chains.
const (
	netlinkTable = "sallyport"
	natChain     = "redirect"
	dropChain    = "refuse"
)

// Rules returns the messages for NETLINK_NETFILTER that lead connections as c says. The one before
// the last, the end of the batch, asks for an acknowledgment. All of them take effect, or none.
func Rules(c Redirection) []byte {
	b := batch{}
	b.control(unix.NFNL_MSG_BATCH_BEGIN)
	b.begin(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE)
	b.attribute(unix.NFTA_TABLE_NAME, text(netlinkTable))
	b.end()
	b.chain(natChain, "nat", -100) // NF_IP_PRI_NAT_DST
	b.chain(dropChain, "filter", 0)

	// Names are asked for at any address, the loopback ones as well: systemd-resolved has one.
	b.rule(natChain, false, protocol(unix.IPPROTO_UDP), port(53), redirectTo(c.DNS))
	for _, local := range c.Local {
		b.rule(natChain, false, protocol(unix.IPPROTO_TCP), port(local), redirectTo(c.TCP))
	}
	b.rule(natChain, false, toLoopback4(unix.NFT_CMP_EQ), accept())
	b.rule(natChain, false, toLoopback6(unix.NFT_CMP_EQ), accept())
	b.rule(natChain, false, protocol(unix.IPPROTO_TCP), redirectTo(c.TCP))

	// What was redirected goes to the loopback interface by now. All else is refused at once, so that
	// programs do not wait: QUIC, other datagrams, echo requests.
	b.rule(dropChain, false, toLoopback4(unix.NFT_CMP_NEQ), refuse())
	b.rule(dropChain, true, toLoopback6(unix.NFT_CMP_NEQ), refuse())
	b.control(unix.NFNL_MSG_BATCH_END)
	return b.bytes
}

// An expression is a part of a rule, with its name and attributes.
type expression struct {
	name string
	data []byte
}

// The register that expressions use.
const register = unix.NFT_REG_1

func protocol(number byte) []expression {
	return []expression{meta(unix.NFT_META_L4PROTO), compare(unix.NFT_CMP_EQ, number)}
}

// port is the destination port of TCP or UDP.
func port(number uint16) []expression {
	return []expression{load(unix.NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2),
		compare(unix.NFT_CMP_EQ, binary.BigEndian.AppendUint16(nil, number)...)}
}

// toLoopback4 are packets of IPv4 to 127.0.0.0/8, or to other addresses.
func toLoopback4(operation uint32) []expression {
	return []expression{
		meta(unix.NFT_META_NFPROTO), compare(unix.NFT_CMP_EQ, unix.NFPROTO_IPV4),
		load(unix.NFT_PAYLOAD_NETWORK_HEADER, 16, 1), compare(operation, 127),
	}
}

// toLoopback6 are packets of IPv6 to ::1, or to other addresses.
func toLoopback6(operation uint32) []expression {
	return []expression{
		meta(unix.NFT_META_NFPROTO), compare(unix.NFT_CMP_EQ, unix.NFPROTO_IPV6),
		load(unix.NFT_PAYLOAD_NETWORK_HEADER, 24, 16), compare(operation, append(make([]byte, 15), 1)...),
	}
}

// redirectTo leads to a port of the loopback interface, as packets that are sent here are.
func redirectTo(number uint16) []expression {
	return []expression{
		{"immediate", join(
			numbered(unix.NFTA_IMMEDIATE_DREG, register),
			nested(unix.NFTA_IMMEDIATE_DATA, attribute(unix.NFTA_DATA_VALUE,
				binary.BigEndian.AppendUint16(nil, number))),
		)},
		{"redir", numbered(unix.NFTA_REDIR_REG_PROTO_MIN, register)},
	}
}

func accept() []expression {
	const accepted = 1 // NF_ACCEPT
	const (
		data   = 2 // NFTA_DATA_ and the register for what becomes of a packet
		code   = 1
		result = 0
	)
	return []expression{{"immediate", join(
		numbered(unix.NFTA_IMMEDIATE_DREG, result),
		nested(unix.NFTA_IMMEDIATE_DATA, nested(data, numbered(code, accepted))),
	)}}
}

// refuse answers that nothing listens at the port.
func refuse() []expression {
	return []expression{{"reject", join(
		numbered(unix.NFTA_REJECT_TYPE, unix.NFT_REJECT_ICMPX_UNREACH),
		attribute(unix.NFTA_REJECT_ICMP_CODE, []byte{unix.NFT_REJECT_ICMPX_PORT_UNREACH}),
	)}}
}

func meta(key uint32) expression {
	return expression{"meta", join(numbered(unix.NFTA_META_DREG, register),
		numbered(unix.NFTA_META_KEY, key))}
}

func load(base, offset, length uint32) expression {
	return expression{"payload", join(
		numbered(unix.NFTA_PAYLOAD_DREG, register), numbered(unix.NFTA_PAYLOAD_BASE, base),
		numbered(unix.NFTA_PAYLOAD_OFFSET, offset), numbered(unix.NFTA_PAYLOAD_LEN, length),
	)}
}

func compare(operation uint32, value ...byte) expression {
	return expression{"cmp", join(
		numbered(unix.NFTA_CMP_SREG, register), numbered(unix.NFTA_CMP_OP, operation),
		nested(unix.NFTA_CMP_DATA, attribute(unix.NFTA_DATA_VALUE, value)),
	)}
}
