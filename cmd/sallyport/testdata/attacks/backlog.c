// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// backlog: attacks whoever connects in the name of a program: the listener accepts
// nothing and its queue is full, so a connect blocks. Children that wait in it are
// killed. Winning: an ordinary call of somebody else waits behind them, or a killed one
// does not end. Bound: 2 seconds.
//
// usage: backlog WORKSPACE

#include "attack.h"

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
	guard();
	double slowest = 0;
	for (int i = 0; i < 200; i++) {
		double from = now();
		mkdir(name, 0700);
		rmdir(name);
		double took = now() - from;
		if (took > slowest)
			slowest = took;
	}
	double from = now();
	for (int i = 0; i < CALLERS; i++)
		kill(pids[i], SIGKILL);
	for (int i = 0; i < CALLERS; i++)
		waitpid(pids[i], 0, 0);
	double killing = now() - from;
	unlink(socket_path);
	printf("%s backlog: slowest other call %.1f ms, the killed ended after %.1f ms\n",
	       slowest > 0.25 || killing > 0.5 ? "WIN" : "LOST", slowest * 1e3, killing * 1e3);
	return 0;
}
