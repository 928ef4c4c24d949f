// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// maxFacts is how many bytes of an answer are not output, in JSON as well as in text.
const maxFacts = 3500

// bytesPerToken is how a budget in tokens is counted.
const bytesPerToken = 4

// The members state of an answer.
const (
	stateRunning  = "running"
	stateEnded    = "ended"
	stateApproval = "approval_needed"
)

// An answer is what a tool says: facts for programs, and sentences for a model.
type answer struct {
	facts map[string]any
	said  strings.Builder // lines before the output
	shown string          // output
	most  int             // how many bytes of JSON the facts have at most
	links []sdk.Content
	// input asks a client of the revision 2026-07-28 for an answer; nil asks nothing.
	input *sdk.ElicitParams
	state string // that the client returns with its answer
}

// say adds a line for the model.
func (a *answer) say(format string, args ...any) {
	a.said.WriteString(text.Line(fmt.Sprintf(format, args...)) + "\n")
}

// result returns the answer in the form of the protocol.
func (a *answer) result() (*sdk.CallToolResult, error) {
	if a.input != nil {
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{askedInput: a.input},
			RequestState: a.state}, nil
	}
	facts, err := a.encode()
	if err != nil {
		return nil, err
	}
	said := shortened(a.said.String(), maxFacts)
	if a.shown != "" {
		said += "\n" + a.shown
	}
	return &sdk.CallToolResult{Content: append([]sdk.Content{&sdk.TextContent{Text: said}}, a.links...),
		StructuredContent: facts}, nil
}

// dispensable are facts that an answer goes without where it would be too long, the least useful first.
// The last ones go after all but a few of the elements of lists.
var dispensable = [2][]string{{"changes", "first", "limits", "survivor_list", "hard_links", "network_hosts",
	"new", "warnings", "notices", "network_failures", "network_denials", "granted", "quarantined", "rule"},
	{"approvals", "sandbox", "error", "cwd"}}

// encode returns the facts within the budget: what is long is shortened, the least useful is left out, and
// both are counted.
func (a *answer) encode() (data json.RawMessage, err error) {
	data, err = json.Marshal(a.facts) // with <, > and & escaped, as they are sent
	if err != nil || len(data) <= a.most {
		return data, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	a.facts = nil
	if err := d.Decode(&a.facts); err != nil {
		return nil, err
	}
	for i, long := 0, 1<<16; i < len(dispensable); i++ {
		shortest := []int{1 << 10, 1 << 7}[i]
		data, ok := a.within(long, shortest)
		for _, name := range dispensable[i] {
			if _, there := a.facts[name]; ok || !there {
				continue
			}
			delete(a.facts, name)
			omitted, _ := a.facts["left_out"].([]any)
			a.facts["left_out"] = append(omitted, name)
			data, ok = a.within(shortest, shortest)
		}
		if long = shortest; ok {
			return data, nil
		}
	}
	data, _ = a.within(1<<7, 1)
	return data, nil
}

// within returns the facts with as much of what is long as the budget has room for, and whether it has for
// so much.
func (a *answer) within(longest, shortest int) (data json.RawMessage, ok bool) {
	for long := longest; long >= shortest; long /= 2 {
		v, _ := cut(a.facts, long)
		short, _ := v.(map[string]any)
		for _, name := range bounded {
			if same, ok := a.facts[name]; ok {
				short[name] = same
				delete(short, name+"_omitted")
			}
		}
		if data = asJSON(short); len(data) <= a.most {
			return data, true
		}
	}
	return data, false
}

// bounded are facts that have room in the budget already.
var bounded = [...]string{"output", "lines", "matches", "diff"}

// cut returns a JSON value in which texts have about so many bytes at most, and lists as many elements as
// there is room for texts of a few words. How many elements of a list are left out is the member
// NAME_omitted beside it, or returned for a list that is no member.
func cut(v any, long int) (short any, omitted int) {
	const words, few = 32, 64
	switch v := v.(type) {
	case string:
		return shortened(v, max(long, few)), 0
	case []any:
		list := make([]any, min(len(v), long/words))
		for i := range list {
			var n int
			list[i], n = cut(v[i], long)
			omitted += n
		}
		return list, omitted + len(v) - len(list)
	case map[string]any:
		out, counts := make(map[string]any, len(v)), map[string]any{}
		for name, value := range v {
			short, n := cut(value, long)
			if out[name] = short; n > 0 {
				before, _ := v[name+"_omitted"].(json.Number)
				more, _ := before.Int64()
				counts[name+"_omitted"] = int64(n) + more
			}
		}
		maps.Copy(out, counts)
		return out, 0
	}
	return v, 0
}

// shortened returns a text of at most so many bytes, which says how many are left out where there is room
// for that.
func shortened(s string, most int) string {
	const dots, note = "...", 40
	switch {
	case len(s) <= most:
		return s
	case most <= len(dots):
		return ""
	case most < note+note/2:
		s = s[:most-len(dots)]
		return s[:len(s)-text.Unfinished([]byte(s))] + dots
	}
	kept := s[:most-note]
	kept = kept[:len(kept)-text.Unfinished([]byte(kept))]
	return fmt.Sprintf("%s... [%d bytes left out]", kept, len(s)-len(kept))
}

// unsaid are members of a result that an answer has not, or in another form.
var unsaid = []string{"type", "argv", "stdout", "stderr", "output", "stdout_base64", "stderr_base64", "run",
	"caller_id", "withheld", "usage", "omitted_bytes"}

// newAnswer returns the answer about a run that has ended with a result, or that goes on where it is nil.
func newAnswer(run string, res *sallyport.Result) (*answer, error) {
	a := &answer{facts: map[string]any{"state": stateRunning, "run": run, "session_id": run, "exit_code": nil,
		"output": "", "truncated": false, "omitted_bytes": 0, "original_token_count": 0,
		"denials": []json.RawMessage{}}}
	if res == nil {
		return a, nil
	}
	data, err := runs.WithoutOutput(res).MarshalJSON()
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	for name, value := range all {
		if !slices.Contains(unsaid, name) {
			a.facts[name] = value
		}
	}
	var denials []json.RawMessage
	if err := json.Unmarshal(all["denials"], &denials); err != nil {
		return nil, err
	}
	if first := res.First; first != nil {
		a.facts["first"] = map[string]any{"end": first.End, "exit_code": first.ExitCode,
			"output": shortened(first.Output.Plain(), maxFacts/4)}
	}
	if res.Stage != nil {
		a.staged(res.Stage)
	}
	a.facts["denials"], a.facts["state"] = denials, stateEnded
	a.facts["denials_omitted"] = res.DenialsOmitted
	delete(a.facts, "session_id")
	a.end(run, res)
	return a, nil
}

// end says how a run has ended, and what was denied.
func (a *answer) end(run string, res *sallyport.Result) {
	a.say("exit code %d (%s); run %s", res.ExitCode, strings.ReplaceAll(string(res.End), "_", " "), run)
	if res.Error != "" {
		a.say("%s", res.Error)
	}
	for _, d := range res.Approvals {
		a.say("approval %s: %s by %s %s", d.ID, d.Decision, d.Source, d.Message)
	}
	for _, g := range res.Granted {
		a.say("granted: %s %s (by %s)", g.Op, g.Path, g.By)
	}
	harmless := 0
	for _, d := range res.Denials() {
		if d.Harmless != "" {
			harmless++
			continue
		}
		fix := "nothing narrow allows it"
		if d.Grant != "" {
			fix = "the user can allow it with " + d.Grant
		}
		a.say("blocked: %s %s%s (%s, %s); %s", d.Op, d.Path, d.Addr, d.Errno, d.Source, fix)
	}
	if harmless > 0 {
		a.say("%d harmless denials are not listed", harmless)
	}
	for _, n := range slices.Concat(res.Notices, res.Warnings) {
		a.say("note: %s", n)
	}
	if n := len(res.Survivors); n > 0 {
		a.say("note: %d leftover processes were ended", n)
	}
}

// show adds the output of a run from an offset to its end, within a budget of tokens.
func (a *answer) show(r *runs.Run, from uint64, tokens int) {
	to, _ := r.Size()
	e := excerptOf(r, from, to, bytesPerToken*tokens)
	a.shown = e.text
	a.facts["output"], a.facts["truncated"], a.facts["omitted_bytes"] = e.text, e.truncated, e.omitted
	a.facts["original_token_count"] = text.TokenCount(int(min(e.bytes, math.MaxInt)))
	a.facts["cursor"] = cursorOf(r, to)
	r.Show(to)
	if e.truncated {
		a.say("%d of %d bytes of output are left out; read run %s with search, or from start_line on",
			e.omitted,
			e.bytes, r.ID())
		a.links = append(a.links, linkTo(r))
	}
}

// cursorOf returns what stands for an offset of the output of a run.
func cursorOf(r *runs.Run, at uint64) string { return r.ID() + "." + strconv.FormatUint(at, 10) }

// offset returns the offset that the argument cursor stands for; without one that after what was shown last.
func (a *arguments) offset(r *runs.Run) uint64 {
	cursor := a.text("cursor")
	if cursor == "" {
		return r.Shown()
	}
	run, after, _ := strings.Cut(cursor, ".")
	at, err := strconv.ParseUint(after, 10, 64)
	if total, _ := r.Size(); err != nil || run != r.ID() || at > total {
		a.fail("cursor", "%s is no cursor of run %s; pass one of its answers, or leave it out",
			text.Word(shortened(cursor, 80)), r.ID())
	}
	return at
}

// asJSON returns a value that always encodes in JSON.
func asJSON(v any) []byte {
	text, _ := json.Marshal(v)
	return text
}

// failed returns the answer of a tool that failed.
func failed(err error) *sdk.CallToolResult {
	said := shortened(text.Lines(err.Error()), maxFacts)
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: said}}}
}

// object returns an answer whose facts are a value, which is an object in JSON.
func object(v any) (*answer, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	a := new(answer)
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return a, d.Decode(&a.facts)
}
