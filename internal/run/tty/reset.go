// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tty

// ResetSequence brings a terminal that a program has used into the state in which a shell expects it. It
// asks the terminal nothing, does not move the cursor on the main screen, and erases only what is
// below it. Each part is without effect where there is nothing to undo.
const ResetSequence = "\x18\x1b\\" + // CAN, ST: the end of a sequence or a string that has none
	"\x1b[?2026l" + // synchronized output: nothing is held back
	"\x1b7\x1b[?1049l" + // the main screen, where the program left it; on it, the cursor stays
	"\x1b[!p" + // DECSTR: modes, character sets, attributes and margins, as far as it is known
	"\x1b[?69l\x1b7\x1b[r\x1b8" + // no margins; to reset them moves the cursor
	"\x1b(B\x0f\x1b[2;4;20l\x1b[?7;25h" + // ASCII; no locked keyboard, no insertion; wrapping, a cursor
	"\x1b[?1;5;9;66;1000;1001;1002;1003;1004l" + // keys, colors, mouse and focus as usual
	"\x1b[?1005;1006;1015;1016;2004;2031;2048;9001l\x1b>" + // and nothing that types by itself
	"\x1b[=0u\x1b[>4m" + // keys without modifiers of kitty and xterm
	"\x1b]8;;\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\" + // no link; the user's colors of text
	"\x1b[0m\x1b[J" // no attributes; nothing below the cursor

// Reset undoes what a program that ran on the terminal may have left there: the alternate screen,
// other modes, margins, colors, output that it stopped, a sequence without its end. Otherwise the
// question could be unreadable, or only a part of it could be seen, beside text of the program. A
// terminal without control sequences gets none.
func (t *Prompt) Reset() error {
	Continue(t.file)
	if Plain() {
		return nil
	}
	return t.write(ResetSequence)
}
