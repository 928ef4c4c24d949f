// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import "bytes"

// denialWords are the words by which Codex recognizes a denial in the output
// of a command, in lower case.
var denialWords = [...]string{
	"operation not permitted", "permission denied", "read-only file system",
	"seccomp", "sandbox", "landlock", "failed to write file",
}

// exitBadSyscall is 128 + SIGSYS, the exit code of a shell whose command was
// killed by a system call filter on Linux.
const exitBadSyscall = 159

// SuspectDenied guesses, from the exit code and the words in the output,
// whether the sandbox denied something: Codex's rule. It is wrong both ways: a
// test log may print "permission denied" without a denial, and programs may be
// denied something and say nothing, or say it in another language.
//
// So it is a guess for hosts without evidence, shown as such. It must never
// lead to a question, a retry or a wider sandbox.
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

// SuspectDeniedSeed is the rule of the earliest public exec tools: in a sandbox
// every failure counts except "command not found" (exit code 127). The warnings
// of SuspectDenied apply all the more.
func SuspectDeniedSeed(exit int, sandboxed bool) bool {
	return sandboxed && exit != 0 && exit != 127
}
