// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/network"
)

// TestUpstream: the line about the proxy names it, says whether it is there, and has no password.
func TestUpstream(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	for _, tt := range []struct {
		name, setting string
		variables     map[string]string
		ok            bool
		says          string
	}{
		{name: "none", setting: "none", ok: true, says: "none; hosts that are allowed are reached directly"},
		{name: "an environment without one", setting: "environment", ok: true, says: "none;"},
		{name: "one that is there", setting: "http://dev:s3cret@" + l.Addr().String(), ok: true, says: "http://***@" + l.Addr().String() + " accepts connections"},
		{name: "one that is not", setting: "socks5h://dev:s3cret@" + gone.Addr().String(), says: "socks5h://***@" + gone.Addr().String() + " did not accept a connection: "},
		{name: "one of two", setting: "environment", variables: map[string]string{"http_proxy": l.Addr().String(), "https_proxy": "dev:s3cret@" + gone.Addr().String()}, says: "http://***@" + gone.Addr().String() + " did not"},
		{name: "a malformed one", setting: "ftp://dev:s3cret@x", says: "invalid upstream proxy: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u, err := network.ParseUpstream(tt.setting,
				func(name string) string { return tt.variables[name] })
			c := Upstream(t.Context(), u, err)
			if c.OK != tt.ok || !strings.HasPrefix(c.Detail, tt.says) || (c.Fix == "") != tt.ok || c.Needed ||
				strings.Contains(c.Detail+c.Fix, "s3cret") {
				t.Errorf("%+v", c)
			}
		})
	}
	if c := Upstream(t.Context(), nil, errors.New("the file is not readable")); c.OK ||
		c.Detail != "the file is not readable" {
		t.Errorf("%+v", c)
	}
}
