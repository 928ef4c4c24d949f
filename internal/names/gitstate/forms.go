// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gitstate

import (
	"bytes"
	"crypto/sha256"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// A Form returns the values in a file that do not have the form in which git writes them there.
// No form finds fault with an empty file: git makes one before it writes to it.
type Form func(text []byte) (bad []string)

// wordChars are what words of git's own consist of.
const wordChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// byLine is the form of files of which each line is good.
func byLine(good func(line string) bool) Form {
	return func(text []byte) (bad []string) {
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
			if line != "" && !good(line) {
				bad = append(bad, line)
			}
		}
		return bad
	}
}

// single is the form of files with one value, which is good.
func single(good func(value string) bool) Form {
	return func(text []byte) []string {
		if value := oneLine(text); len(text) > 0 && value != "" && !good(value) {
			return []string{value}
		}
		return nil
	}
}

// Forms of single values and lists.
var (
	nothing    = single(func(string) bool { return false })
	number     = single(digits)
	flag       = single(func(v string) bool { return slices.Contains([]string{"t", "f", "b"}, v) })
	plainWord  = single(func(v string) bool { return strings.Trim(v, wordChars+". ") == "" })
	head       = single(func(v string) bool { return objectID(v) || symbolicRef(v) })
	pseudoRef  = byLine(func(line string) bool { return objectID(line) || symbolicRef(line) })
	branchHead = single(func(v string) bool { return v == "detached HEAD" || fullRef(v) || v == "HEAD" })
	branch     = single(refName)
	strategy   = single(func(v string) bool { return slices.Contains(ownStrategies, v) })
	refNames   = byLine(fullRef)
	terms      = byLine(bisectTerm)

	// objects are lines of names of objects with blanks between.
	objects = byLine(func(line string) bool {
		return !slices.ContainsFunc(strings.Fields(line),
			func(word string) bool { return !objectID(word) }) && plainText(line)
	})
	refsAndObjects = byLine(func(line string) bool { return objectID(line) || fullRef(line) })
	fixups         = byLine(func(line string) bool {
		word, id, _ := strings.Cut(line, " ")
		return (word == "fixup" || word == "squash") &&
			objectID(strings.TrimPrefix(strings.TrimPrefix(id, "-C "), "-c "))
	})
	quotedLines = byLine(func(line string) bool { _, ok := quoted(line); return ok })
	todo        = byLine(step)
	bisectLog   = byLine(bisectStep)
)

// oneOf is the form of a file with one of these words.
func oneOf(list ...string) Form {
	return single(func(v string) bool { return slices.Contains(list, v) })
}

// oneLine returns the text of a file as read_oneliner of sequencer.c does, without the blanks
// around it that older versions write.
func oneLine(text []byte) string {
	value, _ := strings.CutSuffix(string(text), "\n")
	return strings.TrimSuffix(value, "\r")
}

func digits(v string) bool { return v != "" && len(v) < 20 && strings.Trim(v, "0123456789") == "" }

// objectID reports whether a word is the name of an object, or the beginning of one.
func objectID(v string) bool {
	return len(v) >= 4 && len(v) <= 2*sha256.Size && strings.Trim(v, "0123456789abcdefABCDEF") == ""
}

func symbolicRef(v string) bool {
	name, ok := strings.CutPrefix(v, "ref: ")
	return ok && fullRef(strings.TrimSpace(name))
}

// fullRef reports whether a word is the whole name of a ref.
func fullRef(v string) bool { return strings.HasPrefix(v, "refs/") && refName(v) }

// refName reports whether git takes a word for the name of a ref (check_refname_format in
// refs.c), which does not look like an option.
func refName(v string) bool {
	if v == "" || v == "@" || v[0] == '-' || strings.HasSuffix(v, ".") || strings.Contains(v, "..") ||
		strings.Contains(v, "@{") {
		return false
	}
	for part := range strings.SplitSeq(v, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return !strings.ContainsFunc(v, func(r rune) bool {
		return r <= ' ' || r == 0x7f ||
			strings.ContainsRune("~^:?*[\\", r)
	})
}

// plainText reports whether a line has no control characters but tabs.
func plainText(line string) bool {
	return !strings.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// A stepKind says what follows a word of a list of steps.
type stepKind uint8

const (
	ofCommit stepKind = iota + 1
	ofName
	ofMerge
	alone
)

// steps are the words in lists of steps that run no commands (todo_command_info of sequencer.c).
var steps = sync.OnceValue(func() map[string]stepKind {
	return map[string]stepKind{
		"pick": ofCommit, "p": ofCommit, "revert": ofCommit, "edit": ofCommit, "e": ofCommit, "reword": ofCommit, "r": ofCommit,
		"fixup": ofCommit, "f": ofCommit, "squash": ofCommit, "s": ofCommit, "drop": ofCommit, "d": ofCommit,
		"label": ofName, "l": ofName, "reset": ofName, "t": ofName, "update-ref": ofName, "u": ofName,
		"merge": ofMerge, "m": ofMerge, "break": alone, "b": alone, "noop": alone,
	}
})

// step reports whether a line of a list of steps is git's own and runs no command. Git takes a
// line that begins with the comment character for none, whatever that is.
func step(line string) bool {
	line = strings.Trim(line, " \t")
	word, rest, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
	rest = strings.TrimLeft(rest, " ")
	if !plainText(line) {
		return false
	}
	switch kind, ok := steps()[word]; {
	case line == "":
		return true
	case strings.Trim(line[:1], wordChars) != "":
		// a comment, or an error
		return line[0] != '`' && !strings.HasPrefix(line, "$(") && !strings.HasPrefix(line, "${")
	case !ok:
		// What is being written may end in the middle of a word, which git would not take.
		return rest == "" && len(word) == len(line) && isPrefix(word)
	case kind == alone:
		return rest == "" || rest[0] == '#'
	case kind == ofCommit && (word == "fixup" || word == "f"):
		rest = strings.TrimPrefix(strings.TrimPrefix(rest, "-C "), "-c ")
		return rest == "" || rest[0] != '-'
	case kind == ofCommit:
		return rest == "" || rest[0] != '-'
	case kind == ofName:
		name, more, _ := strings.Cut(rest, " ")
		return name == "[new" && strings.HasPrefix(more, "root]") || name == "" || refName(name) ||
			objectID(name)
	}
	return mergeStep(rest)
}

// mergeStep reports whether what follows merge in a list of steps is its own: a commit for the
// message, names, and a comment.
func mergeStep(rest string) bool {
	for _, option := range []string{"-C ", "-c "} {
		if after, ok := strings.CutPrefix(rest, option); ok {
			id, more, _ := strings.Cut(strings.TrimLeft(after, " "), " ")
			if !objectID(id) {
				return false
			}
			rest = more
			break
		}
	}
	for word := range strings.FieldsSeq(rest) {
		if word == "#" {
			return true
		}
		if !refName(word) {
			return false
		}
	}
	return true
}

// isPrefix reports whether a word of a list of steps begins like this.
func isPrefix(word string) bool {
	for full := range steps() {
		if strings.HasPrefix(full, word) {
			return true
		}
	}
	return false
}

// bisectStep reports whether a line of the log of git bisect is git's own.
func bisectStep(line string) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), "git bisect ")
	if !ok {
		return line[0] == '#' || strings.HasPrefix("git bisect ", line) ||
			strings.HasPrefix(line, "git bisect") && len(line) <= len("git bisect ")
	}
	word, rest, _ := strings.Cut(rest, " ")
	if word == "start" {
		_, ok := quoted(rest)
		return ok
	}
	return bisectTerm(word) && strings.Trim(rest, wordChars+"./ '") == ""
}

// bisectTerm reports whether a word can stand for good or bad: the end of the name of a ref
// (check_term_format in builtin/bisect.c), without what a shell gives a meaning to.
func bisectTerm(word string) bool {
	return refName(word) && strings.Trim(word, wordChars+"./+,=@%") == ""
}

// authorScript is the form of three assignments with words in single quotes, as sq_quote_buf
// of quote.c writes them.
func authorScript(text []byte) []string {
	rest, known := string(text), []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"}
	for rest != "" {
		name, value, ok := strings.Cut(rest, "=")
		i := slices.Index(known, name)
		if !ok || i < 0 {
			return []string{string(text)}
		}
		known = slices.Delete(known, i, i+1)
		if rest, ok = quotedWord(value); !ok {
			return []string{string(text)}
		}
	}
	return nil
}

// quotedWord takes a word in single quotes and its line end off a text. The word itself may
// have line ends.
func quotedWord(text string) (rest string, ok bool) {
	for {
		var inside string
		if text == "" || text[0] != '\'' {
			return "", false
		}
		if inside, text, ok = strings.Cut(text[1:], "'"); !ok || strings.IndexByte(inside, 0) >= 0 {
			return "", false
		}
		switch {
		case strings.HasPrefix(text, `\''`), strings.HasPrefix(text, `\!'`):
			text = text[2:]
		case text == "" || text[0] == '\n':
			return strings.TrimPrefix(text, "\n"), true
		default:
			return "", false
		}
	}
}

// ownStrategies are the merge strategies that are part of git (all_strategy in
// builtin/merge.c).
var ownStrategies = []string{"ort", "recursive", "resolve", "octopus", "ours", "subtree"}

// strategyOption reports whether a word is an option of the strategies ort and
// recursive (parse_merge_opt in merge-ort-wrappers.c), without dashes.
func strategyOption(word string) bool {
	name, value, _ := strings.Cut(word, "=")
	switch name {
	case "ours", "theirs", "patience", "histogram", "minimal", "ignore-space-change", "ignore-all-space",
		"ignore-space-at-eol", "ignore-cr-at-eol", "renormalize", "no-renormalize", "no-renames":
		return word == name
	case "subtree", "find-renames", "rename-threshold", "diff-algorithm":
		return !strings.ContainsAny(value, "\"'\\`$;|&<>()")
	}
	return false
}

// strategyWords returns the text when one of its words is no option of a strategy.
func strategyWords(text []byte) []string {
	for _, word := range strings.Fields(oneLine(text)) {
		word, ok := strings.CutPrefix(unquote(word), "--")
		if !ok || !strategyOption(word) {
			return []string{string(text)}
		}
	}
	return nil
}

// unquote takes the quotes off one word. Some versions of git write them.
func unquote(word string) string {
	for _, q := range []string{"'", `"`} {
		if inside, ok := strings.CutPrefix(word, q); ok {
			if inside, ok = strings.CutSuffix(inside, q); ok && !strings.Contains(inside, q) {
				return inside
			}
		}
	}
	return word
}

// sequencerOpts returns the values in the options of a cherry-pick or revert that git does not
// write (save_opts in sequencer.c).
func sequencerOpts(text []byte) []string {
	entries, broken := ParseConfig(text)
	if broken != 0 {
		return []string{string(text)}
	}
	var bad []string
	for _, entry := range entries {
		if !sequencerOpt(entry) {
			bad = append(bad, entry.Key+" "+entry.Value)
		}
	}
	return bad
}

func sequencerOpt(entry Entry) bool {
	switch entry.Key {
	case "options.strategy":
		return slices.Contains(ownStrategies, entry.Value)
	case "options.strategy-option":
		return strategyOption(entry.Value)
	case "options.gpg-sign":
		return entry.Value == ""
	case "options.mainline":
		return digits(entry.Value)
	case "options.default-msg-cleanup":
		return strings.Trim(entry.Value, wordChars) == ""
	case "options.no-commit", "options.edit", "options.signoff", "options.record-origin", "options.allow-ff",
		"options.allow-empty",
		"options.allow-empty-message", "options.drop-redundant-commits", "options.keep-redundant-commits",
		"options.allow-rerere-auto":
		return slices.Contains([]string{"true", "false", "1", "0", "", "yes", "no"}, entry.Value)
	}
	return false
}

// applyWords returns the options for git apply that git am does not pass on.
func applyWords(text []byte) []string {
	words, ok := quoted(oneLine(text))
	if !ok {
		return []string{string(text)}
	}
	return slices.DeleteFunc(words, func(word string) bool {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "--whitespace", "--ignore-space-change", "--ignore-whitespace", "--directory", "--exclude",
			"--include", "--reject":
			return true
		}
		return value == "" && (strings.HasPrefix(name, "-C") || strings.HasPrefix(name, "-p"))
	})
}

// quoted splits words that git has quoted (sq_dequote_to_strvec in quote.c).
func quoted(text string) (words []string, ok bool) {
	var word strings.Builder
	for text = strings.TrimSpace(text); text != ""; {
		inside, rest, closed := strings.Cut(strings.TrimPrefix(text, "'"), "'")
		if text[0] != '\'' || !closed {
			return nil, false
		}
		word.WriteString(inside)
		switch {
		case strings.HasPrefix(rest, `\''`), strings.HasPrefix(rest, `\!'`):
			word.WriteByte(rest[1])
			text = rest[2:]
		case rest == "", strings.TrimLeft(rest, " \t") != rest:
			words = append(words, word.String())
			word.Reset()
			text = strings.TrimLeft(rest, " \t")
		default:
			return nil, false
		}
	}
	return words, true
}

// rerereNames returns the paths in the list of conflicts that are not in the work tree
// (read_rr in rerere.c).
func rerereNames(text []byte) []string {
	var names []string
	for record := range bytes.SplitSeq(text, []byte{0}) {
		id, name, ok := strings.Cut(string(record), "\t")
		if ok && !InsideName(name) || strings.Trim(id, "0123456789abcdef.") != "" || !utf8.ValidString(id) {
			names = append(names, string(record))
		}
	}
	return names
}

// InsideName reports whether git uses the name from an index at all: it stays in the
// work tree and out of .git (verify_path in git's read-cache.c).
func InsideName(name string) bool {
	if name == "" || name[0] == '/' {
		return false
	}
	separator := func(r rune) bool { return r < utf8.RuneSelf && os.IsPathSeparator(uint8(r)) }
	for element := range strings.FieldsFuncSeq(name, separator) {
		if element == "." || element == ".." || strings.EqualFold(element, ".git") {
			return false
		}
	}
	return true
}
