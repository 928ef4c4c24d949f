// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// datagrams is the one socket to which a command sends the datagrams of SOCKS5. One association at a
// time has it: what arrives says nothing about the association that it is for.
type datagrams struct {
	socket net.PacketConn
	turn   chan struct{} // has an element while the socket is in use
}

var errLent = errors.New("netaccess: another association has the socket for datagrams")

// lendTime is how long an association waits for the one before it, which may be ending.
const lendTime = time.Second

// open returns the socket for an association, until that closes it.
func (d *datagrams) open() (net.PacketConn, error) {
	socket, ok := d.socket.(interface{ File() (*os.File, error) })
	if !ok {
		return nil, errors.ErrUnsupported
	}
	late := time.NewTimer(lendTime)
	defer late.Stop()
	select {
	case d.turn <- struct{}{}:
	case <-late.C:
		return nil, errLent
	}
	conn, err := copyOf(socket)
	if err != nil {
		<-d.turn
		return nil, err
	}
	return &lentSocket{PacketConn: conn, back: sync.OnceFunc(func() { <-d.turn })}, nil
}

// copyOf returns another descriptor of a socket, whose reads end with itself.
func copyOf(socket interface{ File() (*os.File, error) }) (net.PacketConn, error) {
	f, err := socket.File()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return net.FilePacketConn(f)
}

// A lentSocket is given back when it is closed.
type lentSocket struct {
	net.PacketConn
	back func()
}

// Close ends its reads. It may be called more than once.
func (l *lentSocket) Close() error {
	err := l.PacketConn.Close()
	l.back()
	return err
}
