// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	osprocess "github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A listing is the answer of ps. Its member names stay.
type listing struct {
	Type     string   `json:"type"` // always "sessions"
	Sessions []listed `json:"sessions"`
}

type listed struct {
	ID       string    `json:"id"`
	Args     []string  `json:"argv"`
	Dir      string    `json:"cwd"`
	TTY      bool      `json:"tty"`
	Started  time.Time `json:"started"`
	LastUsed time.Time `json:"last_used"`
	Starting bool      `json:"starting"`
	Running  bool      `json:"running"`
	ExitCode *int      `json:"exit_code"` // null before the end
	Signal   int       `json:"signal"`
	End      *string   `json:"end"` // null before the end
	LastLine string    `json:"last_line"`
	Denials  *int      `json:"denials"`      // so far; null before the start
	CPU      *int64    `json:"cpu_ms"`       // so far; null where it is not known, as for all that follow
	Memory   *int64    `json:"memory_bytes"` // now
	WaitsFor *string   `json:"waits_for"`    // "answer", "password" or "input"
}

// list is ps.
func list(ctx context.Context, env *Env, o *Options, _ []string) error {
	answer := listing{Type: "sessions", Sessions: []listed{}}
	all, err := o.runs(ctx, env)
	if err != nil {
		return err
	}
	for _, r := range all {
		answer.Sessions = append(answer.Sessions, listed{
			r.RunID, r.Argv, r.CWD, r.TTY, time.UnixMilli(r.Started).UTC(), time.UnixMilli(r.LastUsed).UTC(),
			r.Starting, r.Running, r.ExitCode, r.Signal, r.End, r.LastLine, r.Denials,
			r.CPU, r.Memory, nil,
		})
		if what := r.WaitsFor; what != "" {
			answer.Sessions[len(answer.Sessions)-1].WaitsFor = &what
		}
	}
	if o.json {
		return env.PrintJSON(answer)
	}
	return env.Print(table(all, time.Now()))
}

// runs returns all runs of the server; none where no daemon runs.
func (o *Options) runs(ctx context.Context, env *Env) ([]wire.ListedRun, error) {
	var all wire.RunList
	if err := o.listed(ctx, env, "run/list", &all); err != nil {
		return nil, err
	}
	return all.Runs, checkIDs(all.Runs)
}

// listed calls a method of the server that lists what it has; without a daemon there is nothing.
func (o *Options) listed(ctx context.Context, env *Env, method string, all any) error {
	c, err := o.connect(ctx, env, false, wire.ClientOptions{})
	if errors.Is(err, errNone) {
		return nil
	}
	if err != nil {
		return explained(err, "")
	}
	defer c.Close() //nolint:errcheck // the answer was read
	return explained(c.Repeat(ctx, method, struct{}{}, all), "")
}

// sessionID is an ID: a number, or in a fleet NODE-BOOT-NUMBER. It is not taken for a flag.
var sessionID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_-]{0,63}-[0-9]{1,20}-)?[0-9]{1,20}$`)
})

// checkIDs refuses a list with an ID of another form: it stands in lines and in commands that are
// suggested, and a server could write more there.
func checkIDs(runs []wire.ListedRun) error {
	for i := range runs {
		if err := checkID(runs[i].RunID); err != nil {
			return err
		}
	}
	return nil
}

func checkID(id string) error {
	if !sessionID().MatchString(id) {
		return explain.NewError("the server sent the session ID %s, which is no number",
			text.Word(shortened(id)))
	}
	return nil
}

// find returns what the list says of one run.
func find(ctx context.Context, c client, id string) (*wire.ListedRun, error) {
	var all wire.RunList
	err := c.Repeat(ctx, "run/list", struct{}{}, &all)
	if err == nil {
		err = checkIDs(all.Runs)
	}
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(all.Runs, func(r wire.ListedRun) bool { return r.RunID == id }); i >= 0 {
		return &all.Runs[i], nil
	}
	return nil, unknown(id)
}

// ids completes a word that names a session, with its command. What cannot be read is left out.
func ids(env *Env, _ []string) (syntax.FlagKind, [][2]string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	known, _ := new(Options).runs(ctx, env) // none after an error
	var ids [][2]string
	for _, r := range known {
		ids = append(ids, [2]string{r.RunID, commandLine(&r)})
	}
	return syntax.Words, ids
}

// table returns the list for people.
func table(runs []wire.ListedRun, now time.Time) string {
	if len(runs) == 0 {
		return "No sessions.\n"
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "ID\tSTATE\tSTARTED\tCPU\tMEMORY\tCOMMAND\tLAST LINE") // a builder has no errors
	for _, r := range runs {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s ago\t%s\t%s\t%s\t%s\n", r.RunID, stateOf(&r),
			explain.Age(now.Sub(time.UnixMilli(r.Started))), cpuOf(&r), memoryOf(&r), commandLine(&r),
			shown(r.LastLine))
	}
	_ = w.Flush()
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ") // of columns that nothing follows
	}
	return strings.Join(lines, "\n")
}

// commandLine is the command of a run, on one line.
func commandLine(r *wire.ListedRun) string {
	return text.Line(explain.ShellWords(r.Argv))
}

// shown is the last line of a session, short enough for a table.
func shown(line string) string {
	const most = 40
	line = text.Line(line)
	if runes := []rune(line); len(runes) > most {
		line = string(runes[:most-len("...")]) + "..."
	}
	return line
}

// stateOf says how a run is, what it waits for, and whether something was denied to it.
func stateOf(r *wire.ListedRun) string {
	state := endOf(r)
	switch r.WaitsFor {
	case "":
	case "answer":
		state += ", waits for an answer"
	case "password":
		state += ", waits for a password"
	default:
		state += ", waits for input"
	}
	if r.Denials != nil && *r.Denials > 0 {
		return fmt.Sprintf("%s, %d denied", state, *r.Denials)
	}
	return state
}

// cpuOf and memoryOf are what a run has used, and has; "-" where that is not known.
func cpuOf(r *wire.ListedRun) string {
	if r.CPU == nil {
		return "-"
	}
	return fmt.Sprintf("%.1fs", float64(*r.CPU)/1000)
}

func memoryOf(r *wire.ListedRun) string {
	if r.Memory == nil {
		return "-"
	}
	return explain.Bytes(float64(*r.Memory))
}

func endOf(r *wire.ListedRun) string {
	switch {
	case r.Starting:
		return "starting"
	case r.Running:
		return "running"
	case r.ExitCode == nil || r.End == nil:
		return "ended"
	case *r.End == "exited":
		return fmt.Sprintf("exited (%d)", *r.ExitCode)
	case *r.End == string(sallyport.EndLost):
		return *r.End // it has no exit code
	}
	return fmt.Sprintf("%s (%d)", strings.ReplaceAll(text.Line(*r.End), "_", " "), *r.ExitCode)
}

// each calls f for each name, all of them also after an error, and returns the first. Missing is the error
// for a name where no daemon runs.
func (o *Options) each(ctx context.Context, env *Env, names []string, missing func(string) error,
	f func(c client, name string) error) error {
	c, err := o.connect(ctx, env, false, wire.ClientOptions{})
	if err != nil && !errors.Is(err, errNone) {
		return explained(err, "")
	}
	if err == nil {
		defer c.Close() //nolint:errcheck // every answer was read
	}
	var failed error
	for _, id := range names {
		one := missing(id)
		if err == nil {
			one = explained(f(c, id), id)
		}
		if one != nil && failed != nil {
			env.Tell(failed.Error())
		}
		if one != nil {
			failed = one
		}
	}
	return failed
}

// using calls f with a client of the server, for the session that words name first.
func (o *Options) using(ctx context.Context, env *Env, words []string,
	f func(c client, id string) error) error {
	return o.eachSession(ctx, env, words[:min(len(words), 1)], f)
}

// eachSession is each for sessions, of which one at least must be named.
func (o *Options) eachSession(ctx context.Context, env *Env, ids []string,
	f func(c client, id string) error) error {
	if _, err := oneID(ids); err != nil {
		return err
	}
	return o.each(ctx, env, ids, unknown, f)
}

// kill ends sessions, or sends them a signal.
func kill(ctx context.Context, env *Env, o *Options, words []string) error {
	return o.eachSession(ctx, env, words, func(c client, id string) error {
		if o.signal != "" {
			err := c.Call(ctx, "run/signal", map[string]any{"runId": id, "signal": signalName(o.signal)}, nil)
			if why, _ := refusal(err); why == runs.Invalid {
				err = explain.NewError("-s: unknown signal %s; use a name such as TERM, or a number such as 15", text.Word(o.signal))
			}
			return err
		}
		return c.Repeat(ctx, "run/terminate", map[string]any{"runId": id}, nil)
	})
}

// signalName returns the name of a signal as the protocol has it.
func signalName(s string) string {
	if n, err := strconv.Atoi(s); err == nil {
		s = osprocess.SignalName(n)
	}
	s = strings.ToUpper(s)
	if !strings.HasPrefix(s, "SIG") {
		s = "SIG" + s
	}
	return s
}

// remove is rm.
func remove(ctx context.Context, env *Env, o *Options, words []string) error {
	return o.eachSession(ctx, env, words, func(c client, id string) error {
		return wire.RemoveRun(ctx, c, id)
	})
}

// screen prints what a terminal shows.
func screen(ctx context.Context, env *Env, o *Options, words []string) error {
	return o.using(ctx, env, words, func(c client, id string) error {
		var s wire.RunScreen
		if err := c.Repeat(ctx, "run/screen", map[string]any{"runId": id}, &s); err != nil {
			return err
		}
		if o.json {
			return env.PrintJSON(struct {
				Type string `json:"type"`
				*wire.RunScreen
			}{"screen", &s})
		}
		if _, err := io.WriteString(env.Stdout, screenText(s.Lines)); err != nil {
			return cannotWrite(err)
		}
		return nil
	})
}

// screenText is what a terminal shows. A server may send lines that no screen has.
func screenText(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(text.Drawn(line) + "\n")
	}
	text := strings.TrimRight(b.String(), "\n")
	if text == "" {
		return ""
	}
	return text + "\n"
}

// send types a text.
func send(ctx context.Context, env *Env, o *Options, words []string) error {
	id, err := oneID(words)
	switch {
	case err != nil:
		return err
	case len(words) < 2 && !o.eof:
		return explain.NewError("the text is missing: sallyport send %s TEXT", explain.ShellWord(id))
	}
	var text []byte
	if len(words) > 1 {
		if text, err = unescape(words[1]); err != nil {
			return err
		}
	}
	return o.using(ctx, env, words, func(c client, id string) error {
		if len(words) > 1 && !o.noNewline {
			r, err := find(ctx, c, id)
			if err != nil {
				return err
			}
			end := byte('\n')
			if r.TTY {
				// the key Enter; a terminal makes a line feed of it unless the program wants the key
				end = '\r'
			}
			text = append(text, end)
		}
		if len(text) > 0 {
			if err := c.Repeat(ctx, "run/write", map[string]any{"runId": id, "chunk": text,
				"writeId": newWriteID()}, nil); err != nil {
				return err
			}
		}
		if o.eof {
			return c.Call(ctx, "run/closeStdin", map[string]any{"runId": id}, nil)
		}
		return nil
	})
}
