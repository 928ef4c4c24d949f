// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"strings"

	"github.com/sallyport-dev/sallyport/internal/command/script"
)

// Wrap returns the command that runs one contained: the program that is called sallyport, run, and the words
// of that run, each quoted so that every shell reads it back as it was. The words have no NUL.
func Wrap(program string, run []string) string {
	words := append([]string{program, "run"}, run...)
	for i, w := range words {
		words[i] = Quote(w)
	}
	return strings.Join(words, " ")
}

// Quote quotes a word for a POSIX shell, and for zsh. The word has no NUL.
func Quote(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+,-./:@_"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Contained returns the words of a command that is one simple command, the program run with plain words:
// those after "run". Whether the program is sallyport, and what its flags open, is for the caller to say.
// Words is nil for every other command.
func Contained(command string) (program string, words []string) {
	all, ok := script.Words(command)
	if !ok || len(all) < 3 || all[1] != "run" {
		return "", nil
	}
	return all[0], all[2:]
}
