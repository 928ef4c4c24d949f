// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
)

// An Op is the kind of thing a process wants to do. The zero Op is OpUnknown,
// which no policy allows.
type Op uint8

// The kinds of access. Exec is judged like Read: a file that may be read may
// be run.
const (
	OpUnknown Op = iota // not known; never allowed
	Read                // read a file, list a folder
	Write               // create, change, rename or remove a file, or change its metadata
	Exec                // run a program
	Connect             // send to an address
	Bind                // listen on an address
	Signal              // signal, trace or otherwise reach a process outside
)

var opWords = [...]string{"unknown", "read", "write", "exec", "connect", "bind", "signal"}

// String returns the word of the operation as it stands in JSON, such as
// "write". An Op that is not one of the constants is "unknown".
func (o Op) String() string { return wordOf(opWords[:], uint8(o)) }

// ParseOp returns the Op for a word that [Op.String] gives. Any other word is
// an error.
func ParseOp(word string) (Op, error) {
	i, err := parseWord("operation", opWords[:], word)
	return Op(i), err
}

// MarshalText implements [encoding.TextMarshaler] with the word of String.
func (o Op) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]; see [ParseOp].
func (o *Op) UnmarshalText(text []byte) error {
	v, err := ParseOp(string(text))
	if err != nil {
		return err
	}
	*o = v
	return nil
}

// isFile reports whether o is judged by its path.
func (o Op) isFile() bool { return o == Read || o == Write || o == Exec }

// An Access is one thing that a process wants to do. The zero Access asks for
// nothing known and is always refused.
type Access struct {
	Op Op
	// Path is the file of Read, Write and Exec: absolute and clean, with
	// symbolic links resolved by whoever observed the access. A path that is
	// not clean is refused by every confining policy.
	Path string
	// Addr is the peer of Connect and Bind: "host:port", with an IPv6 address
	// in brackets, or the path of a unix socket (abstract names begin with "@").
	Addr string
	// Net is the protocol: "tcp", "udp", "unix", "http" or "https". Empty
	// means tcp.
	Net string
}

// Target returns the path of a file operation and the address of the others.
func (a Access) Target() string {
	if a.Op.isFile() || a.Addr == "" {
		return a.Path
	}
	return a.Addr
}

// String returns the access as a person reads it, such as "write /etc/hosts".
func (a Access) String() string {
	if t := a.Target(); t != "" {
		return a.Op.String() + " " + t
	}
	return a.Op.String()
}

// A Ruling answers an Access. The zero Ruling is Deny; rulings are ordered, so
// that the smaller one is the stricter one.
type Ruling uint8

// The rulings, strictest first.
const (
	Deny  Ruling = iota // refused
	Ask                 // somebody has to be asked first
	Allow               // goes through
)

var rulingWords = [...]string{"deny", "ask", "allow"}

// String returns "deny", "ask" or "allow". A value beyond the constants is
// "unknown" and means Deny to everybody.
func (r Ruling) String() string { return wordOf(rulingWords[:], uint8(r)) }

// MarshalText implements [encoding.TextMarshaler] with the word of String.
func (r Ruling) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. An unknown word is an
// error and leaves r as it was.
func (r *Ruling) UnmarshalText(text []byte) error {
	i, err := parseWord("ruling", rulingWords[:], string(text))
	if err != nil {
		return err
	}
	*r = Ruling(i)
	return nil
}

// A Gate rules on an access while the process that wants it waits.
type Gate interface {
	// Ask blocks until there is a ruling or ctx ends. With an error the
	// ruling counts as Deny. Implementations must be safe for concurrent use.
	Ask(ctx context.Context, a Access) (Ruling, error)
}

// wordOf returns the word of a small enumeration, "unknown" outside of it.
func wordOf(words []string, i uint8) string {
	if int(i) >= len(words) {
		return "unknown"
	}
	return words[i]
}

// parseWord is the inverse of wordOf. What names the enumeration in the error.
func parseWord(what string, words []string, word string) (uint8, error) {
	for i, w := range words {
		if w == word {
			return uint8(i), nil
		}
	}
	return 0, fmt.Errorf("sandbox: unknown %s %q", what, word)
}
