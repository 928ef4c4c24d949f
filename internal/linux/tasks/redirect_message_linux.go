// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"
)

// A netlinkMessage is a list of netlink messages (netlink(7)).
type netlinkMessage struct {
	bytes []byte
	start int // of the message that is made
}

// begin begins a message, with its length left open.
func (m *netlinkMessage) begin(kind, flags uint16) {
	m.start = len(m.bytes)
	m.u32(0)
	m.bytes = binary.NativeEndian.AppendUint16(m.bytes, kind)
	m.bytes = binary.NativeEndian.AppendUint16(m.bytes, flags)
	m.u32(uint32(m.start)) // any number tells it from others
	m.u32(0)
}

func (m *netlinkMessage) end() {
	binary.NativeEndian.PutUint32(m.bytes[m.start:], uint32(len(m.bytes)-m.start))
}

func (m *netlinkMessage) add(b ...byte) { m.bytes = append(m.bytes, b...) }

func (m *netlinkMessage) u32(v uint32) { m.bytes = binary.NativeEndian.AppendUint32(m.bytes, v) }

func (m *netlinkMessage) attribute(kind uint16, value []byte) {
	m.bytes = append(m.bytes, attribute(kind, value)...)
}

// attribute returns an attribute, filled up to a multiple of four bytes.
func attribute(kind uint16, value []byte) []byte {
	const head = 4
	b := make([]byte, 0, head+len(value)+3)
	b = binary.NativeEndian.AppendUint16(b, uint16(head+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// nested returns an attribute that holds others.
func nested(kind uint16, attributes []byte) []byte {
	return attribute(kind|unix.NLA_F_NESTED, attributes)
}

// numbered returns an attribute of nftables that holds a number.
func numbered(kind uint16, v uint32) []byte {
	return attribute(kind, binary.BigEndian.AppendUint32(nil, v))
}

func text(s string) []byte { return append([]byte(s), 0) }

func join(parts ...[]byte) []byte { return slices.Concat(parts...) }

// A batch is a list of messages for nftables.
type batch struct{ netlinkMessage }

// head appends struct nfgenmsg.
func (b *batch) head(family byte, resource uint16) {
	b.add(family, unix.NFNETLINK_V0)
	b.bytes = binary.BigEndian.AppendUint16(b.bytes, resource)
}

// control appends the begin or the end of the batch.
func (b *batch) control(kind uint16) {
	b.netlinkMessage.begin(kind, unix.NLM_F_REQUEST)
	b.head(unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)
	b.end()
}

func (b *batch) begin(kind, flags uint16) {
	b.netlinkMessage.begin(unix.NFNL_SUBSYS_NFTABLES<<8|kind, unix.NLM_F_REQUEST|flags)
	b.head(unix.NFPROTO_INET, 0)
}

// chain appends a chain for what processes here send.
func (b *batch) chain(name, kind string, priority int32) {
	const localOut = 3 // NF_INET_LOCAL_OUT
	b.begin(unix.NFT_MSG_NEWCHAIN, unix.NLM_F_CREATE)
	b.attribute(unix.NFTA_CHAIN_TABLE, text(netlinkTable))
	b.attribute(unix.NFTA_CHAIN_NAME, text(name))
	b.add(nested(unix.NFTA_CHAIN_HOOK, join(
		numbered(unix.NFTA_HOOK_HOOKNUM, localOut), numbered(unix.NFTA_HOOK_PRIORITY, uint32(priority)),
	))...)
	b.attribute(unix.NFTA_CHAIN_TYPE, text(kind))
	b.end()
}

// rule appends a rule to a chain. The last one asks for an acknowledgment.
func (b *batch) rule(chain string, last bool, parts ...[]expression) {
	flags := uint16(unix.NLM_F_CREATE | unix.NLM_F_APPEND)
	if last {
		flags |= unix.NLM_F_ACK
	}
	b.begin(unix.NFT_MSG_NEWRULE, flags)
	b.attribute(unix.NFTA_RULE_TABLE, text(netlinkTable))
	b.attribute(unix.NFTA_RULE_CHAIN, text(chain))
	var list []byte
	for _, e := range slices.Concat(parts...) {
		list = append(list, nested(unix.NFTA_LIST_ELEM, join(attribute(unix.NFTA_EXPR_NAME, text(e.name)),
			nested(unix.NFTA_EXPR_DATA, e.data)))...)
	}
	b.add(nested(unix.NFTA_RULE_EXPRESSIONS, list)...)
	b.end()
}
