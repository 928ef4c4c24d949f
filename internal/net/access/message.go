// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"encoding/binary"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// maxQuery is the size of a query in bytes that is read whole.
	maxQuery = 1232

	optionExtended = 15 // EDNS: an extended error (RFC 8914)
	errorBlocked   = 15
)

// A query is what is read of a message.
type query struct {
	header    dnsmessage.Header
	questions []dnsmessage.Question // one, or none where it cannot be read
	edns      bool                  // the client reads extended errors
}

// parse reads a query. The code is one for the answer; success says that the query can be answered. It
// is not ok for a message that gets no answer: too short, or itself an answer.
func parse(message []byte) (q query, code dnsmessage.RCode, ok bool) {
	var p dnsmessage.Parser
	var err error
	if q.header, err = p.Start(message); err != nil || q.header.Response {
		return q, 0, false
	}
	if q.header.OpCode != 0 {
		return q, dnsmessage.RCodeNotImplemented, true
	}
	var m dnsmessage.Message
	if m.Unpack(message) != nil || len(m.Questions) != 1 || len(m.Answers)+len(m.Authorities) > 0 {
		return q, dnsmessage.RCodeFormatError, true
	}
	q.questions = m.Questions
	for _, r := range m.Additionals {
		q.edns = q.edns || r.Header.Type == dnsmessage.TypeOPT
	}
	return q, dnsmessage.RCodeSuccess, true
}

// answer returns the message that answers a query, with the addresses; nil where there can be none.
func (q *query) answer(code dnsmessage.RCode, blocked string, addresses ...dnsmessage.ResourceBody) []byte {
	m := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: q.header.ID, Response: true, OpCode: q.header.OpCode,
			RecursionDesired: q.header.RecursionDesired, RecursionAvailable: true, RCode: code,
		},
		Questions: q.questions,
	}
	for _, a := range addresses {
		head := dnsmessage.ResourceHeader{Name: q.questions[0].Name, Class: dnsmessage.ClassINET,
			TTL: lifetime}
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: a})
	}
	if q.edns {
		opt := dnsmessage.Resource{Body: &dnsmessage.OPTResource{}}
		if blocked != "" {
			data := append(binary.BigEndian.AppendUint16(nil, errorBlocked), blocked...)
			opt.Body = &dnsmessage.OPTResource{Options: []dnsmessage.Option{{Code: optionExtended, Data: data}}}
		}
		_ = opt.Header.SetEDNS0(maxQuery, dnsmessage.RCodeSuccess, false) // it has no error
		m.Additionals = append(m.Additionals, opt)
	}
	b, err := m.Pack()
	if err != nil {
		return nil
	}
	return b
}
