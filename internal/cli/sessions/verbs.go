// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"errors"
	"strconv"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

// A Verb is a command about sessions.
type Verb struct {
	Name  string
	Short string // one line of the overview
	Help  string // above the flags
	Words int    // how many words it takes at most
	Flags func(o *Options) []syntax.Flag
	Run   func(ctx context.Context, env *Env, o *Options, words []string) error
	// Offer lists what completes a word after those before it, each with a description. Nil is for a verb
	// without words.
	Offer func(env *Env, before []string) (syntax.FlagKind, [][2]string)
}

// manyIDs is how many sessions one command takes.
const manyIDs = 1000

// Verbs returns the commands, in the order of the overview.
func Verbs() []Verb {
	return []Verb{
		{Name: "ps", Short: "list sessions (started by sallyport run --detach)", Help: psHelp, Flags: (*Options).reads, Run: list},
		{Name: "attach", Short: "connect this terminal to a session", Help: attachHelp, Words: 1, Flags: (*Options).attachFlags, Run: attachTo, Offer: ids},
		{Name: "logs", Short: "print the output of a session", Help: logsHelp, Words: 1, Flags: (*Options).logsFlags, Run: logs, Offer: ids},
		{Name: "send", Short: "type text into a session", Help: sendHelp, Words: 2, Flags: (*Options).sendFlags, Run: send, Offer: ids},
		{Name: "wait", Short: "wait until a session ends or a condition holds", Help: waitHelp, Words: 1, Flags: (*Options).waitFlags, Run: wait, Offer: ids},
		{Name: "screen", Short: "print the terminal screen of a session", Help: screenHelp, Words: 1, Flags: (*Options).reads, Run: screen, Offer: ids},
		{Name: "kill", Short: "end a session, or send it a signal", Help: killHelp, Words: manyIDs, Flags: (*Options).killFlags, Run: kill, Offer: ids},
		{Name: "play", Short: "play a recording of a terminal session", Help: playHelp,
			Words: 1, Flags: (*Options).playFlags, Run: play, Offer: anyFile},
		{Name: "recordings", Short: "list or remove recordings of terminal sessions", Help: recordingsHelp,
			Words: manyIDs, Flags: (*Options).recordingsFlags,
			Run: listRecordings, Offer: recordingNames},
		{Name: "rm", Short: "end sessions and forget them", Help: rmHelp, Words: manyIDs,
			Flags: (*Options).Server, Run: remove, Offer: ids},
	}
}

// anyFile completes a path.
func anyFile(*Env, []string) (syntax.FlagKind, [][2]string) { return syntax.Files, nil }

const (
	psHelp = `List the sessions of this user, running and ended.

  sallyport ps [--json]

sallyport run --detach -- PROGRAM starts a session and prints its ID. The last
64 that ended stay listed for an hour. STATE says whether one waits for input or
for an answer (see sallyport approvals), and how many accesses were denied so
far. CPU is the processor time used so far, MEMORY what its processes use now,
and LAST LINE the last line of output so far.
`
	attachHelp = `Connect this terminal to a session: show its output from the beginning and send
it every key. Several terminals can be attached at once.

  sallyport attach [--detach-keys KEYS] ID

Ctrl-\ detaches; the session keeps running. When it ends, attach exits as it
did. A session without a terminal gets only Ctrl-C, as SIGINT; to write to its
input, use sallyport send. Without a terminal, attach only shows the output.
`
	logsHelp = `Print the retained output of a session.

  sallyport logs [-f] ID

The program's standard error goes to standard error, where the number of bytes
no longer retained is also printed. With --json each piece is one object.
`
	sendHelp = `Type text and Enter into a session, or write it to its input as a line.

  sallyport send [-n] ID TEXT
  sallyport send --eof ID

  sallyport send 1000 'make test'
  sallyport send -n 1000 '\x03'

In TEXT, \n, \r, \t, \e and \\ are a line feed, a carriage return, a tab, Escape
and a backslash, and \xHH is the byte with that hexadecimal value. A session
that was started without a terminal and without -i takes no input.
`
	waitHelp = `Wait until a session ends and exit as it did, or until a condition holds and
print which one.

  sallyport wait [--for CONDITION,...] [--timeout DUR] ID

  sallyport wait --for port --timeout 30s 1000
  sallyport wait --for 'quiet=2s,match=ready|failed' 1000

Conditions: exit; quiet=DUR: no output for that long from now on; input: it
waits for input; match=RE: the output matches the regular expression RE, which
is the rest of the argument; port: it listens on a TCP port. The end of the
session ends every wait. The exit code is 124 if --timeout expires first.

RE is matched against the text without colors and other control sequences, from
the end of the last match that any wait found. Simultaneous waits see the same
output. With --after, a wait has its own starting offset, such as the "after" of
wait --json.
`
	screenHelp = `Print the current terminal screen of a session, as text.

  sallyport screen ID
`
	killHelp = `End sessions: send SIGTERM and, after the --kill-after of the run, SIGKILL to
what is left. Their output can still be read.

  sallyport kill [-s SIGNAL] ID...
`
	rmHelp = `End sessions as sallyport kill does, and forget them with their output.

  sallyport rm ID...
`
)

// Server are the flags of all verbs: which server it is.
func (o *Options) Server() []syntax.Flag {
	return []syntax.Flag{
		{Long: "remote", Value: "URL", Set: syntax.SetText(&o.target.URL), Help: "an exec-server: ws://, wss:// or unix:///PATH; or a\nfleet: nats://HOST[:PORT] (default: the daemon of this\nuser)"},
		{Long: "remote-token-file", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&o.target.TokenFile), Help: "holds its token (default $" + tokenVariable + ")"},
		{Long: "remote-tls-cert", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&o.target.Cert), Help: "client certificate (PEM; wss:// only)"},
		{Long: "remote-tls-key", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&o.target.Key), Help: "its private key"},
		{Long: "remote-tls-ca", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&o.target.CA), Help: "trust the certificate authorities in FILE instead of\nthe system's"},
		{Long: "creds", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&o.target.Creds), Help: "credentials for a fleet (nats:// only; default\n$" + args.CredsVariable + ")"},
	}
}

// reads are the flags of verbs that print an answer.
func (o *Options) reads() []syntax.Flag {
	asJSON := syntax.Flag{Long: "json", Set: syntax.SetOn(&o.json), Help: "print JSON"}
	return append([]syntax.Flag{asJSON}, o.Server()...)
}

func (o *Options) attachFlags() []syntax.Flag {
	return append([]syntax.Flag{{Long: "detach-keys", Value: "KEYS", Set: func(v string) error {
		_, err := parseKeys(v)
		o.detachKeys = v
		return err
	}, Help: "such as ctrl-p,ctrl-q (default ctrl-\\)"}}, o.Server()...)
}

func (o *Options) logsFlags() []syntax.Flag {
	return append([]syntax.Flag{{Long: "follow", Short: 'f', Set: syntax.SetOn(&o.follow),
		Help: "keep printing until the session ends"}}, o.reads()...)
}

func (o *Options) sendFlags() []syntax.Flag {
	return append([]syntax.Flag{
		{Long: "no-newline", Short: 'n', Set: syntax.SetOn(&o.noNewline), Help: "do not type Enter after it"},
		{Long: "eof", Set: syntax.SetOn(&o.eof), Help: "then end the input; on a terminal, type Ctrl-D"},
	}, o.Server()...)
}

func (o *Options) waitFlags() []syntax.Flag {
	return append([]syntax.Flag{
		{Long: "for", Value: "CONDITION", Set: o.condition, Help: "exit, quiet=DUR, input, match=RE or port, or several\nof them (repeatable; default exit)"},
		{Long: "timeout", Value: "DUR", Set: func(v string) error {
			d, err := config.ParseDuration(v)
			o.timeout = &d
			return err
		}, Help: "how long to wait (default: forever)"},
		{Long: "raw", Set: syntax.SetOn(&o.raw), Help: "match the bytes, with control sequences"},
		{Long: "after", Value: "OFFSET", Set: func(v string) error {
			n, err := strconv.ParseUint(v, 10, 64)
			if o.after = &n; err != nil {
				err = errors.New("it must be a number of bytes, such as 0 for all output")
			}
			return err
		}, Help: "match only output after this many bytes (default:\nafter the last match)"},
	}, o.reads()...)
}

func (o *Options) killFlags() []syntax.Flag {
	return append([]syntax.Flag{{Long: "signal", Short: 's', Value: "SIGNAL", Set: syntax.SetText(&o.signal),
		Help: "send this signal only, such as INT, SIGHUP or 15"}}, o.Server()...)
}

// condition takes the value of --for.
func (o *Options) condition(v string) error { return o.conditions.Add(v) }

// oneID returns the session that words name.
func oneID(words []string) (string, error) {
	if len(words) == 0 || words[0] == "" {
		return "", explain.NewError("the ID of a session is missing; sallyport ps lists them")
	}
	return words[0], nil
}
