// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// attack.h: what the attack programs share: a bound in time, and the words WIN and
// LOST. A program prints "WIN what" for each thing that it got and must not have,
// "LOST what" otherwise, and ends with 0 within three seconds in any case.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef BOUND
#define BOUND 2.0 /* seconds of trying */
#endif

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static double begun;
static atomic_int over;

static void begin(void) {
	begun = now();
	setvbuf(stdout, 0, _IONBF, 0);
	signal(SIGPIPE, SIG_IGN);
}

static int in_time(void) {
	if (atomic_load(&over) || now() - begun > BOUND) {
		atomic_store(&over, 1);
		return 0;
	}
	return 1;
}

/* A watchdog: whatever blocks, the program ends. */
static void *watchdog(void *arg) {
	(void)arg;
	struct timespec t = {2, 800000000};
	nanosleep(&t, 0);
	printf("LOST time\n");
	_exit(0);
}

static void guard(void) {
	pthread_t t;
	pthread_create(&t, 0, watchdog, 0);
	pthread_detach(t);
}

static void verdict(int won, long tries, const char *what) {
	printf("%s %s after %ld tries\n", won ? "WIN" : "LOST", what, tries);
	fflush(stdout);
	_exit(0);
}

static void path2(char *to, size_t n, const char *dir, const char *name) {
	snprintf(to, n, "%s/%s", dir, name);
}

static void unix_address(struct sockaddr_un *a, const char *path) {
	memset(a, 0, sizeof *a);
	a->sun_family = AF_UNIX;
	snprintf(a->sun_path, sizeof a->sun_path, "%s", path);
}

/* serve_own listens on a path and answers every connection with "own". */
static void *answer_own(void *arg) {
	for (;;) {
		int c = accept((int)(long)arg, 0, 0);
		if (c >= 0) {
			send(c, "own", 3, MSG_NOSIGNAL);
			close(c);
		}
	}
}

static int serve_own(const char *path) {
	struct sockaddr_un a;
	unix_address(&a, path);
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s < 0)
		return 0; // no sockets here
	unlink(path);
	if (bind(s, (struct sockaddr *)&a, sizeof a) != 0 || listen(s, 100) != 0)
		return -1;
	pthread_t t;
	return pthread_create(&t, 0, answer_own, (void *)(long)s);
}
