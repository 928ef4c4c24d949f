// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package syntax

// SpelledElsewhere is how other tools and first guesses spell what a flag of ours means, where
// the letters are not near enough.
func SpelledElsewhere() map[string]string {
	return map[string]string{
		"--network": "--net", "--no-network": "--net none", "--offline": "--net none", "--share-net": "--net host", "--unshare-net": "--net none",
		"--read-only": "-s read-only", "--readonly": "-s read-only", "--workspace-write": "-s workspace-write",
		"--full-access": "-s full-access", "--danger-full-access": "-s full-access", "--no-sandbox": "-s full-access",
		"--minimal": "-P :minimal", "--write": "--rw", "--writable": "--rw", "--bind": "--rw", "--add-dir": "--rw",
		"--read": "--ro", "--readable": "--ro", "--ro-bind": "--ro", "--hide": "--deny",
		"--dir": "-C", "--cwd": "-C", "--chdir": "-C", "--workdir": "-C", "--setenv": "-e", "--terminal": "-t", "--pty": "-t",
	}
}
