// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import "bytes"

// denialWords are the words by which Codex recognizes a denial in the output of a
// command, in lower case.
var denialWords = [...]string{
	"operation not permitted", "permission denied", "read-only file system",
	"seccomp", "sandbox", "landlock", "failed to write file",
}

// exitBadSyscall is 128 + SIGSYS, the exit code of a shell whose command was
// killed by a system call filter on Linux.
const exitBadSyscall = 159

// SuspectDenied infers from the exit code and the words in the output whether the
// sandbox denied something, by Codex's rule. It is wrong both ways: a test log can
// print "permission denied" without a denial, and a program can be denied something
// without a word, or report it in another language. It is for hosts without evidence
// and must never lead to an approval, a retry or a wider sandbox.
func SuspectDenied(exit int, sandboxed, linux bool, texts ...[]byte) bool {
	if !sandboxed || exit == 0 {
		return false
	}
	for _, t := range texts {
		lower := bytes.ToLower(t)
		for _, w := range denialWords {
			if bytes.Contains(lower, []byte(w)) {
				return true
			}
		}
	}
	return linux && exit == exitBadSyscall
}
