// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// A Publish opens one TCP port of a command's own network to this machine: who connects to HostPort of
// 127.0.0.1 reaches what listens at Port of the command's loopback interface. Every user of this
// machine can.
type Publish struct {
	Port     uint16 `json:"port"`      // inside; 0 is not valid
	HostPort uint16 `json:"host_port"` // on 127.0.0.1 of this machine; 0 means Port
}

// ParsePublish reads "PORT" or "PORT:HOSTPORT".
func ParsePublish(text string) (Publish, error) {
	inside, outside, two := strings.Cut(text, ":")
	port, err := parsePublished(inside)
	if err != nil {
		return Publish{}, err
	}
	p := Publish{Port: port, HostPort: port}
	if two && outside != "0" {
		p.HostPort, err = parsePublished(outside)
	}
	return p, err
}

func parsePublished(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != text {
		return 0, fmt.Errorf("%q is not a port; write PORT or PORT:HOSTPORT with numbers from 1 to 65535",
			text)
	}
	return uint16(n), nil
}

// Host returns the port of this machine.
func (p Publish) Host() uint16 { return cmp.Or(p.HostPort, p.Port) }
