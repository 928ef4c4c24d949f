// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"fmt"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// rounds is how often each program is asked.
const rounds = 6

// Python on the path of this machine may be a shell script that looks for it.
const python = "/usr/bin/python3"

// A dialog is a program that waits, is answered and waits again.
type dialog struct {
	name  string
	args  []string
	until string // output before the first wait
	want  Look   // PID and Program are not compared where they are empty
	// send is input that is answered by answer and leads to the same wait; %d is the
	// round. Without send the program is only looked at.
	send, answer string
	anyTimed     bool // the program has timers of its own
}

func dialogs() []dialog {
	line, key, password := Look{Kind: Line}, Look{Kind: Key}, Look{Kind: Password}
	return []dialog{
		{name: "bash", args: []string{"bash", "--norc", "--noprofile"}, until: "PROMPT> ", want: key, send: "echo $((100+%d))end\n", answer: "1%02dend"},
		{name: "bash, quiet work", args: []string{"bash", "--norc", "--noprofile"}, until: "PROMPT> ", want: key, send: "sleep 0.0%d; echo $((100+%[1]d))end\n", answer: "1%02dend"},
		{name: "sh read", args: []string{"sh", "-c", "echo go; while read x; do sleep 0.03; echo a-$x; done"}, until: "go", want: line, send: "r%d\n", answer: "a-r%d"},
		{name: "python prompt", args: []string{python, "-q"}, until: ">>> ", want: key, send: "100+%d\n", answer: "1%02d"},
		{name: "python prompt, quiet work", args: []string{python, "-q"}, until: ">>> ", want: key, send: "__import__('time').sleep(.04) or 100+%d\n", answer: "1%02d"},
		{name: "python input", args: []string{python, "-c", "while True: print('a-' + input('say '))"}, until: "say ", want: line, send: "r%d\n", answer: "a-r%d"},
		{name: "python input with readline", args: []string{python, "-c", "import readline\nwhile True: print('a-' + input('say '))"}, until: "say ", want: key, send: "r%d\n", answer: "a-r%d"},
		{name: "python getpass", args: []string{python, "-c", "import getpass\nwhile True: print('a-' + getpass.getpass())"}, until: "Password: ", want: password, send: "r%d\n", answer: "a-r%d"},
		{name: "node prompt", args: []string{"node"}, until: "> ", want: key, send: "100+%d\n", answer: "1%02d", anyTimed: true},
		{name: "vim", args: []string{"vim", "-u", "NONE", "-N", "-i", "NONE", "-n"}, until: "~", want: key, send: ":echo 100+%d\r", answer: "1%02d", anyTimed: true},
		{name: "less", args: []string{"sh", "-c", "seq 5000 | less"}, until: ":", want: key, send: "%d00g", answer: "%d00\r\n"},
		{name: "cat", args: []string{"cat"}, want: line, send: "r%d\n", answer: "r%[1]d\r\nr%[1]d\r\n"},
		{name: "cat into wc", args: []string{"sh", "-c", "cat | wc -c"}, want: line},
		{name: "cat into a slow reader", args: []string{"bash", "-c", "cat | while read x; do sleep 0.03; echo a-$x; done"}, want: line},
		{name: "sqlite3", args: []string{"sqlite3"}, until: "sqlite> ", want: key, send: "select 100+%d;\n", answer: "1%02d"},
		{name: "ed", args: []string{"ed", "-p*"}, until: "*", want: line, send: "!echo $((100+%d))\n", answer: "1%02d"},
		{name: "password on /dev/tty", args: []string{python, "-c", askPassword}, until: "secret: ", want: password, send: "r%d\n", answer: "a-r%d"},
		{name: "read with a timeout", args: []string{"bash", "-c", "echo go; while read -t 500 x; do echo a-$x; done"}, until: "go", want: Look{Kind: Line, Timed: true}, send: "r%d\n", answer: "a-r%d"},
		{name: "read -s", args: []string{"bash", "-c", "echo go; while read -s x; do echo a-$x; done"}, until: "go", want: password, send: "r%d\n", answer: "a-r%d"},
		{name: "reader in a second thread", args: []string{python, "-c", "import threading\ndef f():\n  while True: print('a-' + input('say '))\nt = threading.Thread(target=f)\nt.start()\nt.join()"}, until: "say ", want: line, send: "r%d\n", answer: "a-r%d"},
		{name: "poll of the terminal", args: []string{python, "-c", "import select,os\np=select.poll()\np.register(0,1)\nprint('go')\nwhile True:\n  p.poll()\n  print('a-'+os.read(0,99).decode())"}, until: "go", want: line, send: "r%d\n", answer: "a-r%d"},
		{name: "poll with a timeout", args: []string{python, "-c", "import select,os\np=select.poll()\np.register(0,1)\nprint('go')\nwhile True:\n  if p.poll(500000): print('a-'+os.read(0,99).decode())"}, until: "go", want: Look{Kind: Line, Timed: true}, send: "r%d\n", answer: "a-r%d"},
		{name: "select with a timeout", args: []string{python, "-c", "import select,os\nprint('go')\nwhile True:\n  if select.select([0],[],[],500.5)[0]: print('a-'+os.read(0,99).decode())"}, until: "go", want: Look{Kind: Line, Timed: true}, send: "r%d\n", answer: "a-r%d"},
		{name: "prompt with a hook every 100 ms", args: []string{python, "-c", "import select,os\nprint('go')\nwhile True:\n  if select.select([0],[],[],.1)[0]: print('a-'+os.read(0,99).decode())"}, until: "go", want: Look{Kind: Line, Timed: true}, send: "r%d\n", answer: "a-r%d"},
		{name: "a pause that input would end", args: []string{python, "-c", pausing}, until: "say ", want: line, send: "r%d\n", answer: "a-r%d"},
		{name: "epoll with a timeout", args: []string{python, "-c", "import select,os\np=select.epoll()\np.register(0,1)\nprint('go')\nwhile True:\n  if p.poll(500): print('a-'+os.read(0,99).decode())"}, until: "go", want: Look{Kind: Line, Timed: true}, send: "r%d\n", answer: "a-r%d"},
		{name: "read with VTIME", args: []string{python, "-c", "import os,termios\na=termios.tcgetattr(0)\na[3]&=~termios.ICANON\na[6][termios.VMIN]=0\na[6][termios.VTIME]=255\ntermios.tcsetattr(0,0,a)\nprint('go')\nwhile True: print('a-'+os.read(0,99).decode())"}, until: "go", want: Look{Kind: Key, Timed: true}, send: "r%d\n", answer: "a-r%d"},
	}
}

// pausing polls the terminal for a while before it answers, as editors do.
const pausing = `
import os, select
p = select.poll()
p.register(0, select.POLLIN)
while True:
    os.write(1, b'say ')
    line = os.read(0, 99)
    p.poll(150)
    os.write(1, b'a-' + line)
`

// askPassword asks on /dev/tty as ssh does, with its standard streams elsewhere.
const askPassword = `
import os, termios
tty = os.open('/dev/tty', os.O_RDWR)
null = os.open('/dev/null', os.O_RDWR)
for fd in 0, 1, 2: os.dup2(null, fd)
a = termios.tcgetattr(tty)
a[3] &= ~termios.ECHO
termios.tcsetattr(tty, termios.TCSAFLUSH, a)
while True:
    os.write(tty, b'secret: ')
    os.write(tty, b'a-' + os.read(tty, 99))
`

// TestWaiting has dialogs with real programs. An answer that comes before the program
// has said what it was asked for is wrong, and so is one that does not come.
func TestWaiting(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, d := range dialogs() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			hold(t, start(t, d.args...), d)
		})
	}
}

// TestWaitingInSandbox has the dialogs with programs that have user, process and mount
// namespaces of their own.
func TestWaitingInSandbox(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, d := range dialogs() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"unshare", "-Ur", "-p", "-f", "--mount-proc"}, d.args...)
			hold(t, start(t, args...), d)
		})
	}
}

// hold has one dialog.
func hold(t *testing.T, c *console, d dialog) {
	t.Helper()
	at := c.until(0, d.until)
	check := func() {
		t.Helper()
		look := c.await()
		want := d.want
		want.Waiting, want.Known = true, true
		want.PID, want.Program, want.Timeout = look.PID, look.Program, look.Timeout
		if d.anyTimed {
			want.Timed = look.Timed
		}
		if look != want {
			t.Fatalf("%q: %+v, want %+v", d.args, look, want)
		}
		if look.PID == 0 || look.Program == "" {
			t.Fatalf("%q: no program waits in %+v", d.args, look)
		}
	}
	for round := range rounds {
		check()
		if d.send == "" {
			continue
		}
		c.send(fmt.Sprintf(d.send, round+1))
		check()
		answer := fmt.Sprintf(d.answer, round+1)
		said := len(c.text())
		if end := c.until(at, answer); end > said {
			t.Fatalf("%q: waited, they say, before it has answered %q", d.args, answer)
		}
		at = said
	}
}
