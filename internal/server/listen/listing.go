// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/approval/terminal"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/rules/files"
)

// A Question is open in a running process.
type Question struct {
	PID     int               `json:"pid"`
	Request *approval.Request `json:"request"`
	// RunID is that of a run of an exec-server, such as the daemon; empty for others.
	RunID string `json:"-"`
	// Expires is when it is denied without an answer, in milliseconds since 1970; 0 for no known limit.
	Expires int64 `json:"-"`
	// Digest identifies what Text says, which is Request as an approver program gets it.
	Digest string          `json:"-"`
	Text   json.RawMessage `json:"-"`

	socket questionSocket
}

// A QuestionSession is an approval for the session that a running process remembers.
type QuestionSession struct {
	PID int `json:"pid"`
	wire.Approved

	socket questionSocket
}

// A QuestionRule is one that an approval has remembered for good.
type QuestionRule struct {
	ID   string `json:"id"` // of the text
	Rule string `json:"rule"`
}

// A QuestionListing is what is open and what is remembered, each the oldest first. The member names of its
// JSON form stay. Its lists are not nil.
type QuestionListing struct {
	Type    string            `json:"type"` // always "approvals"
	Pending []Question        `json:"pending"`
	Session []QuestionSession `json:"session"`
	Rules   []QuestionRule    `json:"rules"`
	// Silent are the processes that did not answer, and why.
	Silent []string `json:"silent"`

	file string // with the rules
}

func newListing() *QuestionListing {
	return &QuestionListing{Type: "approvals", Pending: []Question{}, Session: []QuestionSession{},
		Rules: []QuestionRule{}, Silent: []string{}}
}

// ListQuestions asks all running processes of this user, and removes the sockets of dead ones. It blocks
// for some seconds at most. File is the rule file that approvals write to; empty is none.
func ListQuestions(file string) (*QuestionListing, error) {
	l := newListing()
	l.file = file
	if file != "" {
		source := files.Read(file)
		if source.Err != nil && !errors.Is(source.Err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read %s: %w", text.Word(file), source.Err)
		}
		for _, line := range ruleLines(source.Text) {
			l.Rules = append(l.Rules, QuestionRule{ruleID(line), line})
		}
	}
	found, err := socketsIn(socketsDir)
	if err != nil {
		return nil, err
	}
	all := make([]followed, len(found))
	var asking sync.WaitGroup
	for i, d := range found {
		all[i].questionSocket = d
		asking.Go(func() {
			var list wire.QuestionList
			if all[i].failed = d.call("question/list", struct{}{}, &list); all[i].failed == nil {
				all[i].listed = new(QuestionListing)
				all[i].failed = all[i].listed.take(d, &list)
			}
		})
	}
	asking.Wait()
	for i := range all {
		l.add(&all[i])
	}
	slices.SortStableFunc(l.Session, func(a, b QuestionSession) int { return a.Time.Compare(b.Time) })
	return l, nil
}

// add adds what a process has answered, or that it does not.
func (l *QuestionListing) add(f *followed) {
	switch {
	case f.failed == nil && f.listed != nil:
		l.Pending = append(l.Pending, f.listed.Pending...)
		l.Session = append(l.Session, f.listed.Session...)
		l.Silent = append(l.Silent, f.listed.Silent...)
	case f.failed != nil && !errors.Is(f.failed, ErrUnknownQuestion):
		l.Silent = append(l.Silent, fmt.Sprintf("process %d does not answer at %s: %v", f.pid,
			text.Word(f.path), f.failed))
	}
}

// take adds what a process has answered, all of it or nothing.
func (l *QuestionListing) take(d questionSocket, list *wire.QuestionList) error {
	var open []Question
	for _, q := range list.Questions {
		var r *approval.Request
		if err := json.Unmarshal(q.Request, &r); err != nil || r == nil {
			return errors.New("its answer has a question that cannot be read")
		}
		open = append(open, Question{PID: d.pid, Request: r, RunID: q.RunID, Digest: q.Digest,
			Text: q.Request, Expires: q.Expires, socket: d})
	}
	l.Pending = append(l.Pending, open...)
	for _, s := range list.Approved {
		l.Session = append(l.Session, QuestionSession{d.pid, s, d})
	}
	if list.Omitted > 0 {
		l.Silent = append(l.Silent,
			fmt.Sprintf("process %d has %d more questions, which are listed when others are answered", d.pid,
				list.Omitted))
	}
	return nil
}

// ruleID is the ID of a line of a rule file.
func ruleID(line string) string {
	sum := sha256.Sum256([]byte(line))
	return "rule-" + hex.EncodeToString(sum[:6])
}

// ruleLines returns the lines of a rule file that an approval could have written. A line that is
// a part of something else, such as a comment, is none.
func ruleLines(text []byte) []string {
	var out []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		written := strings.HasPrefix(line, "prefix_rule(pattern=[") &&
			strings.HasSuffix(line, `, decision="allow")`) || strings.HasPrefix(line, "network_rule(host=")
		if written && rules.Load(rules.Host{}, rules.Source{Name: "line", Text: []byte(line)}).Err() == nil &&
			!slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}

// An QuestionIDError says that an ID names nothing, or more than one thing.
type QuestionIDError struct {
	ID   string
	Many bool // it is the beginning of several IDs
}

func (e *QuestionIDError) Error() string {
	if e.Many {
		return "more than one ID begins with " + text.Word(e.ID)
	}
	return "no ID begins with " + text.Word(e.ID)
}

// pick returns the index of the one pair whose ID is id, or begins with it.
func pick(pairs [][2]string, id string) (int, error) {
	at, n := syntax.Shortened(id, len(pairs), func(i int) string { return pairs[i][0] })
	if n != 1 {
		return -1, &QuestionIDError{id, n > 1}
	}
	return at, nil
}

// Answer answers an open question, whose ID may be shortened. The error is an [*IDError],
// [ErrUnknownQuestion], [ErrNotOffered], [ErrOther] or that of the connection.
func (l *QuestionListing) Answer(id string, answer approval.Answer, message, path string) error {
	at, err := pick(l.Open(), id)
	if err != nil {
		return err
	}
	q := l.Pending[at]
	if answer == approval.ApprovedRule && q.Request.Kind == approval.KindNetwork {
		answer = approval.ApprovedHost // the rule is about a host
	}
	return q.Answer(&wire.QuestionAnswer{ID: q.Request.ID, Digest: q.Digest, Decision: answer.String(),
		Message: message, Path: path})
}

// Answer gives the process an answer, which has the digest of the question that was shown. The error is as
// that of [QuestionListing.Answer].
func (q *Question) Answer(a *wire.QuestionAnswer) error {
	return q.socket.call("question/answer", a, nil)
}

// Forget has a process forget an approval for the session, or removes a rule from the file; its ID
// may be shortened. The error is as that of Answer.
func (l *QuestionListing) Forget(id string) error {
	at, err := pick(l.Remembered(), id)
	switch {
	case err != nil:
		return err
	case at >= len(l.Rules):
		s := l.Session[at-len(l.Rules)]
		return s.socket.call("question/forget", map[string]any{"id": s.ID}, nil)
	}
	lock, err := dirs.Lock("rules")
	if err != nil {
		return err
	}
	defer lock.Close()
	found, err := files.Remove(l.file, l.Rules[at].Rule)
	if err == nil && !found {
		err = ErrUnknownQuestion
	}
	return err
}

// Open returns the IDs of the questions, each with what is asked.
func (l *QuestionListing) Open() [][2]string {
	var out [][2]string
	for _, q := range l.Pending {
		out = append(out, [2]string{q.Request.ID, terminal.Words(q.Request.Args)})
	}
	return out
}

// Remembered returns the IDs of what Forget forgets, each with what was approved.
func (l *QuestionListing) Remembered() [][2]string {
	var out [][2]string
	for _, r := range l.Rules {
		out = append(out, [2]string{r.ID, r.Rule})
	}
	for _, s := range l.Session {
		out = append(out, [2]string{s.ID, terminal.Words(s.Argv)})
	}
	return out
}

// String is the listing for people.
func (l *QuestionListing) String() string {
	var b strings.Builder
	for _, q := range l.Pending {
		fmt.Fprintf(&b, "question %s of process %d:\n", text.Word(q.Request.ID), q.PID)
		for line := range strings.Lines(terminal.Text(q.Request)) {
			b.WriteString("  " + line)
		}
		fmt.Fprintf(&b, "  answers: %s\n\n", strings.Join(commands(q.Request), "; "))
	}
	for _, s := range l.Session {
		fmt.Fprintf(&b, "approved for the session of process %d at %s: %s\n  | %s\n", s.PID,
			s.Time.Format(time.DateTime), text.Word(s.ID), terminal.Words(s.Argv))
	}
	for _, r := range l.Rules {
		fmt.Fprintf(&b, "remembered for good: %s\n  | %s\n", r.ID, text.Line(r.Rule))
	}
	if b.Len() == 0 {
		b.WriteString("No question is open, and nothing is remembered.\n")
	}
	for _, s := range l.Silent {
		b.WriteString(s + "\n")
	}
	return b.String()
}

// commands are the command lines that answer a question.
func commands(r *approval.Request) []string {
	out := []string{"approve"}
	for flag, a := range map[string]approval.Answer{"approve --rule": approval.ApprovedRule,
		"approve --session": approval.ApprovedForSession} {
		offered := func(o approval.Offer) bool {
			return o.Answer == a || a == approval.ApprovedRule && o.Answer == approval.ApprovedHost && !o.Deny
		}
		if slices.Contains(r.Available, a) || slices.ContainsFunc(r.Offers, offered) {
			out = append(out, flag)
		}
	}
	slices.Sort(out)
	return append(out, "deny")
}
