// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/safefile"
)

const (
	// approvedFlag is that of run which names what a person approves in an agent.
	approvedFlag = "--approved"
	approvedDir  = "approved" // in the state directory
	// approvedFor is how long a person has to approve.
	approvedFor = 10 * time.Minute
)

// approvable writes down a question that an agent is about to ask a person, and returns its ID. It counts for
// one run with these words, about which the same would be asked.
func approvable(q *approval.Request, words []string) (id string, err error) {
	digest, err := approvedDigest(q, words)
	if err != nil {
		return "", err
	}
	dir, err := openApproved()
	if err != nil {
		return "", err
	}
	defer dir.Close()
	sweepApproved(dir)
	id = rand.Text()
	f, err := dir.OpenFile(id, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(digest)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return id, err
}

// unapproved are the words of a run without the flag that [hook] writes in front of them.
func unapproved(words []string) []string {
	if len(words) > 1 && words[0] == approvedFlag {
		return words[2:]
	}
	return words
}

// openApproved opens the directory of what may be approved, which no command in a sandbox sees.
func openApproved() (*os.Root, error) {
	state, err := dirs.Dir()
	if err != nil {
		return nil, err
	}
	root, err := safefile.OpenTreePath(state)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return safefile.MakeDir(root, approvedDir)
}

// sweepApproved removes what is too old.
func sweepApproved(dir *os.Root) {
	all, err := dir.Open(".")
	if err != nil {
		return
	}
	defer all.Close()
	names, _ := all.Readdirnames(-1) // what is not listed stays, and is refused
	for _, name := range names {
		if info, err := dir.Lstat(name); err == nil && !fresh(info) {
			_ = dir.Remove(name)
		}
	}
}

// fresh reports whether there is still time; a clock that was set back makes everything old.
func fresh(info os.FileInfo) bool {
	age := time.Since(info.ModTime())
	return age > -time.Minute && age < approvedFor
}

// approvedDigest identifies what a person was shown, and how it runs. Every run has an ID of its own, and the
// agent chooses what the command reads.
func approvedDigest(q *approval.Request, words []string) (string, error) {
	asked := *q
	asked.ID, asked.Input = "", ""
	_, digest, err := runs.Question(&asked)
	if err != nil {
		return "", err
	}
	all, err := json.Marshal(append([]string{digest}, words...))
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:]), err
}

// approvedBy returns who answers the first question of a run with these words, if a person has approved it
// under an ID. What was written down is used up by that, whatever the answer. Other questions pass.
func approvedBy(id string, words []string) approval.Approver {
	var used atomic.Bool
	return approval.Func(func(_ context.Context, q *approval.Request) (approval.Decision, error) {
		if used.Swap(true) {
			return approval.Decision{}, approval.ErrPass
		}
		d := q.Decide(approval.Denied)
		d.Source = approval.FromUser
		said, err := takeApproved(id)
		if err != nil {
			d.Message = "what was approved in the agent is not known: it was used, or is older than " +
				"10 minutes; have the agent ask again"
			return d, nil //nolint:nilerr // it denies
		}
		digest, err := approvedDigest(q, words)
		if err != nil || digest != said {
			d.Message = "another command, or other flags, files or settings, were approved in the agent; " +
				"have the agent ask again"
			return d, nil //nolint:nilerr // it denies
		}
		d = q.Decide(approval.Approved)
		d.Source, d.Message = approval.FromUser, "approved in the agent"
		return d, nil
	})
}

// takeApproved returns what was written down under an ID, once: of several processes one removes it.
func takeApproved(id string) (digest string, err error) {
	dir, err := openApproved()
	if err != nil {
		return "", err
	}
	defer dir.Close()
	f, err := dir.OpenFile(id, os.O_RDONLY|safefile.NoWait, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := dir.Remove(id); err != nil {
		return "", err
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || !fresh(info) {
		return "", fmt.Errorf("%s is too old: %w", id, os.ErrNotExist)
	}
	said, err := io.ReadAll(io.LimitReader(f, 2*sha256.Size+1))
	return string(said), err
}
