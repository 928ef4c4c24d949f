// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/command/environ"
	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// The names of the files in the state directory. The second is the first one as it was
// when it was rotated.
const (
	fileName = "runs.jsonl"
	oldName  = "runs.jsonl.1"
)

// The bounds of the files, in bytes.
const (
	maxFile  = 1 << 20   // above it a file is rotated
	maxLine  = 256 << 10 // a line with its end
	maxArgs  = 64 << 10  // what is kept of all arguments together
	maxFlags = 8 << 10   // and of all flags
	maxWord  = 16 << 10  // and of one
	maxError = 4 << 10
)

// RecordVersion is the member "v" of a line. It changes when a member changes its meaning.
const RecordVersion = 1

// AppendRecord adds a record to the file in dir, which must exist and belong to the user
// alone. The record must have a Run. What the command printed and values that look like
// secrets are left out. Lines of several processes do not mix: it makes one write, and
// blocks only while another process rotates a full file.
func AppendRecord(dir string, r Record) error {
	line, err := r.line()
	if err != nil {
		return fmt.Errorf("runlog: %w", err)
	}
	// By descriptor: the directory may lie where a command of another run can exchange it.
	root, err := safefile.OpenTreePath(dir)
	if err == nil {
		err = errors.Join(appendLine(root, line), root.Close())
	}
	if err != nil {
		return fmt.Errorf("runlog: %w", err)
	}
	return nil
}

// appendLine writes a line at the end of a file, or of a new one when that is full.
func appendLine(dir *os.Root, line []byte) error {
	const attempts = 3 // other processes may fill the new one meanwhile; then it gets larger
	for attempt := range attempts {
		f, err := dir.OpenFile(fileName, os.O_WRONLY|os.O_APPEND|os.O_CREATE|safefile.NoWait, 0o600)
		if err != nil {
			return err
		}
		st, err := f.Stat()
		if err == nil && attempt < attempts-1 && st.Size() > 0 && st.Size()+int64(len(line)) > maxFile {
			err = errors.Join(rotate(dir, f, st), f.Close())
			if err != nil {
				return err
			}
			continue
		}
		if err == nil {
			err = writeLine(f, line)
		}
		return errors.Join(err, f.Close())
	}
	return nil
}

// writeLine writes in one call. A line that did not fit on the disk gets an end,
// so that the next one is not lost with it.
func writeLine(w io.Writer, line []byte) error {
	n, err := w.Write(line)
	if n > 0 && n < len(line) {
		_, _ = w.Write([]byte("\n"))
	}
	return err
}

// rotate renames a full file. Of several processes that find it full one does it: the
// one that holds the lock of the file that has the name.
func rotate(dir *os.Root, f *os.File, full fs.FileInfo) error {
	if err := lock(f); err != nil {
		return err
	}
	now, err := dir.Lstat(fileName)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(full, now) {
		return nil
	}
	if err != nil {
		return err
	}
	return dir.Rename(fileName, oldName)
}

// line returns the JSON form with a newline, at most maxLine bytes.
func (r Record) line() ([]byte, error) {
	if r.Run == "" {
		return nil, errors.New("a run without an identity")
	}
	res := r.Result
	res.Stdout, res.Stderr, res.Output = res.Stdout.WithoutText(), res.Stderr.WithoutText(),
		res.Output.WithoutText()
	if s := res.Stage; s != nil { // which has its changes
		res.Stage = &executor.Staged{ID: s.ID, Name: s.Name, Total: s.Total}
	}
	res.Args = shorten(environ.Mask(res.Args), maxArgs)
	res.Error = cut(res.Error, maxError)
	res.Survivors = slices.Clone(res.Survivors)
	for i := range res.Survivors {
		res.Survivors[i].Command = cut(environ.MaskText(res.Survivors[i].Command), maxError)
	}
	head, err := json.Marshal(header{RecordVersion, r.Start.UTC(),
		append([]string{}, shorten(environ.Mask(r.Flags), maxFlags)...)})
	if err != nil {
		return nil, err
	}
	for {
		body, err := res.MarshalJSON()
		if err != nil {
			return nil, err
		}
		if len(head)+len(body)+1 <= maxLine {
			head[len(head)-1] = ','
			return slices.Concat(head, body[1:], []byte("\n")), nil
		}
		if !shrink(&res, len(body)) {
			return nil, errors.New("the record is too long")
		}
	}
}

// shrink removes a part of a result whose form has size bytes. It reports false when
// nothing is left to remove.
func shrink(r *sallyport.Result, size int) bool {
	switch ds := r.Denials(); {
	case len(ds) > 0:
		// They are most of it as a rule: the share that fits, or one less.
		keep := min(len(ds)*maxLine/size*7/8, len(ds)-1)
		r.SetDenials(ds[:keep], r.DenialsOmitted+len(ds)-keep)
	case len(r.Warnings) > 0:
		r.Warnings = nil
	case len(r.Withheld) > 0:
		r.Withheld = nil
	case len(r.Quarantined) > 0:
		r.Quarantined = r.Quarantined[:len(r.Quarantined)/2]
	case len(r.HardLinks) > 0:
		keep := len(r.HardLinks) / 2
		r.HardLinks, r.HardLinksOmitted = r.HardLinks[:keep], r.HardLinksOmitted+len(r.HardLinks)-keep
	case len(r.New) > 0:
		r.New = r.New[:len(r.New)/2]
	case len(r.Args) > 1:
		// Control characters take six bytes each.
		r.Args = append(r.Args[:len(r.Args)/2:len(r.Args)/2], gap)
		if len(r.Args) == 2 {
			r.Args = r.Args[:1]
		}
	default:
		return false
	}
	return true
}

// shorten bounds words, each and all together.
func shorten(words []string, most int) []string {
	left, out := most, slices.Clone(words)
	for i, w := range out {
		out[i] = cut(w, min(maxWord, left))
		if left -= len(out[i]); left <= 0 {
			return append(out[:i+1], gap)
		}
	}
	return out
}

// gap marks what was omitted.
const gap = "..."

// cut bounds a text, and marks where it did.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + gap
}
