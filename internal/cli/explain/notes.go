// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// maxLines is how many lines of ours follow a program that failed, and maxCauses how many of
// them are about what was denied: more are not read, and `sallyport why` has all of it.
const (
	maxLines  = 3
	maxCauses = 2
)

// Shortlist puts the likeliest cause before what needs the user, and other causes after it, and
// says how many lines were left out.
func Shortlist(causes, needs []string) []string {
	first := min(len(causes), 1)
	lines := slices.Concat(causes[:first], needs, causes[first:min(len(causes), maxCauses)])
	shown := min(len(lines), maxLines)
	left := len(causes) + len(needs) - shown
	lines = lines[:shown]
	if left > 0 {
		lines[shown-1] += fmt.Sprintf(" (%d more: run `sallyport why`)", left)
	}
	return lines
}

// IsNetwork reports whether a denial is one of a network that is off, not of a host that a policy
// refused, and not of a service of this machine.
func IsNetwork(d *sandbox.Denial) bool {
	return !strings.HasPrefix(d.Rule, grants.ServiceRule) &&
		(d.Source != sandbox.Proxied || d.Rule == "network="+sandbox.NetworkNone.String()) &&
		(d.Op == sandbox.Connect || d.Op == sandbox.Bind) && d.Net != "unix" &&
		!strings.HasPrefix(d.Addr, "/") && !strings.HasPrefix(d.Addr, "@")
}

// Listens says that the program listens at a port, and how this machine reaches it. HostPort is the port of
// this machine: another one where something listens at the same.
func Listens(port uint16) string {
	at := strconv.Itoa(int(port))
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", at))
	if err != nil {
		return at + " listens inside; open it with --publish " + at +
			":PORT, because here something listens at " + at
	}
	_ = l.Close()
	return at + " listens inside; open it with --publish " + at
}

// Offline names what was tried and by what: "network is off (DNS lookup, npm); ...".
func Offline(d *sandbox.Denial) string {
	var about []string
	const dns = "53"
	if _, port, err := net.SplitHostPort(d.Addr); err == nil && port == dns {
		about = append(about, "DNS lookup")
	} else if d.Addr != "" {
		about = append(about, text.Word(d.Addr))
	}
	// What a process calls itself says more than the interpreter, and may have its arguments
	// behind it.
	name, _, _ := strings.Cut(d.Name, " ")
	if name == "" && d.Program != "" {
		name = path.Base(d.Program)
	}
	if name != "" {
		about = append(about, text.Word(name))
	}
	text := "network is off"
	if len(about) > 0 {
		text += " (" + strings.Join(about, ", ") + ")"
	}
	return text + "; allow with " + cmp.Or(d.Grant, "--net host")
}
