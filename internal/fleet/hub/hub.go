// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub is the NATS server of a fleet in this process, and who may use it.
//
// [Start] serves the files of a directory, the store. Without tenants and nodes in it all users of
// this machine are let in; with them, none without credentials. [AddTenant], [AddNode], [RemoveTenant] and
// [RemoveNode] change the store, also while a hub of any process serves it.
//
// The only truth is the file of keys in the store, which one process changes at a time. The claims that the
// engine reads are made of it: at the start of a hub, and when a change was saved and the hub is told at its
// unix socket. So a hub that was killed, or could not be told, is right at the latest when it starts again.
//
// A store that has had a tenant or a node asks for credentials for ever: a removal opens nothing.
package hub

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// Patience is how long a command waits for the hub, and the hub for its engine.
const Patience = 10 * time.Second

// Options are those of [Start]. The zero Options serve the store of this user on the usual port.
type Options struct {
	// Listen is HOST:PORT, where HOST is an IP address or localhost; port 0 is a free one. Empty means
	// 127.0.0.1:4222.
	Listen string
	// Store is the directory; empty means [DefaultStore]. It is made, or must have mode 0700.
	Store string
	// TLS has the certificate of the server; nil means no TLS.
	TLS *tls.Config
	// Insecure allows an address that other machines reach while no credentials are needed.
	Insecure bool
	// MaxStore is how many bytes all streams may have; 0 means 1 TiB, or three quarters of what the disk has
	// while no credentials are needed.
	MaxStore int64
	// Say is called with lines for people about what goes wrong meanwhile; nil says nothing.
	Say func(line string)
}

// ErrRunning says that a hub serves the store already.
var ErrRunning = errors.New("another hub serves it")

// A Hub is a server that runs.
type Hub struct {
	o       Options
	store   *store
	engine  *engine
	address *net.TCPAddr
	socket  net.Listener
	cancel  context.CancelCauseFunc
	done    chan struct{}
	err     error // why it has ended; read after done
}

// Start starts a hub, and returns when clients can connect. It runs until ctx ends or [Hub.Close] is called.
// It blocks for a few milliseconds, or while another process changes the store. The error is [ErrRunning] if
// another hub serves the store.
func Start(ctx context.Context, o Options) (_ *Hub, err error) {
	address, err := parseAddress(o.Listen)
	if err != nil {
		return nil, err
	}
	s, err := openStore(o.Store)
	if err != nil {
		return nil, err
	}
	h := &Hub{o: o, store: s, address: address, done: make(chan struct{})}
	if err := h.start(); err != nil {
		if h.socket != nil {
			_ = h.socket.Close() // the error says more
		}
		s.close()
		return nil, err
	}
	s.unlock()
	ctx, h.cancel = context.WithCancelCause(ctx)
	go h.run(ctx)
	return h, nil
}

// start takes the socket, which one hub has at a time, and starts the engine.
func (h *Hub) start() (err error) {
	f, _, err := h.store.load()
	if err != nil {
		return err
	}
	if f.Operator == "" && !h.address.IP.IsLoopback() && !h.o.Insecure {
		return fmt.Errorf("%s is reached by other machines, and no credentials are needed yet; add a tenant "+
			"with `sallyport fleet add-tenant`, or use `--insecure` if that is intended", h.address)
	}
	h.socket, err = dirs.ListenSocket(h.store.socket())
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("cannot use the store %s: %w; stop it, or use another `--store`",
			text.Word(h.store.path), ErrRunning)
	}
	if err != nil {
		return fmt.Errorf("cannot serve commands about the hub: %w", err)
	}
	return h.startEngine(f)
}

// startEngine starts the engine at the address, which has the port then.
func (h *Hub) startEngine(f *fleet) (err error) {
	if h.engine, err = startEngine(&h.o, h.store, h.address, f); err != nil {
		return fmt.Errorf("cannot start the hub: %w", err)
	}
	if at, ok := h.engine.s.Addr().(*net.TCPAddr); ok {
		h.address = &net.TCPAddr{IP: h.address.IP, Port: at.Port}
	}
	return nil
}

// parseAddress reads HOST:PORT.
func parseAddress(listen string) (*net.TCPAddr, error) {
	if listen == "" {
		listen = "127.0.0.1:4222"
	}
	host, port, err := net.SplitHostPort(listen)
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip := net.ParseIP(host)
	n, err2 := strconv.ParseUint(port, 10, 16)
	if err != nil || err2 != nil || ip == nil {
		return nil, fmt.Errorf("invalid address %s; use IP:PORT, such as 127.0.0.1:4222 or [::1]:0",
			text.Word(listen))
	}
	return &net.TCPAddr{IP: ip, Port: int(n)}, nil
}

// URL is where clients connect, such as nats://127.0.0.1:4222. It begins with nats:// also with TLS, which
// clients learn from the server.
func (h *Hub) URL() string {
	at := *h.address
	if at.IP.IsUnspecified() {
		at.IP = net.IPv4(127, 0, 0, 1)
	}
	return "nats://" + at.String()
}

// Exposed reports whether other machines reach the hub.
func (h *Hub) Exposed() bool { return !h.address.IP.IsLoopback() }

// Wait blocks until the hub has ended. The error is nil after [Hub.Close] and the end of the context.
func (h *Hub) Wait() error {
	<-h.done
	return h.err
}

// Close ends the hub, and returns when its files are closed. What clients stored stays. It may be called more
// than once, and returns the error of [Hub.Wait].
func (h *Hub) Close() error {
	h.cancel(nil)
	return h.Wait()
}

// run answers commands one after another until ctx ends.
func (h *Hub) run(ctx context.Context) {
	defer close(h.done)
	stop := context.AfterFunc(ctx, func() { _ = h.socket.Close() })
	defer stop()
	for {
		c, err := h.socket.Accept()
		if err != nil {
			h.cancel(err) // nothing after the end of ctx
			break
		}
		if err := h.answer(c); err != nil {
			h.cancel(err)
			break
		}
	}
	_ = h.socket.Close()
	if h.engine != nil {
		h.engine.stop()
	}
	h.store.close()
	if why := context.Cause(ctx); !errors.Is(why, context.Canceled) {
		h.err = why
	}
}

// fine is the answer to a command.
const fine = "ok"

// answer reads one command: to read the store again, which the other process has locked, and to let in a new
// user. The error is that of an engine that has stopped.
func (h *Hub) answer(c net.Conn) (ended error) {
	defer c.Close() //nolint:errcheck // the answer was sent, or the other process has gone
	_ = c.SetDeadline(time.Now().Add(2 * Patience))
	name, err := bufio.NewReaderSize(c, 128).ReadSlice('\n')
	if err != nil {
		return nil // the other process has gone
	}
	said := fine
	ended, err = h.reload(strings.TrimSuffix(string(name), "\n"))
	if err != nil {
		said = err.Error()
	}
	_, _ = fmt.Fprintln(c, text.Line(said)) // as above
	return ended
}

// reload takes what the store has now. A hub that was open starts its engine anew, which closes all
// connections.
func (h *Hub) reload(verify string) (ended, err error) {
	f, _, err := h.store.load()
	if err != nil || f.Operator == "" {
		return nil, err
	}
	if h.engine.set == nil {
		h.engine.stop()
		h.engine = nil
		if err := h.startEngine(f); err != nil {
			return err, err
		}
	} else {
		now, err := f.claims()
		if err != nil {
			return nil, err
		}
		if err := h.engine.update(f, now); err != nil {
			return nil, err
		}
	}
	if CheckName(verify) != nil {
		return nil, nil //nolint:nilerr // there is none to verify
	}
	creds, err := h.store.root.ReadFile(credsPath(verify))
	if err != nil {
		return nil, err
	}
	p, err := h.engine.connect(creds)
	if err != nil {
		return nil, fmt.Errorf("the new credentials are not let in: %w", err)
	}
	p.close()
	return nil, nil
}

// tell has the hub at a socket read the store again, and let in a new user if verify is not empty. No hub is
// no error: the next one reads the store.
func tell(ctx context.Context, socket, verify string) error {
	c, err := dirs.DialSocket(ctx, socket, true)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT) ||
		errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot tell the hub: %w", err)
	}
	defer c.Close() //nolint:errcheck // its answer was read
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if err = c.SetDeadline(time.Now().Add(2 * Patience)); err == nil {
		_, err = fmt.Fprintln(c, verify)
	}
	said := ""
	if err == nil {
		said, err = bufio.NewReader(c).ReadString('\n')
	}
	switch said = strings.TrimSuffix(said, "\n"); {
	case err != nil:
		return fmt.Errorf("the hub does not answer: %w; restart it", err)
	case said != fine:
		return fmt.Errorf("the hub refused: %s; restart it", said)
	}
	return nil
}
