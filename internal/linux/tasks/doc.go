// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tasks looks into the tasks of a command: whether they wait for input now, on which ports they
// listen, and which sockets and addresses they have. It also makes sends in their place.
//
// Nothing that is read from a task stays the same: it can change its memory, and what its
// descriptors lead to, at any time. So everything about sockets works on copies and on duplicates of
// descriptors, which others provide.
//
// The package refuses to judge: where a socket may connect or send to is decided elsewhere.
//
// [Redirection] and [Routes] make the netlink messages that lead all connections of a network
// namespace without another interface to sockets of its loopback interface.
//
// A [Waiter] waits for events of descriptors that come in bursts. The runtime's poller watches a
// descriptor from the moment it is opened and wakes a thread for each event; a Waiter gives it an
// epoll descriptor that watches for one event, and only during [Waiter.Wait]. It reads nothing
// from the descriptors and does not close them.
//
// # Waits
//
// [Terminal] and [Pipe] take one look at the kernel's view of the processes. They never
// block, read nothing from the terminal or the pipe and keep no descriptor. [Await]
// repeats a look when an answer is likely: shortly after output has ended.
// [ListeningPorts] reads the kernel's tables of sockets.
//
// # When the answer is yes
//
// A tree on a terminal waits if, at one moment, every thread of the terminal's foreground
// process group is asleep or stopped, one of them is blocked in a read of the terminal,
// or in a poll, select or epoll call that has the terminal in its set for reading, and
// nothing is left to read in the terminal, not even in the buffers that lead there. That
// it is one moment is proved: the kernel counts how often each thread gave up its
// processor, and the counts before and after the look must be equal. Part of a line does
// not count as unread in canonical mode, because the program does not get it.
//
// For a pipe the rule is the same with the process group of the reader.
//
// A poll, select or epoll call, or a read of a terminal with VTIME, that ends by a timer
// counts if its timeout is [ShortestTimedWait] or more, and Look.Timed is set. A shorter
// one is a loop that does other work and polls the terminal. [Await] wants to see it twice.
//
// # Where the answer misleads
//
// The look sees which thread waits, not why. These programs wait for the terminal and for
// something else at once, and are reported as waiting while that works:
//   - programs that pass a terminal on (script, unbuffer): the program inside has a
//     terminal of its own;
//   - ssh and other remote shells: the remote end is invisible;
//   - programs that redraw by a timer (top, watch with keys): Timed is set;
//   - event loops with work to come (a node prompt with a pending timer): Timed is
//     set for the loop's own timers, and is not for alarm signals, timer descriptors,
//     sockets or children.
//
// These are reported as not waiting although they may be: terminal multiplexers (tmux,
// screen), whose server reads the terminal from another session; programs that read by
// io_uring or through an epoll descriptor inside another one; programs with other
// threads that never rest.
//
// # What it refuses to do
//
// It does not guess. If the kernel does not tell (another user's process, one that keeps
// its memory private, a process that may not be traced, a 32-bit program, a set of
// descriptors beyond the bounds), Look.Known is false and Look.Why says why. Systems other
// than Linux do not tell anything. Everything that comes from a process (names, memory,
// descriptors) is hostile: it is bounded, parsed strictly, and given up on if the process
// changes or is replaced meanwhile. A hostile process can claim to wait, by waiting. It
// can make the look block only by memory or an epoll set that it keeps faulting, for
// which it needs a file system or a fault handler of its own.
package tasks
