// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tty

// ResetSequence brings a terminal that a program has used into the state in which a shell expects it. It
// asks the terminal nothing, does not move the cursor, and erases only what is below it. Each part is
// without effect where there is nothing to undo. The main screen must be shown: to leave another one that
// is not there restores a cursor of some time before, in tmux for one, and what follows would be erased.
const ResetSequence = Cut + resetModes + "\x1b[J" // nothing below the cursor

// Cut is CAN and ST: the end of a sequence or a string that has none.
const Cut = "\x18\x1b\\"

// lowest begins a line on the last row, so that nothing is below it and nothing is erased. The margins
// must be those of the whole screen.
const lowest = "\x1b[9999;1H\r\n"

const resetModes = "" +
	"\x1b[?2026l" + // synchronized output: nothing is held back
	"\x1b[!p" + // DECSTR: modes, character sets, attributes and margins, as far as it is known
	"\x1b[?69l\x1b7\x1b[r\x1b8" + // no margins; to reset them moves the cursor
	"\x1b(B\x0f\x1b[2;4;20l\x1b[?7;25h" + // ASCII; no locked keyboard, no insertion; wrapping, a cursor
	"\x1b[?1;5;9;66;1000;1001;1002;1003;1004l" + // keys, colors, mouse and focus as usual
	"\x1b[?1005;1006;1015;1016;2004;2031;2048;9001l\x1b>" + // and nothing that types by itself
	"\x1b[=0u\x1b[>4m" + // keys without modifiers of kitty and xterm
	"\x1b]8;;\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\" + // no link; the user's colors of text
	"\x1b[0m" // no attributes

// Reset undoes what a program that ran on the terminal may have left there: other modes, margins,
// colors, output that it stopped, a sequence without its end. Otherwise the question could be
// unreadable, or only a part of it could be seen, beside text of the program. With unknown it is not
// known what the program wrote, so that the alternate screen may be shown, and the cursor be
// anywhere: the main screen is shown then, and the question begins on its last row. A terminal without
// control sequences gets none.
func (t *Prompt) Reset(unknown bool) error {
	Continue(t.file)
	switch {
	case Plain():
		return nil
	case unknown: // unlike 1049, 1047 restores no cursor
		return t.write(Cut + "\x1b[?1047l" + resetModes + lowest)
	}
	return t.write(ResetSequence)
}
