// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// cwd_swap: attacks whoever resolves a relative name by a working folder that another
// thread changes meanwhile: threads share it. Names that are protected only in one of
// the two folders are created too. Winning: the name exists outside, or the protected
// name exists in the workspace. Bound: 2 seconds.
//
// usage: cwd_swap WORKSPACE OUTSIDE NAME; NAME is created in both folders.

#include "attack.h"

static char inside[4096];
static const char *outside;

static void *swap(void *arg) {
	(void)arg;
	while (in_time()) {
		chdir(inside);
		chdir(outside);
	}
	return 0;
}

int main(int argc, char **argv) {
	if (argc != 4)
		return 2;
	char evil[4300], good[4300];
	snprintf(inside, sizeof inside, "%s/cwd-swap", argv[1]);
	mkdir(inside, 0700);
	outside = argv[2];
	path2(evil, sizeof evil, outside, argv[3]);
	path2(good, sizeof good, inside, argv[3]);
	begin();
	guard();
	pthread_t t;
	pthread_create(&t, 0, swap, 0);
	long tries = 0;
	int won = 0;
	for (; !won && in_time(); tries++) {
		mkdir(argv[3], 0700);
		int fd = open("won-cwd-swap", O_CREAT | O_WRONLY, 0600);
		if (fd >= 0)
			close(fd);
		struct stat st;
		char file[4300];
		path2(file, sizeof file, outside, "won-cwd-swap");
		won = lstat(evil, &st) == 0 || lstat(file, &st) == 0;
		rmdir(good);
	}
	verdict(won, tries, "cwd-swap");
}
