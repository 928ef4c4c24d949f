// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// hop: chains of processes that outrun whoever ends them one by one. Each process
// starts its successor, in a session of its own, and ends at once; with "vm" the
// successor shares the memory, which is the fastest way that there is. The number
// of chains is constant, so the machine stays usable; each chain ends by itself
// after 20 seconds.
//
// usage: hop fork|vm CHAINS MARK.

#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static time_t end;

static int over(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > end;
}

static void chain_fork(void) {
	while (!over()) {
		pid_t p = fork();
		if (p > 0)
			_exit(0);
		if (p == 0)
			setsid();
	}
	_exit(0);
}

// Two stacks that the generations use in turns: a process ends before its
// grandchild begins, or nearly so; it touches nothing after the clone.
static int hop(void *stacks) {
	char **s = stacks;
	if (over())
		_exit(0);
	syscall(SYS_setsid);
	char *mine = s[0];
	s[0] = s[1];
	s[1] = s[2];
	s[2] = s[3];
	s[3] = mine;
	clone(hop, s[0], CLONE_VM | SIGCHLD, s);
	syscall(SYS_exit, 0);
	return 0;
}

static void chain_vm(void) {
	static char *s[4];
	for (int i = 0; i < 4; i++)
		s[i] = (char *)mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + 65536;
	hop(s);
}

int main(int argc, char **argv) {
	if (argc < 4)
		return 2;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	end = now.tv_sec + 19;
	int chains = atoi(argv[2]);
	for (int i = 0; i < chains; i++) {
		if (fork() == 0) {
			if (strcmp(argv[1], "vm") == 0)
				chain_vm();
			chain_fork();
		}
	}
	return 0;
}
