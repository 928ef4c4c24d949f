// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// Options say where an exec-server listens, and for whom.
type Options struct {
	// Listen is "stdio", "ws://IP:PORT" or "wss://IP:PORT" (port 0 is a free one), "unix:///PATH":
	// WebSockets on a socket that only this user reaches, or "fd://": the socket that systemd has passed.
	Listen string
	Auth   Auth
	// TLS is for ports. A port with it is served as wss, whatever Listen says.
	TLS TLS
	// Insecure allows a port that other machines reach without authentication.
	Insecure bool
	// Idle ends a server that listens when it has had no client, and nothing that runs for one,
	// for that long. Zero means never.
	Idle time.Duration
	// MaxClients is how many clients are served at once; 0 means 512.
	MaxClients int
	// Gateway serves the clients. Nil means an exec-server of this process, which Server is for.
	Gateway Gateway
	Server  execserver.Options
	// Stdin and Stdout are for "stdio"; on Stdout the URL of other listeners is printed.
	Stdin  io.ReadCloser
	Stdout io.WriteCloser
}

// A Gateway serves clients that a listener has let in.
type Gateway interface {
	// Serve speaks with one client until the connection ends, and closes the stream. Credential
	// identifies the client; it is empty for all where no authentication is asked for. Query has the
	// values of the URL that the client has called; nil for lines. The error says why the connection
	// has ended, and is nil when the client has ended it properly.
	Serve(stream wire.Stream, credential string, query url.Values) error
	// Shutdown ends all connections, and lets none in any more. It blocks until they have ended;
	// when ctx ends, it waits for no client any more.
	Shutdown(ctx context.Context) error
}

// An ownServer is the exec-server of this process.
type ownServer struct{ *execserver.Server }

// Serve implements Gateway.
func (s ownServer) Serve(stream wire.Stream, credential string, _ url.Values) error {
	return s.Server.Serve(stream, credential)
}

// clients returns how many are served at once.
func (o *Options) clients() int { return cmp.Or(o.MaxClients, defaultClients) }

// gateway returns what serves the clients.
func (o *Options) gateway() Gateway {
	if o.Gateway != nil {
		return o.Gateway
	}
	return ownServer{execserver.New(o.Server)}
}

// activatedURL is the socket that systemd has passed.
const activatedURL = "fd://"

// errAddress is the end of errors about Options.Listen.
var errAddress = errors.New("use ws://IP:PORT, wss://IP:PORT, unix:///PATH, fd:// or stdio")

// Run serves until ctx ends, the process gets SIGINT or SIGTERM, it is idle for Options.Idle, or
// with "stdio" the client sends no more. It returns when every process has ended, and the clients
// know that, as Shutdown of the [Gateway] has it; a further signal ends the wait for them. An
// error says why it could not serve.
func Run(ctx context.Context, o Options) error {
	ctx, hurry, stop := Ends(ctx)
	defer stop()
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE) // a client that has gone is an error of a write
	defer signal.Stop(pipe)
	gate, err := o.Auth.gate()
	if err != nil {
		return err
	}
	encryption, err := o.TLS.Config()
	if err != nil {
		return err
	}
	if o.Listen == "stdio" || o.Listen == "stdio://" {
		if o.Auth.Kind != "" {
			return errStdio
		}
		if encryption != nil {
			return errTLSListen
		}
		return serveLines(ctx, hurry, o)
	}
	hidden, err := secrets(o.Auth.TokenFile, o.Auth.SecretFile, o.TLS.Key)
	if err != nil {
		return err
	}
	o.Server.Hidden = append(o.Server.Hidden, hidden...)
	if o.Server.Kept, err = absolute(o.Auth.TokenFile, o.Auth.SecretFile, o.TLS.Key, o.TLS.Cert,
		o.TLS.ClientCA); err != nil {
		return err
	}
	// What systemd says is for this process alone.
	o.Server.Environ = slices.DeleteFunc(slices.Clone(o.Server.Environ), func(v string) bool {
		return strings.HasPrefix(v, "LISTEN_PID=") || strings.HasPrefix(v, "LISTEN_FDS=") ||
			strings.HasPrefix(v, "LISTEN_FDNAMES=")
	})
	listener, url, err := listen(o)
	if err != nil {
		return err
	}
	if encryption != nil {
		address, ok := strings.CutPrefix(url, "ws://")
		if !ok {
			return errors.Join(errTLSListen, listener.Close())
		}
		listener, url = boundedTLS(listener, encryption, maxOpen(o.clients())), "wss://"+address
	} else {
		listener = newBoundedListener(listener, maxOpen(o.clients()))
	}
	return serveHTTP(ctx, hurry, o, o.TLS.gate(gate), listener, url)
}

// Ends returns a context that ends with parent or a signal which asks for the end of this process,
// and one that ends with a signal after that. Stop has signals count as before, and ends both.
func Ends(parent context.Context) (ctx, hurry context.Context, stop func()) {
	ctx, end := context.WithCancel(parent)
	hurry, now := context.WithCancel(context.WithoutCancel(parent))
	arrived, over := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(arrived, os.Interrupt, syscall.SIGTERM)
	var work sync.WaitGroup
	work.Go(func() {
		for {
			select {
			case <-arrived:
			case <-over:
				return
			}
			if ctx.Err() != nil {
				now()
			}
			end()
		}
	})
	return ctx, hurry, func() {
		signal.Stop(arrived)
		close(over)
		work.Wait()
		end()
		now()
	}
}

// listen opens the listener of o.
func listen(o Options) (net.Listener, string, error) {
	if path, ok := strings.CutPrefix(o.Listen, "unix://"); ok {
		l, err := listenUnix(path)
		if err != nil {
			return nil, "", fmt.Errorf("cannot listen: %w", err)
		}
		return l, "unix://" + path, nil
	}
	if o.Listen == activatedURL {
		return o.listenActivated()
	}
	address, ok := strings.CutPrefix(o.Listen, "ws://")
	if encrypted, is := strings.CutPrefix(o.Listen, "wss://"); is {
		if o.TLS.Cert == "" {
			return nil, "", errNoTLS
		}
		address, ok = encrypted, true
	}
	if !ok {
		return nil, "", fmt.Errorf("unsupported listen address %q: %w", o.Listen, errAddress)
	}
	host, err := netip.ParseAddrPort(strings.TrimSuffix(address, "/"))
	if err != nil {
		return nil, "", fmt.Errorf("invalid listen address %q: %w", o.Listen, errAddress)
	}
	if err := o.mayListen(host); err != nil {
		return nil, "", err
	}
	l, err := net.Listen("tcp", host.String())
	if err != nil {
		return nil, "", fmt.Errorf("cannot listen: %w", err)
	}
	return l, "ws://" + l.Addr().String(), nil
}

// listenUnix makes a socket for this user's processes outside of sandboxes.
func listenUnix(path string) (net.Listener, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("the path of the socket %q is not absolute: %w", path, errAddress)
	}
	return dirs.ListenSocket(path)
}

// mayListen returns why a TCP port must not be served.
func (o *Options) mayListen(host netip.AddrPort) error {
	if o.Auth.Kind == "" && o.TLS.ClientCA == "" && !o.Insecure && !host.Addr().Unmap().IsLoopback() {
		return fmt.Errorf("%s is reached by other machines, and without authentication each of them could run commands here: "+
			"set `--ws-auth` or `--tls-client-ca`, or `--insecure` if that is intended", host)
	}
	return nil
}

// listenActivated returns the listener that the service manager has opened.
func (o *Options) listenActivated() (net.Listener, string, error) {
	l, err := activated()
	if err != nil {
		return nil, "", fmt.Errorf("cannot listen: %w", err)
	}
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return l, "unix://" + l.Addr().String(), nil
	}
	if err := o.mayListen(address.AddrPort()); err != nil {
		return nil, "", errors.Join(err, l.Close())
	}
	return l, "ws://" + l.Addr().String(), nil
}

// serveHTTP serves clients of a listener until ctx ends. It waits for them until hurry ends.
func serveHTTP(ctx, hurry context.Context, o Options, g gate, l net.Listener, url string) error {
	idle := newIdler(o.Idle)
	defer idle.stop()
	o.Server.Busy = idle.change
	d := newDoor(o.gateway(), g, o.clients())
	d.busy = idle.change
	if strings.HasPrefix(url, "unix://") && o.Auth.Kind == "" {
		l = d.alsoLines(l)
	}
	failed, end := d.open(l)
	_, err := fmt.Fprintln(o.Stdout, url)
	if err == nil {
		select {
		case <-ctx.Done():
		case <-idle.over:
		case err = <-failed:
		}
	}
	if err = errors.Join(err, end(hurry)); err != nil {
		return fmt.Errorf("cannot serve: %w", err)
	}
	return nil
}

// Questions serves the methods about open questions on a listener, which it owns, and nothing else,
// until end is called: that waits a moment for answers which are on their way, and may be called more
// than once. Clients need no token.
func Questions(l net.Listener, q *runs.Questions) (end func()) {
	const moment = 200 * time.Millisecond
	server := execserver.New(execserver.Options{Questions: q, Detached: -1, Drain: moment})
	d := newDoor(ownServer{server}, open, defaultClients)
	_, stop := d.open(newBoundedListener(l, maxOpen(defaultClients)))
	return sync.OnceFunc(func() { _ = stop(context.Background()) }) // who has gone does not need an answer
}

// serveLines serves one client on standard input and output.
func serveLines(ctx, hurry context.Context, o Options) error {
	served := o.gateway()
	over := make(chan error, 1)
	go func() { over <- served.Serve(wire.Lines(o.Stdin, o.Stdout), "", nil) }()
	var err error
	select {
	case <-ctx.Done(): // a read of standard input cannot be ended, so it is not waited for
	case err = <-over:
	}
	if err = errors.Join(err, served.Shutdown(hurry)); err != nil {
		return fmt.Errorf("cannot serve: %w", err)
	}
	return nil
}
