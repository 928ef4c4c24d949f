// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sallyport runs commands for agents: it judges a command, runs it in the
// narrowest sandbox that its policy allows, watches it, and says exactly what
// happened.
//
// A [Runner] holds what belongs to its owner: the sandbox policy, where commands
// run, who hears of it. A [Cmd] holds what belongs to one command. [Runner.Run]
// runs it to its end and returns a [Result], whatever its exit code; an error
// means that it did not run, or that its end is not known. The file run.go tells
// the story of a run in one screen.
//
//	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite(".")}
//	defer r.Close()
//	res, err := r.Run(ctx, sallyport.Script("go test ./..."))
//
// [Runner.Start] starts a command and gives a [Session], which is written to and asked
// again. A wait for it ends with an event, such as that the command waits for input:
//
//	s, err := r.Start(ctx, &sallyport.Cmd{Args: []string{"python3", "-q"}, TTY: &sallyport.Size{Cols: 80, Rows: 24}})
//	defer s.Close()
//	reply, err := s.Send(ctx, []byte("print(6 * 7)\n"), sallyport.Until{Input: true})
//
// A policy grows by grants: p.With(sandbox.Grant{Name: "git"}) lets commands commit
// and branch, while hooks and configuration stay as they are. Names that must not
// come into being, such as .git in a workspace that has none, are moved away when
// they do, and told in [Result.Quarantined].
//
// Everything is closed by default: the zero Runner runs commands that read the
// platform's own files, write nowhere and have no network, and where the sandbox
// cannot be built a command does not run. The package makes no system calls and
// knows no kernel interface; executors do.
package sallyport
