// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package consoles is the command console: it serves the web page, and answers those of its methods that are
// about this machine and no run of an exec-server: questions, recorded runs, recordings, settings.
//
// [Run] serves until a signal. A method reads what the command line reads, with the same functions, and keeps
// nothing.
package consoles

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/cli/sessions"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/server/console"
	"github.com/sallyport-dev/sallyport/internal/server/listen"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/settings/trust"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// Help is the help text above the flags.
const Help = `Serve a web page about this machine: questions, sessions, runs, changes and
recordings.

  sallyport console [--open] [--view-only]
  sallyport console --listen 127.0.0.1:8080
  sallyport console --remote wss://HOST:PORT --remote-token-file FILE
  sallyport console --listen 0.0.0.0:8443 --host NAME --tls-cert FILE
                    --tls-key FILE --token-file FILE

The first line of standard output is a URL with a token that opens the page
once, within 10 minutes. The page stays open for 12 hours, also when the console
is started again on the same address. SIGINT and SIGTERM end it.
`

// An Env is the environment of one invocation. Sessions must have its Program.
type Env struct {
	*args.Env
	Sessions *sessions.Env
	// Print prints for people on standard output, and Say a message on standard error.
	Print func(text string) error
	Say   func(lines ...string)
	// Token reads a token from a file, which it makes if it is missing.
	Token func(path string) (string, error)
	// Upstream checks the proxy that the settings name.
	Upstream func(context.Context) explain.Check
	// Proposed returns what config allow with flags would write to the settings of a project, and Allowed
	// keeps in the audit log that it was written.
	Proposed func(flags []string) (*trust.Proposal, []trust.Setting, error)
	Allowed  func(settings []trust.Setting, dir string) error
}

// Options are the flags of console.
type Options struct {
	server                   sessions.Options
	listen, tokenFile        string
	hosts                    []string
	tls                      listen.TLS
	open, viewOnly, insecure bool
}

// Flags returns the flags of console, bound to o.
func Flags(o *Options) []syntax.Flag {
	o.listen = "127.0.0.1:0"
	return append([]syntax.Flag{
		{Long: "listen", Value: "IP:PORT", Set: syntax.SetText(&o.listen),
			Help: "serve there; port 0 is a free one\n(default 127.0.0.1:0)"},
		{Long: "open", Set: syntax.SetOn(&o.open), Help: "open the page in a browser"},
		{Long: "view-only", Set: syntax.SetOn(&o.viewOnly), Help: "show everything, change nothing"},
		{Long: "host", Value: "NAME", Set: syntax.SetList(&o.hosts),
			Help: "also serve requests for NAME or NAME:PORT, such as\nthose of a tunnel (repeatable)"},
		{Long: "tls-cert", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&o.tls.Cert),
			Help: "serve https:// with this certificate (PEM)"},
		{Long: "tls-key", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&o.tls.Key),
			Help: "its private key"},
		{Long: "token-file", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&o.tokenFile),
			Help: "holds a token that opens the page any number of\ntimes, and is created if missing"},
		{Long: "insecure", Set: syntax.SetOn(&o.insecure),
			Help: "allow an address that other machines reach without\nTLS and a token file"},
	}, o.server.Server()...)
}

// Run performs console.
func Run(ctx context.Context, env *Env, o *Options) error {
	set, err := o.settings(env)
	if err != nil {
		return err
	}
	encryption, err := o.tls.Config()
	if err != nil {
		return explain.NewError("%v", err)
	}
	set.TLS = encryption != nil
	end, err := o.follow(env, &set)
	if err != nil {
		return explain.NewError("cannot follow questions: %v", err)
	}
	defer end()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := o.port(encryption)
	if err != nil {
		return err
	}
	s, err := console.New(set, l.Addr())
	if err != nil {
		return errors.Join(err, l.Close())
	}
	at := address(l.Addr(), set.TLS) + "/#token="
	if err := env.Print(at + s.Token() + "\n"); err != nil {
		return errors.Join(err, l.Close())
	}
	if o.open {
		remove, err := openPage(env, set.Dir, at+s.Token())
		if err != nil {
			env.Say("cannot open a browser: " + explain.OneLine(err) + "; open the address that was printed")
		}
		defer remove()
	}
	if err := s.Serve(ctx, l); err != nil {
		return explain.NewError("cannot serve: %v", err)
	}
	return nil
}

// settings returns what a console serves, without its methods and its encryption.
func (o *Options) settings(env *Env) (set console.Options, err error) {
	set = console.Options{Hosts: o.hosts, ViewOnly: o.viewOnly,
		Dial: func(ctx context.Context) (wire.Stream, error) { return o.server.Open(ctx, env.Sessions) }}
	if set.Scope, err = o.server.Check(env.Sessions); err != nil {
		return set, err
	}
	if set.Dir, err = stateDir(); err != nil || o.tokenFile == "" {
		return set, err
	}
	name := args.Absolute(o.tokenFile, env.Dir, env.Variable("HOME"))
	if err := checkToken(name, env.Dir, set.Dir); err != nil {
		return set, err
	}
	if set.FixedToken, err = env.Token(name); err != nil {
		return set, explain.NewError("%v", err)
	}
	return set, nil
}

// checkToken refuses a file for a token that commands in a sandbox could change or read: one that reaches the
// network of this machine could open the page, and leave its sandbox. They do not see the state directory and
// the host's /tmp, but for what is in their workspace.
func checkToken(name, workspace, hidden string) error {
	if err := reach.New(reach.Area{Workspace: workspace}).Decides("--token-file", name); err != nil {
		return err
	}
	real := hostfacts.RealPath(name)
	if safefile.Within(real, hostfacts.RealPath(filepath.Dir(hidden))) || safefile.Within(real, "/tmp") {
		return nil
	}
	return explain.NewError("commands in a sandbox can read %s, and could open the page with it; use a file in %s",
		syntax.QuoteFlag(name), text.Word(hidden))
}

// follow adds the methods, and says that a console is open which answers questions.
func (o *Options) follow(env *Env, set *console.Options) (end func(), err error) {
	if set.Scope != "" {
		set.Methods = methods(env, new(history), nil)
		return func() {}, nil
	}
	h := &history{env: env}
	var ends []func()
	end = func() {
		for _, one := range slices.Backward(ends) {
			one()
		}
	}
	watch, err := listen.WatchQuestions()
	if err != nil {
		return nil, err
	}
	ends = append(ends, watch.Close)
	set.Methods = methods(env, h, watch)
	starts := []func() (func(), error){h.follow, listen.OpenConsole}
	if o.viewOnly {
		starts = starts[:1]
	}
	for _, start := range starts {
		stop, err := start()
		if err != nil {
			end()
			return nil, err
		}
		ends = append(ends, stop)
	}
	return end, nil
}

// stateDir makes the directory for the secrets; empty on a system without a state directory.
func stateDir() (string, error) {
	state, err := dirs.Dir()
	if errors.Is(err, errors.ErrUnsupported) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	dir := filepath.Join(state, "console")
	root, err := safefile.MakeDirs(dir)
	if err != nil {
		return "", err
	}
	return dir, root.Close()
}

// port opens the listener.
func (o *Options) port(encryption *tls.Config) (net.Listener, error) {
	at, err := netip.ParseAddrPort(o.listen)
	switch {
	case err != nil:
		return nil, explain.NewError("invalid address %s; use IP:PORT, such as 127.0.0.1:0 or [::1]:8080",
			syntax.QuoteFlag(o.listen))
	case !at.Addr().Unmap().IsLoopback() && !o.insecure && (encryption == nil || o.tokenFile == ""):
		return nil, explain.NewError("%s is reached by other machines; use --tls-cert, --tls-key and "+
			"--token-file, or --insecure if that is intended", o.listen)
	}
	l, err := net.Listen("tcp", at.String())
	if err != nil {
		return nil, explain.NewError("cannot listen: %v", err)
	}
	if encryption != nil {
		l = tls.NewListener(l, encryption)
	}
	return l, nil
}

// address returns the URL at which a person opens the page.
func address(at net.Addr, encrypted bool) string {
	scheme, host := "http://", at.String()
	if encrypted {
		scheme = "https://"
	}
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		own := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), tcp.AddrPort().Port())
		host = own.String()
	}
	return scheme + host
}

// methods are those that are answered in this process. Without a watch the console is about another machine,
// which does not have them.
func methods(env *Env, h *history, watch *listen.QuestionWatch) map[string]console.Method {
	m, q := &machine{env, &h.changes, watch}, questions{watch}
	all := map[string]console.Method{
		"question/list": q.list, "question/answer": q.answer, "question/forget": q.forget,
		"history/list": h.list, "history/read": h.read, "history/output": h.output, "config/allow": h.allow,
		"recording/list": m.recordings, "recording/read": m.recording,
		"machine/read": m.read, "approval/revoke": m.revoke,
	}
	if watch == nil {
		for name := range all {
			all[name] = notHere
		}
	}
	return all
}

func notHere(context.Context, json.RawMessage) (any, error) {
	return nil, console.Refused(wire.CodeInvalidRequest,
		"this is about the machine of the console, which serves another one (--remote)", "notHere")
}

// decode reads parameters; absent ones are empty.
func decode(params json.RawMessage, into any) error {
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	if err := strict.Decode(params, into); err != nil {
		return &wire.Error{Code: wire.CodeInvalidParams, Message: err.Error()}
	}
	return nil
}
