// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
)

// lifeAttacks try to outlive things.
func lifeAttacks() map[string]attack {
	return map[string]attack{
		// Prints when it is there, then holds standard output until it is killed.
		"hold": func(map[string]string) outcome {
			fmt.Println("hold READY")
			_, _ = io.Copy(io.Discard, os.Stdin)
			fmt.Println("hold AFTER")
			forever()
			return outcome{}
		},
		// Listens at "addr" until standard input ends.
		"listen": func(kv map[string]string) outcome {
			l, err := net.Listen("tcp4", kv["addr"])
			if err != nil {
				return bad("%v", err)
			}
			fmt.Println("listen READY")
			_, _ = io.Copy(io.Discard, os.Stdin)
			l.Close()
			return fine("ended")
		},
		// Starts a daemon: it has a session of its own, its parent is gone, its
		// signals are ignored, and it holds standard output.
		"daemon": func(map[string]string) outcome {
			cmd := exec.Command(os.Args[0], partAttack, "daemon-second")
			cmd.Stdout = os.Stdout
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := cmd.Run(); err != nil {
				return bad("%v", err)
			}
			return fine("left behind")
		},
		"daemon-second": func(map[string]string) outcome {
			r, w, err := os.Pipe()
			if err != nil {
				return bad("%v", err)
			}
			cmd := exec.Command("/bin/sh", "-c",
				"trap '' HUP INT TERM USR1 USR2; echo; exec >&3; while :; do sleep 1000; done")
			cmd.Stdout = w
			cmd.ExtraFiles = []*os.File{os.Stdout}
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := cmd.Start(); err != nil {
				return bad("%v", err)
			}
			_, err = r.Read(make([]byte, 1))
			if err != nil {
				return bad("%v", err)
			}
			return fine("started %d", cmd.Process.Pid)
		},
		"kill-1": func(map[string]string) outcome {
			for _, s := range []unix.Signal{unix.SIGKILL, unix.SIGTERM, unix.SIGINT, unix.SIGSEGV,
				unix.SIGSTOP, unix.SIGUSR1} {
				_ = unix.Kill(1, s)
			}
			if err := unix.Kill(1, 0); err != nil && err != unix.EPERM {
				return breach("process 1 is gone: %v", err)
			}
			return denied("process 1 goes on")
		},
	}
}

// forever waits for a signal that ends the process.
func forever() {
	for {
		_, _ = unix.Ppoll(nil, nil, nil)
	}
}

// frontMain is another program with a Host: "hold" starts a command and waits,
// until somebody kills the program.
func frontMain(name string, kv map[string]string) int {
	h := Host{Only: kv["level"]}
	defer h.Close()
	args := strings.Split(kv["args"], "\x01")
	r := &executor.Spec{Args: args, Dir: kv["ws"], Env: []string{"PATH=/usr/bin:/bin"},
		Policy: bind((&arena{ws: kv["ws"]}).policy(), kv["ws"])}
	if kv["stage"] != "" {
		r.Stage = &executor.Staging{Name: kv["stage"]}
	}
	switch name {
	case "start": // prints how the start went
		c, err := h.Start(context.Background(), r, [3]*os.File{os.Stdin, os.Stdout, os.Stderr})
		if err != nil {
			fmt.Printf("%T %v\n", errors.Unwrap(fmt.Errorf("%w", err)), err)
			return 0
		}
		code, _, err := c.Wait()
		fmt.Println("ended", code, err, c.WaitAll(), c.Close(new(executor.Exit)))
		return 0
	case "shared":
		return sharedFront(&h, r)
	case "hold", "hold-orphan":
		c, err := startChanged(&h, r, func(p *plan.Plan) {
			if name == "hold-orphan" {
				p.Script.Steps = without(p.Script.Steps,
					func(s *launch.Step) bool { return s.Op == launch.OpDieWithParent })
			}
		}, [3]*os.File{os.Stdin, os.Stdout, os.Stderr})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		if _, err := os.NewFile(3, "report").WriteString(strconv.Itoa(c.PID()) + "\n"); err != nil {
			return 1
		}
		forever()
	}
	return 2
}

// without returns the steps that do not match.
func without(steps []launch.Step, match func(*launch.Step) bool) []launch.Step {
	var out []launch.Step
	for i := range steps {
		if !match(&steps[i]) {
			out = append(out, steps[i])
		}
	}
	return out
}
