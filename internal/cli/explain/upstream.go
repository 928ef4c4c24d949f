// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/sallyport-dev/sallyport/network"
)

// patience is how long a proxy may take to accept a connection.
const patience = 3 * time.Second

// Upstream checks the proxy by which allowed hosts are reached, by connecting to it; nothing is sent.
// Nil is none, and wrong is why it is not known. The check has no password in it.
func Upstream(ctx context.Context, u *network.Upstream, wrong error) Check {
	c := Check{Name: "upstream proxy"}
	if wrong != nil {
		c.Detail, c.Fix = wrong.Error(), "correct it; until then no host is reached"
		return c
	}
	for _, p := range u.Proxies() {
		d := net.Dialer{Timeout: patience}
		conn, err := d.DialContext(ctx, "tcp", p.Authority())
		if err != nil {
			if op := new(net.OpError); errors.As(err, &op) {
				err = op.Err
			}
			c.Detail = p.String() + " did not accept a connection: " + err.Error()
			c.Fix = "start it, or correct network.upstream or the variable that names it; sallyport config show names which one holds"
			return c
		}
		_ = conn.Close()
	}
	c.OK, c.Detail = true, u.String()+" accepts connections"
	if u == nil {
		c.Detail = "none; hosts that are allowed are reached directly"
	}
	return c
}
