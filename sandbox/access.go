// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// Op is an operation that a process wants to perform. The zero Op is OpUnknown, which no
// policy allows.
type Op uint8

// The operations. Exec is judged like Read: a file that may be read may be run.
const (
	OpUnknown Op = iota // never allowed
	Read                // read a file, list a directory
	Write               // create, change, rename or remove a file, or change its metadata
	Exec                // run a program
	Connect             // send to an address
	Bind                // listen on an address
	Signal              // signal, trace or otherwise reach a process outside
	Syscall             // make a system call that the filter refuses
)

var opWords = []string{"unknown", "read", "write", "exec", "connect", "bind", "signal", "syscall"}

// String returns the word of the operation in JSON, such as "write". An Op that is not one
// of the constants is "unknown".
func (o Op) String() string { return wordOf(opWords, o) }

// MarshalText implements [encoding.TextMarshaler] with the word of String.
func (o Op) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. An unknown word is an error and
// leaves o as it was.
func (o *Op) UnmarshalText(text []byte) error { return parseWord("operation", opWords, text, o) }

// Access is one operation on one target. The zero Access is always denied.
type Access struct {
	Op Op `json:"op"`
	// Path is the file of Read, Write and Exec: absolute and clean, without symbolic links.
	// Every policy that restricts files denies a path that is not clean.
	Path string `json:"path"`
	// Addr is the peer of Connect and Bind: "host:port", with an IPv6 address in brackets,
	// or the path of a unix socket (abstract names begin with "@").
	Addr string `json:"addr"`
	// Call is the system call of Syscall, with the arguments that had it refused where it
	// depends on them: "keyctl", "unshare(CLONE_NEWUSER)", "socket(AF_PACKET, SOCK_RAW)".
	Call string `json:"call"`
	// Net is the protocol: "tcp", "udp", "unix", "http" or "https". Empty means tcp. It is
	// not part of the JSON form.
	Net string `json:"-"`
}

// Target returns the path of a file operation, the call of Syscall, and the address of the
// others.
func (a Access) Target() string {
	if a.Op == Syscall {
		return a.Call
	}
	file := a.Op == Read || a.Op == Write || a.Op == Exec
	if file || a.Addr == "" {
		return a.Path
	}
	return a.Addr
}

// String returns the operation and the target for people, such as "write /etc/hosts". A
// target that does not print is quoted as in Go source.
func (a Access) String() string {
	switch t := a.Target(); {
	case t != "" && a.Op == Syscall:
		return a.Op.String() + " " + text.Line(t) // it has spaces and brackets
	case t != "":
		return a.Op.String() + " " + text.Word(t)
	}
	return a.Op.String()
}

// Ruling is the answer to an Access. The zero Ruling is Deny. Rulings are ordered: the
// smaller one is the stricter one.
type Ruling uint8

// The rulings, strictest first.
const (
	Deny  Ruling = iota // not allowed
	Ask                 // needs an approval
	Allow               // allowed
)

var rulingWords = []string{"deny", "ask", "allow"}

// String returns "deny", "ask" or "allow". A value that is not one of the constants is
// "unknown" and means Deny.
func (r Ruling) String() string { return wordOf(rulingWords, r) }

// MarshalText implements [encoding.TextMarshaler] with the word of String.
func (r Ruling) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. An unknown word is an error and
// leaves r as it was.
func (r *Ruling) UnmarshalText(text []byte) error { return parseWord("ruling", rulingWords, text, r) }

// wordOf returns the word of a value, or "unknown".
func wordOf[T ~uint8](words []string, v T) string {
	if int(v) >= len(words) {
		return "unknown"
	}
	return words[v]
}

// parseWord sets v to the value of a word. What names the type in the error.
func parseWord[T ~uint8](what string, words []string, text []byte, v *T) error {
	for i, w := range words {
		if w == string(text) {
			*v = T(i)
			return nil
		}
	}
	return fmt.Errorf("sandbox: unknown %s %q", what, text)
}
