// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// backlog: attacks whoever connects in the name of a program: the listener accepts
// nothing and its queue is full, so a connect blocks. Children that wait in it are
// killed. Winning: ordinary calls of somebody else wait behind them, or a killed one
// does not end. A busy machine holds up a call now and then, so it takes a quarter of
// them. Bound: 2 seconds, or 20 when something waits.
//
// usage: backlog WORKSPACE

#include "attack.h"

static const char *_Atomic doing = "an ordinary call";

static void *stuck(void *arg) {
	(void)arg;
	struct timespec t = {20, 0};
	nanosleep(&t, 0);
	printf("WIN backlog: %s does not end\n", atomic_load(&doing));
	_exit(0);
}

int main(int argc, char **argv) {
	if (argc != 2)
		return 2;
	char socket_path[100], name[4200];
	snprintf(socket_path, sizeof socket_path, "%s/b.sock", argv[1]);
	snprintf(name, sizeof name, "%s/backlog", argv[1]);
	struct sockaddr_un a;
	unix_address(&a, socket_path);
	begin();
	unlink(socket_path);
	int l = socket(AF_UNIX, SOCK_STREAM, 0);
	if (l < 0 || bind(l, (struct sockaddr *)&a, sizeof a) != 0 || listen(l, 0) != 0) {
		printf("LOST no sockets here: %s\n", strerror(errno));
		return 0;
	}
	enum { CALLERS = 64 };
	pid_t pids[CALLERS];
	for (int i = 0; i < CALLERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			int fd = socket(AF_UNIX, SOCK_STREAM, 0);
			connect(fd, (struct sockaddr *)&a, sizeof a);
			pause();
			_exit(0);
		}
	}
	pthread_t t;
	pthread_create(&t, 0, stuck, 0); /* not before the forks: a child would not have it */
	pthread_detach(t);
	double slowest = 0;
	int calls = 0, slow = 0;
	for (; calls < 8 || (calls < 200 && in_time()); calls++) {
		double from = now();
		mkdir(name, 0700);
		rmdir(name);
		double took = now() - from;
		slow += took > 0.25;
		if (took > slowest)
			slowest = took;
	}
	atomic_store(&doing, "a killed process");
	double from = now();
	for (int i = 0; i < CALLERS; i++)
		kill(pids[i], SIGKILL);
	for (int i = 0; i < CALLERS; i++)
		waitpid(pids[i], 0, 0);
	double killing = now() - from;
	unlink(socket_path);
	printf("%s backlog: %d of %d other calls are slow, the slowest took %.1f ms, the killed ended after %.1f ms\n",
	       slow * 4 > calls || killing > 5 ? "WIN" : "LOST", slow, calls, slowest * 1e3, killing * 1e3);
	return 0;
}
