// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bus connects a part of the fleet to its hub, a NATS server. It is the only user of the client of
// NATS: messages by subject, and facts that outlive processes, in buckets with compare-and-set.
package bus

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// reconnectWait is how long a connection that was cut waits before it is made again. Nodes must be back
	// before those that watch them, which begin their clocks when they are connected again, have run out.
	reconnectWait = 150 * time.Millisecond
	// pingInterval is how often the hub must answer; two answers that are missing end the connection.
	pingInterval = 2 * time.Second
	dialTime     = 5 * time.Second
	sayTime      = 10 * time.Second
	defaultPort  = "4222"
)

// Options say how a hub is reached.
type Options struct {
	URL   string // nats://HOST[:PORT] or tls://HOST[:PORT]; the port is 4222 by default
	Creds string // a file with credentials; empty for none
	// Account is the public key of the account that they are for, which is a part of subjects; empty without
	// any.
	Account string
	// CA is a file with certificates (PEM) that sign the hub's; empty: those of the system. With a CA, or
	// tls://, a hub without TLS is refused; without both a machine in between can pose as such a hub.
	CA     string
	CAFlag string // the flag that CA is given by, for errors
	Name   string // told to the hub
	// Inbox is the first part of the subjects on which answers of the hub arrive; empty is _INBOX. A user
	// that may not see the answers of others has one of its own.
	Inbox string
	// Timeout is how long a hub that is not there yet is tried; zero means for ever.
	Timeout time.Duration
	// Say is told every 10 seconds that there is no hub, also later; nil does nothing. It may be called from
	// another goroutine.
	Say func(message string)
}

// ErrCredentials says that the hub does not let these credentials in.
var ErrCredentials = errors.New("the hub refuses these credentials")

// ErrNotTrusted says that a hub does not prove who it is: its certificate is not trusted, or it has no TLS.
var ErrNotTrusted = errors.New("the hub is not trusted")

// A Conn is a connection to a hub, which is made again when it was cut. Make one with Connect. Its methods
// may be called from several goroutines at once.
type Conn struct {
	nats    *nats.Conn
	js      jetstream.JetStream
	id      string
	account string
	since   atomic.Int64  // when it was connected last, in nanoseconds of the clock since the start; 0: it is not
	over    chan struct{} // closed when it is over for good
	done    sync.Once
	why     error        // of the end; set before over is closed
	say     func(string) // of Options
	url     string
	missing atomic.Bool           // a goroutine says that there is no hub
	failure atomic.Pointer[error] // of the last attempt to connect again
	refused error                 // set before the end that it brings
	begin   time.Time

	mu   sync.Mutex
	cuts map[int]hooks
	next int
}

// Connect connects to a hub. It blocks until there is one, until ctx ends, or for Options.Timeout.
// Credentials that are refused are ErrCredentials, and a hub that is not trusted is ErrNotTrusted: these are
// not tried again.
func Connect(ctx context.Context, o Options) (*Conn, error) {
	address, err := address(o.URL)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(CheckCreds(o.Creds), o.checkCA()); err != nil {
		return nil, err
	}
	c := &Conn{account: o.Account, say: o.Say, url: address, id: newID(), over: make(chan struct{}), begin: time.Now(),
		cuts: make(map[int]hooks)}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var limit, say <-chan time.Time
	if o.Timeout > 0 {
		t := time.NewTimer(o.Timeout)
		defer t.Stop()
		limit = t.C
	}
	ticker := time.NewTicker(sayTime)
	defer ticker.Stop()
	if o.Say != nil {
		say = ticker.C
	}
	tries := make(chan error, 1)
	var last error
	for {
		go func() { tries <- c.dial(address, &o) }()
		for waiting := true; waiting; {
			select {
			case last = <-tries:
				waiting = false
			case <-say:
				o.Say(fmt.Sprintf("no hub at %s yet%s; trying again", address, because(last)))
			case <-ctx.Done():
				go func() { // that of the last try
					if <-tries == nil {
						c.nats.Close()
					}
				}()
				return nil, fmt.Errorf("no hub at %s: %w", address, context.Cause(ctx))
			}
		}
		if last == nil {
			return c, nil
		}
		if refused := o.refusal(address, last); refused != nil {
			return nil, refused
		}
		pause := time.NewTimer(reconnectWait)
		select {
		case <-pause.C:
		case <-limit:
			return nil, fmt.Errorf("no hub at %s: %w", address, last)
		case <-ctx.Done():
			return nil, fmt.Errorf("no hub at %s: %w", address, errors.Join(context.Cause(ctx), last))
		}
	}
}

// because is why an attempt failed, in brackets; nil is not known.
func because(err error) string {
	if err == nil {
		return ""
	}
	return " (" + err.Error() + ")"
}

// refusal returns why an attempt failed that would fail again: the hub refuses this side, or this side the
// hub. Nil is for other errors.
func (o *Options) refusal(address string, err error) error {
	untrusted := new(tls.CertificateVerificationError)
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired),
		errors.Is(err, nats.ErrAuthRevoked):
		return fmt.Errorf("%w: %w", ErrCredentials, err)
	case errors.Is(err, nats.ErrSecureConnWanted):
		return fmt.Errorf("%w: there is no TLS at %s; start the hub with --tls-cert and --tls-key, or leave tls:// "+
			"and %s out", ErrNotTrusted, address, o.CAFlag)
	case !errors.As(err, &untrusted):
		return nil
	}
	fix := "give the hub a certificate that is valid now"
	if errors.As(err, new(x509.UnknownAuthorityError)) {
		fix = "name the file with the certificate of its authority by " + o.CAFlag
	} else if errors.As(err, new(x509.HostnameError)) {
		fix = "use a name or an address of the hub that its certificate has"
	}
	return fmt.Errorf("%w: %s: %w; %s", ErrNotTrusted, address, untrusted, fix)
}

// checkCA returns why the file CA cannot be used.
func (o *Options) checkCA() error {
	if o.CA == "" {
		return nil
	}
	pem, err := os.ReadFile(o.CA)
	if err != nil {
		return fmt.Errorf("cannot read the certificates of %s: %w", o.CAFlag, err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s has no certificate in PEM form; %s names the certificate that signs the hub's",
			o.CA, o.CAFlag)
	}
	return nil
}

// dial makes one attempt to connect.
func (c *Conn) dial(address string, o *Options) (err error) {
	options := []nats.Option{
		nats.Name(o.Name), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectWait/3, reconnectWait/3), nats.ReconnectBufSize(-1),
		nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(2), nats.NoEcho(),
		nats.Timeout(dialTime),
		nats.ConnectHandler(func(*nats.Conn) { c.connected() }),
		nats.ReconnectHandler(func(*nats.Conn) { c.connected() }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { c.failure.Store(&err) }),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { c.disconnected() }),
		nats.ClosedHandler(func(n *nats.Conn) { // also when credentials are refused twice
			c.disconnected()
			c.done.Do(func() {
				c.why = errors.Join(c.refused, n.LastError())
				close(c.over)
			})
		}),
		nats.ErrorHandler(func(n *nats.Conn, _ *nats.Subscription, err error) { c.failed(n, err) }),
	}
	if o.Inbox != "" {
		options = append(options, nats.CustomInboxPrefix(o.Inbox))
	}
	if o.Creds != "" {
		options = append(options, nats.UserCredentials(o.Creds))
	}
	if o.CA != "" {
		options = append(options, nats.RootCAs(o.CA), nats.Secure())
	}
	if c.nats, err = nats.Connect(address, options...); err != nil {
		return err //nolint:wrapcheck // Connect says where
	}
	c.connected()
	c.js, err = jetstream.New(c.nats)
	return err //nolint:wrapcheck // no error without options
}

// CheckURL returns what is wrong with the URL of a hub.
func CheckURL(target string) error {
	_, err := address(target)
	return err
}

// address returns the URL of a hub as the client of NATS wants it.
func address(target string) (string, error) {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "nats" && u.Scheme != "tls" || u.Hostname() == "" || u.User != nil ||
		u.Path != "" && u.Path != "/" {
		return "", fmt.Errorf("invalid URL %q of a hub; use nats://HOST:PORT, and --creds for credentials",
			target)
	}
	port := u.Port()
	if port == "" {
		port = defaultPort
	}
	return u.Scheme + "://" + net.JoinHostPort(u.Hostname(), port), nil
}

// CheckCreds returns why a file of credentials must not be used: everybody can read it. Empty is no file.
func CheckCreds(name string) error {
	if name == "" {
		return nil
	}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("cannot use the credentials %s: %w; sallyport fleet add-tenant and add-node write them", name,
			fs.ErrNotExist)
	case err != nil:
		return fmt.Errorf("cannot read the credentials: %w", err)
	case info.Mode().Perm()&0o007 != 0:
		return fmt.Errorf("everybody on this machine can read the credentials %s; run chmod o= on that file", name)
	}
	return nil
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// failed ends a connection whose credentials count no more. Of other refusals the client of NATS counts two.
func (c *Conn) failed(n *nats.Conn, err error) {
	if errors.Is(err, nats.ErrAuthRevoked) || errors.Is(err, nats.ErrAuthExpired) ||
		errors.Is(err, nats.ErrAccountAuthExpired) {
		c.refused = err
		n.Close()
	}
}

// hooks are what OnCut was given.
type hooks struct{ cut, back func() }

func (c *Conn) connected() {
	if c.since.CompareAndSwap(0, max(int64(time.Since(c.begin)), 1)) {
		c.tell(func(h hooks) func() { return h.back })
	}
}

func (c *Conn) disconnected() {
	if c.since.Swap(0) != 0 && c.say != nil && c.missing.CompareAndSwap(false, true) {
		go c.miss()
	}
	c.tell(func(h hooks) func() { return h.cut })
}

// miss says again and again that there is no hub any more, until there is one.
func (c *Conn) miss() {
	defer c.missing.Store(false)
	ticker := time.NewTicker(sayTime)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-c.over:
			return
		}
		if c.For() > 0 {
			return
		}
		var why error
		if failure := c.failure.Load(); failure != nil {
			why = *failure
		}
		c.say(fmt.Sprintf("no hub at %s any more%s; trying again", c.url, because(why)))
	}
}

func (c *Conn) tell(which func(hooks) func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.cuts {
		which(h)()
	}
}

// OnCut has cut called each time the connection is cut, and back when it is made again; they must not block,
// and call no OnCut. Messages on their way may be lost at a cut. Stop ends that.
func (c *Conn) OnCut(cut, back func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	n := c.next
	c.cuts[n] = hooks{cut, back}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.cuts, n)
	}
}

// ID is a random name of this connection, 22 characters that may be part of a subject.
func (c *Conn) ID() string { return c.id }

// Account is that of the Options.
func (c *Conn) Account() string { return c.account }

// Server is an ID of the hub, which changes when that is started again; empty while there is none.
func (c *Conn) Server() string { return c.nats.ConnectedServerId() }

// For returns how long the connection is there; zero: it is cut.
func (c *Conn) For() time.Duration {
	since := c.since.Load()
	if since == 0 {
		return 0
	}
	return max(time.Since(c.begin)-time.Duration(since), 1)
}

// Await waits until there is a hub, as long as Get does.
func (c *Conn) Await(ctx context.Context) error {
	back := make(chan struct{}, 1)
	defer c.OnCut(func() {}, func() {
		select {
		case back <- struct{}{}:
		default:
		}
	})()
	timer := time.NewTimer(hubTime)
	defer timer.Stop()
	for c.For() == 0 {
		select {
		case <-back:
		case <-timer.C:
			return fmt.Errorf("the hub at %s is away", c.url)
		case <-c.over:
			return c.Err()
		case <-ctx.Done():
			return fmt.Errorf("the hub at %s is away: %w", c.url, context.Cause(ctx))
		}
	}
	return nil
}

// Over is closed when the connection has ended for good: by Close, or since the hub refuses the credentials,
// as after they were removed.
func (c *Conn) Over() <-chan struct{} { return c.over }

// Err returns why the connection is over.
func (c *Conn) Err() error {
	<-c.over
	return fmt.Errorf("%w: %w; --creds takes a file that sallyport fleet add-tenant or add-node has written",
		ErrCredentials, errors.Join(c.why))
}

// Publish sends a message to those who have subscribed to the subject, which is at most once. It does not
// keep data. While the connection is cut it is an error.
func (c *Conn) Publish(subject string, data []byte) error {
	return c.nats.Publish(subject, data) //nolint:wrapcheck // callers treat every error as a cut
}

// Subscribe has receive called for the messages of a subject, one after another, each with the subject that
// it was sent to; the data belong to it. What waits for receive takes memory: those who send must have a
// bound. Messages with headers are dropped, for the hub sends answers with some to where those who ask want
// them; but not those that have only what it adds to messages that come from another account.
func (c *Conn) Subscribe(subject string, receive func(subject string, data []byte)) (stop func(), err error) {
	sub, err := c.nats.Subscribe(subject, func(m *nats.Msg) {
		if len(m.Header) == 0 || len(m.Header) == 1 && m.Header["Nats-Request-Info"] != nil {
			receive(m.Subject, m.Data)
		}
	})
	if err == nil {
		err = sub.SetPendingLimits(-1, -1)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot subscribe to %s: %w", subject, err)
	}
	return func() { _ = sub.Unsubscribe() }, nil // the connection may have ended
}

// Check asks the hub for an answer: when it has come, all that was sent before has reached the hub, and what
// the hub had for this connection was received.
func (c *Conn) Check(ctx context.Context) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, dialTime)
		defer cancel()
	}
	if err := c.nats.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("the hub does not answer: %w", err)
	}
	return nil
}

// Close ends the connection, with what was sent before on its way.
func (c *Conn) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if c.For() > 0 {
		_ = c.nats.FlushWithContext(ctx) // a hub that is gone needs nothing
	}
	c.nats.Close()
	<-c.over
}

// Token reports whether a text may be one part of a subject, as names of nodes are: 1 to 64 letters, digits,
// - and _, of which - is not the first one.
func Token(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	return name != "" && name[0] != '-' && len(name) <= 64 && strings.Trim(name, letters) == ""
}
