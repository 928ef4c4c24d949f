// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/text"
)

const (
	// announcedTime is how long a request waits for questions that were announced.
	announcedTime = 2 * time.Second
	// maxQuestions is how many bytes of questions one answer has; the first one is always there.
	maxQuestions = wire.MaxFrame / 2
)

// questionMethods are methods about the open questions of the client's runs, or of a server that
// has [Options.Questions]. They are for clients that ask for extension methods.
var questionMethods = sync.OnceValue(func() map[string]method {
	return map[string]method{
		"question/list":   on("question", wire.DecodeList, (*connection).listQuestions),
		"question/answer": on("question", wire.Decode[wire.QuestionAnswer], (*connection).answerQuestion),
		"question/forget": on("question", wire.Decode[wire.QuestionID], (*connection).forgetApproval),
	}
})

// answerWord returns the answer that a client has given as a word.
func answerWord(word string) (answer approval.Answer, err error) {
	if err := answer.UnmarshalText([]byte(word)); err != nil || answer == approval.TimedOut {
		return approval.Denied, fmt.Errorf("%q is no decision", text.Line(word))
	}
	return answer, nil
}

// aboutQuestions performs a request beside all others, with the questions that the client may see.
// Those that were announced are waited for.
func (c *connection) aboutQuestions(id wire.ID, perform func([]*runs.Questions) (any, error)) {
	all := c.questions()
	c.beside(id, func(ctx context.Context) (any, error) {
		limited, cancel := context.WithTimeout(ctx, announcedTime)
		defer cancel()
		for _, q := range all {
			q.Await(limited)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return perform(all)
	})
}

// questions are those that the client may see.
func (c *connection) questions() []*runs.Questions {
	if q := c.server.opts.Questions; q != nil {
		return []*runs.Questions{q}
	}
	return c.server.runs.Questions(c.credential)
}

func (c *connection) listQuestions(id wire.ID, p *wire.ListWait) {
	if p.Since == "" {
		c.aboutQuestions(id, func(all []*runs.Questions) (any, error) {
			return questionList(all, runs.Version(all))
		})
		return
	}
	c.beside(id, func(ctx context.Context) (any, error) {
		var all []*runs.Questions
		version, err := c.await(ctx, p, c.changed, func() string {
			all = c.questions()
			return runs.Version(all)
		})
		if err != nil {
			return nil, err
		}
		return questionList(all, version)
	})
}

// lastAnswered are the questions of which the list says who has answered them.
func lastAnswered(q *runs.Questions) []approval.AnsweredQuestion {
	const most = 16 // those who wait for the list see each change
	all := q.Open.Answered()
	return all[max(0, len(all)-most):]
}

func questionList(all []*runs.Questions, version string) (any, error) {
	list := wire.QuestionList{Questions: []wire.Question{}, Approved: []wire.Approved{}, Version: version}
	size := 0
	for _, q := range all {
		for _, r := range q.Open.Pending() {
			text, digest, err := runs.Question(r)
			if err != nil {
				return nil, err
			}
			if size += len(text); size > maxQuestions && len(list.Questions) > 0 {
				list.Omitted++
				continue
			}
			list.Questions = append(list.Questions,
				wire.Question{RunID: q.RunID, Digest: digest, Request: text,
					Expires: q.Limits.Of(r.ID)})
		}
		for _, o := range lastAnswered(q) {
			list.Answered = append(list.Answered, wire.Answered{ID: o.ID, By: string(o.By)})
		}
		for _, m := range q.Remembered() {
			r := m.Request
			list.Approved = append(list.Approved, wire.Approved{ID: r.ID, Argv: r.Args, CWD: r.Dir,
				Requires: r.Requires, Time: m.Time})
		}
	}
	return list, nil
}

func (c *connection) answerQuestion(id wire.ID, a *wire.QuestionAnswer) {
	answer, err := answerWord(a.Decision)
	if err != nil {
		c.fail(id, invalid(err.Error()))
		return
	}
	source := cmp.Or(approval.Source(a.Source), approval.FromUser)
	if source != approval.FromUser && source != approval.FromConsole {
		c.fail(id, invalid(fmt.Sprintf("unknown source %q; use user or console", text.Line(a.Source))))
		return
	}
	c.aboutQuestions(id, func(all []*runs.Questions) (any, error) {
		return struct{}{}, runs.Answer(all, a.ID, a.Digest,
			approval.Decision{Answer: answer, Message: a.Message, Path: a.Path, Source: source})
	})
}

func (c *connection) forgetApproval(id wire.ID, p *wire.QuestionID) {
	c.aboutQuestions(id, func(all []*runs.Questions) (any, error) {
		return struct{}{},
			runs.Forget(all, p.ID)
	})
}
