// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A listing is the answer of changes --json. Its member names stay.
type listing struct {
	Stage   executor.StageInfo `json:"stage"`
	Total   int                `json:"changes_total"`
	Changes []executor.Change  `json:"changes"` // all of them
}

// changes is the verb changes.
func changes(ctx context.Context, env *Env, o *Options, words, after []string) error {
	if o.diff && o.json {
		return explain.NewError("--diff and --json cannot be combined; use one of them")
	}
	c, err := choose(ctx, env, words, after)
	if err != nil {
		return err
	}
	if o.diff {
		var failed error
		err := env.Printing(func(w io.Writer) error {
			out := &output{to: w, terminal: env.Terminal}
			failed = c.Diff(ctx, out, c.paths...)
			if out.finish(); out.err == nil {
				return nil
			}
			failed = nil
			return out.err
		})
		if err != nil {
			return err
		}
		return c.explained(ctx, env, failed)
	}
	all, err := c.Changes(ctx, c.paths...)
	switch {
	case err != nil:
		return c.explained(ctx, env, err)
	case o.json:
		return env.PrintJSON(listing{c.Info(), len(all), slices.Grow(all, 1)})
	}
	var b strings.Builder
	here := hostfacts.RealPath(env.Dir)
	for i := range all {
		b.WriteString(line(&all[i], here))
	}
	return env.Print(b.String())
}

// letters are those of git status --short.
var letters = map[string]string{
	executor.ChangeAdded: "A", executor.ChangeModified: "M", executor.ChangeMode: "M",
	executor.ChangeDeleted: "D", executor.ChangeRenamed: "R", executor.ChangeType: "T",
}

// line is the line of a change for people in a directory.
func line(c *executor.Change, here string) string {
	s := letters[c.Kind] + "  "
	if c.Kind == executor.ChangeRenamed {
		s += text.Word(shown(c.Root, c.From, here)) + " -> "
	}
	name := shown(c.Root, c.Path, here)
	if c.File == "dir" && name != "/" {
		name += "/"
	}
	var about []string
	switch {
	case c.Kind == executor.ChangeMode:
		about = append(about, "mode "+c.Mode)
	case c.Entries > 0:
		about = append(about, "with "+explain.Plural(c.Entries, "entry", "entries"))
	}
	if c.File == "special" && c.Kind != executor.ChangeDeleted {
		about = append(about, "a special file, which is never applied")
	}
	if c.RunsLater {
		about = append(about, "programs outside run or obey it")
	}
	s += text.Word(name)
	if about != nil {
		s += "  (" + text.Line(strings.Join(about, "; ")) + ")"
	}
	return s + "\n"
}

// shown is the path of a change as it is named in a directory: relative there, if that is in the same root.
func shown(root, name, here string) string {
	full := filepath.Join(root, name)
	inside, err := filepath.Rel(root, here)
	if err != nil || here == "" || inside == ".." || strings.HasPrefix(inside, "../") {
		return full
	}
	rel, err := filepath.Rel(here, full)
	if err != nil {
		return full
	}
	return rel
}

// maxLine is how much of a line waits for its end.
const maxLine = 64 << 10

// An output writes to standard output. On a terminal what would move it is escaped: files have words of
// others.
type output struct {
	to       io.Writer
	terminal bool
	rest     []byte // of a line
	err      error
}

// Write implements [io.Writer].
func (o *output) Write(p []byte) (int, error) {
	switch {
	case o.err != nil:
	case !o.terminal:
		_, o.err = o.to.Write(p)
	default:
		o.rest = append(o.rest, p...)
		if end := bytes.LastIndexByte(o.rest, '\n') + 1; end > 0 {
			o.flush(end)
		} else if len(o.rest) > maxLine {
			o.flush(len(o.rest) - text.Unfinished(o.rest))
		}
	}
	if o.err != nil {
		return 0, o.err
	}
	return len(p), nil
}

// finish writes a line without an end, and makes the error of output one of people.
func (o *output) finish() {
	if o.err == nil {
		o.flush(len(o.rest))
	}
	if o.err != nil && !errors.Is(o.err, io.ErrShortWrite) {
		o.err = explain.CannotWrite(o.err)
	}
}

// flush writes the first n bytes that wait.
func (o *output) flush(n int) {
	cells := strings.Split(string(o.rest[:n]), "\t") // which stay
	for i := range cells {
		cells[i] = text.Lines(cells[i])
	}
	_, o.err = io.WriteString(o.to, strings.Join(cells, "\t"))
	o.rest = append(o.rest[:0], o.rest[n:]...)
}
