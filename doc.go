// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sallyport runs commands for agents: it judges a command, runs it in the
// narrowest sandbox that its policy allows, watches it, and reports exactly what
// happened.
//
// # Packages
//
// Four are enough to begin with:
//
//   - sallyport: runs commands
//   - [github.com/sallyport-dev/sallyport/sandbox]: what a command may touch
//   - [github.com/sallyport-dev/sallyport/approval]: who is asked, and when
//   - [github.com/sallyport-dev/sallyport/event]: what happened, while it happens
//
// The others, when they are needed:
//
//   - approval/program, approval/terminal: a program or a person answers
//   - client: commands that an exec-server judges and runs
//   - execserver: the exec-server in your program
//   - executor, executor/local, executor/remote: where commands run
//   - guardian: a model answers
//   - network, network/inspect: which hosts commands reach, what is read inside TLS
//   - rules, rules/files: which commands run
//   - sandbox/wire: policies as JSON
//   - unified: the tool calls exec_command and write_stdin
//
// docs/codex.md leads from the terms of Codex to these.
//
// # One command
//
// A [Runner] holds what belongs to its owner: the sandbox policy, the executor, the sink
// of events. A [Cmd] holds what belongs to one command. [Runner.Run] runs it to its end
// and returns a [Result], whatever its exit code:
//
//	r := &sallyport.Runner{Policy: sandbox.WorkspaceWrite(".")}
//	defer r.Close()
//	res, err := r.Run(ctx, sallyport.Script("go test ./..."))
//	if err != nil {
//		log.Fatal(err) // it did not run, or its end is not known
//	}
//	os.Stdout.Write(res.Output.Bytes())
//
// An error means that the command did not run ([ErrForbidden], [ErrRefused],
// [ErrNoSandbox], *[StartError], *[DirError], *[CmdError]) or that its end is not known ([ErrEndUnknown]).
// [Result.Denials] lists what the sandbox denied, each with the narrowest grant that
// would allow it. [Cmd.Timeout] limits time, [Cmd.Resources] memory, processes, disk and
// output, and [Cmd.Retention] how much of the output the Result keeps.
//
// # One session
//
// [Runner.Start] starts a command and returns a [Session], which is written to and read
// while it runs. A wait ends with an event, for example when the command waits for input:
//
//	s, err := r.Start(ctx, &sallyport.Cmd{Args: []string{"python3", "-q"}, TTY: &sallyport.Size{Cols: 80, Rows: 24}})
//	defer s.Close()
//	reply, err := s.Send(ctx, []byte("print(6 * 7)\n"), sallyport.Until{Input: true})
//
// # Policies
//
// Package sandbox has the policies. A policy grows by grants: p.With(sandbox.Grant{Name:
// "git"}) lets commands commit and branch, while hooks and configuration stay read-only.
// Protected names that appear while a command runs, such as a .git directory in a
// workspace that had none, are moved to quarantine ([Result.Quarantined]). Files that other
// programs run later, such as .vscode/tasks.json, are read-only where they exist, and named
// where they appear ([Result.New]).
//
// Everything is closed by default: the zero Runner runs commands that read the platform's
// own files, write nowhere and have no network. Where the sandbox is not available the
// command does not run.
//
// The package makes no system calls; executors do. The file run.go shows the way of
// every command.
package sallyport
