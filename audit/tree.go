// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// A tree is the Merkle tree of package tlog over the first lines of a log, of which only the right
// edge is kept: the roots of the complete subtrees, the largest first.
type tree struct {
	n    uint64 // lines
	edge []sum  // as many as n has bits that are set
}

// add adds a line, without its end.
func (t *tree) add(text []byte) {
	h := tlog.RecordHash(text)
	for i := t.n; i&1 != 0; i >>= 1 {
		last := len(t.edge) - 1
		h = tlog.NodeHash(tlog.Hash(t.edge[last]), h)
		t.edge = t.edge[:last]
	}
	t.edge = append(t.edge, sum(h))
	t.n++
}

// root returns what [tlog.TreeHash] would.
func (t *tree) root() tlog.Hash {
	if len(t.edge) == 0 {
		h, _ := tlog.TreeHash(0, nil) // of nothing, which cannot fail
		return h
	}
	last := len(t.edge) - 1
	h := tlog.Hash(t.edge[last])
	for i := last - 1; i >= 0; i-- {
		h = tlog.NodeHash(tlog.Hash(t.edge[i]), h)
	}
	return h
}

// fits reports whether the edge is one of n lines.
func (t *tree) fits() bool { return bits.OnesCount64(t.n) == len(t.edge) }

// A checkpoint says what a log was at one time. Its text is that of c2sp.org/tlog-checkpoint, with the
// time as a further line.
type checkpoint struct {
	origin string // the name of the key that signs it
	n      uint64
	root   tlog.Hash
	time   time.Time
}

const timeWord = "time "

func (c *checkpoint) text() string {
	return fmt.Sprintf("%s\n%d\n%s\n%s%s\n", c.origin, c.n, c.root, timeWord, c.time.UTC().Format(time.RFC3339Nano))
}

var errNote = errors.New("it is not a checkpoint of an audit log")

// parseCheckpoint reads the text of a note.
func parseCheckpoint(text string) (*checkpoint, error) {
	parts := strings.Split(text, "\n")
	if len(parts) < 5 || !strings.HasPrefix(parts[3], timeWord) {
		return nil, errNote
	}
	n, err := strconv.ParseUint(parts[1], 10, 64)
	if err != nil {
		return nil, errNote
	}
	root, err := tlog.ParseHash(parts[2])
	if err != nil {
		return nil, errNote
	}
	at, err := time.Parse(time.RFC3339Nano, strings.TrimPrefix(parts[3], timeWord))
	if err != nil {
		return nil, errNote
	}
	c := &checkpoint{parts[0], n, root, at}
	if c.text() != text {
		return nil, errNote
	}
	return c, nil
}

// openCheckpoint reads a checkpoint that one of the keys must have signed.
func openCheckpoint(signed string, keys note.Verifiers) (*checkpoint, error) {
	n, err := note.Open([]byte(signed), keys)
	if unknown := new(note.UnverifiedNoteError); errors.As(err, &unknown) {
		return nil, fmt.Errorf("it is signed by %s, which is not the key of this log", signers(unknown.Note))
	}
	if err != nil {
		return nil, fmt.Errorf("its signature does not hold: %w", err)
	}
	return parseCheckpoint(n.Text)
}

// signers names the keys by which a note says it is signed.
func signers(n *note.Note) string {
	var names []string
	for _, s := range n.UnverifiedSigs {
		names = append(names, fmt.Sprintf("%s+%08x", text.Word(s.Name), s.Hash))
	}
	return strings.Join(names, ", ")
}
