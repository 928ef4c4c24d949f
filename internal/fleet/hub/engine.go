// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

const (
	maxPayload = 1 << 20   // bytes of one message
	maxPending = 256 << 20 // bytes that wait for one connection, before it is closed
	// pingInterval and maxPings say when a silent connection is closed: after about six seconds.
	pingInterval = 2 * time.Second
	maxPings     = 2
	// writeDeadline is how long a connection that takes nothing is kept.
	writeDeadline = 30 * time.Second
	// maxStore is the sum of what all accounts may store, in bytes, if there are accounts.
	maxStore = 1 << 40
)

// An engine is a NATS server in this process.
type engine struct {
	s     *server.Server
	store *store
	set   *set // nil: no authentication
}

// startEngine starts a server that lets in the users of the fleet; without an operator, all. It returns when
// clients can connect.
func startEngine(o *Options, s *store, address *net.TCPAddr, f *fleet) (*engine, error) {
	var claims *set
	var err error
	if f.Operator != "" {
		if claims, err = f.claims(); err != nil {
			return nil, err
		}
	}
	log := &logger{say: o.Say}
	so := &server.Options{ServerName: "sallyport", Host: address.IP.String(), Port: address.Port,
		NoSigs: true, NoLog: true, MaxPayload: maxPayload, MaxPending: maxPending,
		WriteDeadline: writeDeadline, PingInterval: pingInterval, MaxPingsOut: maxPings, AuthTimeout: 10,
		TLSTimeout: 10, TLSConfig: o.TLS,
		JetStream: true, StoreDir: s.path, JetStreamMaxStore: o.MaxStore, DisableJetStreamBanner: true}
	if so.Port == 0 {
		so.Port = server.RANDOM_PORT
	}
	if claims != nil {
		resolver, err := claims.resolver(s)
		if err != nil {
			return nil, fmt.Errorf("cannot write the accounts: %w", err)
		}
		so.TrustedOperators = []*jwt.OperatorClaims{claims.operator}
		so.SystemAccount, so.AccountResolver = claims.system, resolver
		if so.JetStreamMaxStore == 0 {
			so.JetStreamMaxStore = maxStore
		}
	}
	e := &engine{store: s, set: claims}
	if e.s, err = server.NewServer(so); err != nil {
		return nil, err
	}
	e.s.SetLoggerV2(log, false, false, false)
	e.s.Start()
	if err := log.fatal(); err != nil {
		e.stop()
		return nil, err
	}
	if err := e.prepare(f); err != nil {
		e.stop()
		return nil, err
	}
	return e, nil
}

// resolver writes the claims of all accounts, and returns what the engine reads them with.
func (s *set) resolver(st *store) (*server.DirAccResolver, error) {
	// Claims that are there would win over older ones, where the clock was set back.
	if err := safefile.RemoveTree(st.root, jwtName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := makeDir(st.root, jwtName); err != nil {
		return nil, err
	}
	const alone = 24 * time.Hour // there is no other server to compare with, or to ask for an account
	r, err := server.NewDirAccResolver(filepath.Join(st.path, jwtName), 0, alone, server.HardDelete,
		server.FetchTimeout(time.Millisecond))
	if err != nil {
		return nil, err
	}
	for id, token := range s.tokens {
		if err := r.Store(id, token); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// stop ends the server, and returns when its files are closed.
func (e *engine) stop() {
	e.s.Shutdown()
	e.s.WaitForShutdown()
}

// nodesBucket is the stream of the bucket `nodes`, as a client makes it.
const nodesBucket = `{"name":"KV_nodes","subjects":["$KV.nodes.>"],"storage":"file","retention":"limits",
"max_msgs_per_subject":1,"max_msgs":-1,"max_bytes":-1,"max_msg_size":-1,"max_consumers":-1,"num_replicas":1,
"discard":"new","duplicate_window":120000000000,"allow_rollup_hdrs":true,"deny_delete":true,
"allow_direct":true}`

// prepare makes the bucket `nodes` of each account that has none. A node may make it, too; one that is
// hostile would have the engine copy messages of others into it, or to itself.
func (e *engine) prepare(f *fleet) error {
	for _, a := range f.accounts() {
		creds, _, err := newUser(a.Seed, "hub", nil)
		if err == nil {
			err = e.request(creds, "$JS.API.STREAM.CREATE.KV_nodes", nodesBucket)
		}
		var refused *answerError
		if errors.As(err, &refused) && refused.Code == uint16(server.JSStreamNameExistErr) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot prepare the account %s: %w", a.Name, err)
		}
	}
	return nil
}

// update pushes what has changed. Connections of users that are gone are closed when it returns.
func (e *engine) update(f *fleet, now *set) error {
	creds, _, err := newUser(f.System, "hub", nil)
	if err != nil {
		return err
	}
	var gone []any
	for id := range e.set.tokens {
		if now.tokens[id] == "" {
			gone = append(gone, id)
		}
	}
	for id, shape := range now.shapes {
		if e.set.shapes[id] == shape {
			continue
		}
		if err := e.request(creds, "$SYS.REQ.CLAIMS.UPDATE", now.tokens[id]); err != nil {
			return err
		}
	}
	if gone != nil {
		c := jwt.NewGenericClaims(now.operator.Subject)
		c.Data["accounts"] = gone
		token, err := c.Encode(now.operators)
		if err != nil {
			return err
		}
		if err := e.request(creds, "$SYS.REQ.CLAIMS.DELETE", token); err != nil {
			return err
		}
	}
	e.set = now
	if err := e.prepare(f); err != nil {
		return err
	}
	for _, id := range gone {
		if err := e.store.root.RemoveAll(filepath.Join(dataName, fmt.Sprint(id))); err != nil {
			return fmt.Errorf("cannot remove what the tenant has stored: %w", err)
		}
	}
	return nil
}

func (e *engine) request(creds []byte, subject, body string) error {
	p, err := e.connect(creds)
	if err != nil {
		return err
	}
	defer p.close()
	return p.request(subject, body)
}

func (e *engine) connect(creds []byte) (*probe, error) {
	c, err := e.s.InProcessConn()
	if err != nil {
		return nil, err
	}
	return newProbe(c, creds)
}

// A logger keeps why a server did not start, and tells when streams stop. The rest of what the engine says is
// about single clients, who could fill a log with it.
type logger struct {
	say func(line string)

	mu  sync.Mutex
	err error
}

func (l *logger) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Fatalf implements server.Logger.
func (l *logger) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = fmt.Errorf(format, v...)
}

// Errorf implements server.Logger.
func (l *logger) Errorf(format string, v ...any) {
	full := strings.Contains(format, "DISABLED") || strings.Contains(format, "critical write error")
	if l.say != nil && full {
		l.say("nothing can be stored any more: " + fmt.Sprintf(format, v...) +
			"; make room and restart the hub")
	}
}

// Noticef implements server.Logger.
func (l *logger) Noticef(string, ...any) {}

// Warnf implements server.Logger.
func (l *logger) Warnf(string, ...any) {}

// Debugf implements server.Logger.
func (l *logger) Debugf(string, ...any) {}

// Tracef implements server.Logger.
func (l *logger) Tracef(string, ...any) {}
