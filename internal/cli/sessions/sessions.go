// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sessions is the command line of runs that go on without a terminal: run --detach, ps,
// attach, logs, send, wait, screen, kill and rm, and of recordings of terminals: play and recordings.
//
// Each verb is a client of an exec-server that serves runs: the daemon of this user, or with
// --remote another one. It makes requests, shows the answers, and keeps nothing: what a run is,
// what it may do and what is retained of it is known to the server only. Only [Detach] starts the
// daemon, for without one there are no runs.
package sessions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// Env is what a verb runs in. All members must be set.
type Env struct {
	*args.Env
	// Program is this program with the arguments that make it an exec-server which ends when it
	// is idle.
	Program []string
	// Print prints an answer for people, and PrintJSON one object for programs; Tell prints a
	// message on standard error.
	Print     func(text string) error
	PrintJSON func(v any) error
	Tell      func(lines ...string)
}

// Options are the flags of all verbs. The zero value of a member means that its flag was not given.
type Options struct {
	json, follow, noNewline, eof bool
	target                       config.Server
	narrow                       bool // one run in front of the user, and nothing else
	detachKeys, signal           string
	conditions                   runs.Conditions
	timeout                      *time.Duration
	raw                          bool
	after                        *uint64
	text                         bool
	speed                        float64        // of play; 0 is 1
	idleLimit                    *time.Duration // likewise
}

// A client speaks with a server.
type client interface {
	wire.Caller
	Close() error
}

// errNone says that no daemon runs.
var errNone = errors.New("no daemon is running")

// connect returns a client of the server that flags name. Without one it is the daemon, which is
// started only with start; errNone is returned where it does not run.
func (o *Options) connect(ctx context.Context, env *Env, start bool,
	opts wire.ClientOptions) (client, error) {
	opts.Name, opts.Extensions = "sallyport", true
	if err := o.target.Check(); err != nil {
		return nil, err
	}
	if o.target.URL != "" {
		target, err := o.remote(env)
		if err != nil {
			return nil, err
		}
		if !o.target.IsFleet() {
			return dial(ctx, target, opts)
		}
		site, err := o.fleet(ctx, env)
		if err != nil {
			return nil, err
		}
		return site.dial(ctx, target.URL, opts)
	}
	const tries = 4 // a daemon may end between the look at it and the connection
	var last error
	for try := range tries {
		begin := start && try > 0 // mostly one runs
		path, err := o.socket(ctx, env, begin)
		if err != nil && start && !begin {
			continue
		}
		if err != nil {
			return nil, err
		}
		known := false // its sessions end with it
		c, err := dial(ctx, wire.ClientTarget{URL: "unix://" + path,
			Dial: func(ctx context.Context) (wire.Stream, error) {
				connect := func(ctx context.Context) (net.Conn, error) { return dirs.DialSocket(ctx, path, true) }
				if opts.Eager {
					return lines(connect(ctx))
				}
				s, err := wire.Over(ctx, "", connect)
				if known && absent(err) {
					err = fmt.Errorf("%w: %w", wire.ErrServerEnded, err)
				}
				known = known || err == nil
				return s, err
			}}, opts)
		var foreign *dirs.ForeignPeerError
		switch {
		case err == nil:
			return c, nil
		case errors.As(err, &foreign) && begin == start:
			return nil, foreign
		case !start && absent(err):
			return nil, errNone
		}
		last = err
	}
	return nil, last
}

// Open returns a connection to the server that flags name, on which nothing was written: an exec-server
// with --remote, or the daemon of this user, which is started unless it runs. It blocks until there is one,
// or ctx ends.
func (o *Options) Open(ctx context.Context, env *Env) (wire.Stream, error) {
	if o.target.URL != "" {
		target, err := o.remote(env)
		if err != nil {
			return nil, err
		}
		if o.target.IsFleet() {
			site, err := o.fleet(ctx, env)
			if err != nil {
				return nil, err
			}
			return site.open(), nil
		}
		return wire.Dial(ctx, target.URL, target.Token, target.TLS)
	}
	const tries = 4 // a daemon may end between the look at it and the connection
	for try := 1; ; try++ {
		path, err := dirs.StartDaemon(ctx, env.Program, env.Environ)
		if err != nil {
			return nil, err
		}
		s, err := wire.Over(ctx, "", func(ctx context.Context) (net.Conn, error) {
			return dirs.DialSocket(ctx, path, true)
		})
		if err == nil || try == tries || !absent(err) {
			return s, err
		}
	}
}

// Check returns what is wrong with the flags about the server, and its URL: empty for the daemon.
func (o *Options) Check(env *Env) (url string, err error) {
	if err := o.target.Check(); err != nil || o.target.URL == "" {
		return "", err
	}
	if o.target.IsFleet() {
		_, _, err = fleetTarget(&o.target)
	} else if err = wire.CheckURL(o.target.URL); err != nil {
		err = explain.NewError("--remote: %v", err)
	}
	if err != nil {
		return "", err
	}
	target, err := o.remote(env)
	return target.URL, err
}

// lines returns the stream of a connection to the daemon, which takes lines as well, without a handshake.
func lines(c net.Conn, err error) (wire.Stream, error) {
	if err != nil {
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	return wire.LinesOn(c), nil
}

// absent reports whether an error says that nothing listens at a socket.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// socket returns the path of the daemon's socket.
func (o *Options) socket(ctx context.Context, env *Env, start bool) (string, error) {
	if start {
		return dirs.StartDaemon(ctx, env.Program, env.Environ)
	}
	path, err := dirs.DaemonSocket(env.Variable)
	if err == nil && path == "" {
		err = errNone
	}
	return path, err
}

// dial connects to a server that serves runs.
func dial(ctx context.Context, target wire.ClientTarget, opts wire.ClientOptions) (client, error) {
	c, err := wire.Connect(ctx, target, opts)
	if err != nil {
		return nil, err
	}
	if e := c.Server().Environment; !opts.Eager && (e == nil || !e.Capabilities.Runs) {
		_ = c.Close() // the error says more
		return nil, explain.NewError("the server at %s does not serve runs; it is not an exec-server of sallyport, or an older one", text.Word(target.URL))
	}
	return c, nil
}

// unknown is the error for a run that the server does not know.
func unknown(id string) error {
	return &explain.Error{Code: explain.CodeFailed, Text: fmt.Sprintf("unknown session %q", shortened(id)),
		Fix: "sallyport ps lists them"}
}

func shortened(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

// reasonOf returns the word with which a server refused a request about a run, empty for none, and
// the exit code for that.
func reasonOf(err error) (why runs.Reason, code int) {
	r := wire.RefusalOf(err)
	return runs.Reason(r.Reason), cmp.Or(r.Exit, explain.CodeFailed)
}

// refusal returns that word, and how much of the input was taken.
func refusal(err error) (why runs.Reason, taken int) {
	r := wire.RefusalOf(err)
	return runs.Reason(r.Reason), r.Taken
}

// explained turns an error of the server about a run into one for people.
func explained(err error, id string) error {
	var answer *wire.Error
	var transport *wire.TransportError
	fix := map[runs.Reason]string{
		runs.InputClosed: fmt.Sprintf("session %s takes no input: start it on a terminal, with -t or with -i", id),
		runs.NoScreen:    fmt.Sprintf("session %s has no terminal: start it on one, or with -t", id),
	}
	switch reason, code := reasonOf(err); {
	case errors.Is(err, wire.ErrServerEnded):
		return explain.NewError("the daemon has ended, and its sessions with it; daemon.log beside its socket may say why")
	case errors.As(err, &transport) || !errors.As(err, &answer):
		return err
	case reason == runs.Unknown:
		return unknown(id)
	case reason == wire.ReasonLost:
		return explain.ErrorWith(explain.CodeFailed, sallyport.EndLost, text.Line(answer.Message), "")
	case fix[reason] != "":
		return explain.NewError("%s", text.Line(fix[reason]))
	default:
		return &explain.Error{Code: code, Text: strings.TrimPrefix(text.Line(answer.Message), "sallyport: ")}
	}
}

// exitCode returns the exit code with which this program tells of the end of a run.
func exitCode(res *sallyport.Result) int {
	if res.ExitCode >= 0 && !Lost(res) {
		return res.ExitCode
	}
	codes := map[sallyport.End]int{
		sallyport.EndUnavailable: explain.CodeUnavailable, sallyport.EndForbidden: explain.CodeForbidden,
		sallyport.EndRefused: explain.CodeRefused, sallyport.EndTimedOut: explain.CodeTimedOut,
		sallyport.EndNotFound: explain.CodeNotFound,
	}
	return cmp.Or(codes[res.End], explain.CodeFailed)
}

// leave returns the exit code of a run as the error that ends this program with it, after what it
// says.
func leave(env *Env, result json.RawMessage, quiet bool) error {
	e := new(sallyport.Result)
	if err := json.Unmarshal(result, e); err != nil {
		return explain.NewError("the server sent an invalid result: %v", err)
	}
	if !quiet {
		tellEnd(env, e)
	}
	return explain.ExitCode(exitCode(e))
}

// Lost completes the result of a run whose machine was lost, and reports whether it is one. What that says of
// the exit code is not known there either.
func Lost(res *sallyport.Result) bool {
	if res.End != sallyport.EndLost {
		return false
	}
	res.ExitCode = explain.CodeFailed
	res.Error = cmp.Or(res.Error, new(sallyport.LostError).Error())
	return true
}

// tellEnd says what a run would say at its end: why it failed, and what it was denied.
func tellEnd(env *Env, res *sallyport.Result) {
	Lost(res)
	if res.Error != "" {
		said, fix := explain.Unasked(explain.OneLine(errors.New(res.Error)), res.Rule)
		env.Tell((&explain.Error{Text: said, Fix: fix}).Error())
	}
	staged := explain.Staged(res.Stage, "")
	if exitCode(res) == explain.CodeOK {
		if staged != "" {
			env.Tell(staged)
		}
		return
	}
	home, _ := os.UserHomeDir() // empty when it is not known
	var causes []string
	if text, flag := explain.Exceeded(string(res.End), res.Limits); flag != "" {
		causes = append(causes, text)
	}
	if said := explain.Killed(string(res.End), res.Signal); said != "" {
		causes = append(causes, said)
	}
	causes = append(causes, explain.Denials(res.Denials(), res.DenialsOmitted, home)...)
	for _, line := range explain.Said(append(explain.Shortlist(causes, nil), staged)...) {
		env.Tell(line)
	}
}
