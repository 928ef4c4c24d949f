// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// flood: attacks whoever serves waiting calls one by one: 2000 callers make folders at
// once, half of them processes that are killed in the middle. Winning: a call that is
// never answered, or answered without having been done. Bound: 2 seconds and what the
// watchdog adds.
//
// usage: flood WORKSPACE [CALLERS]

#include "attack.h"

static char base[4000];
static atomic_int done, wrong;
static atomic_int go;

static void *make(void *arg) {
	char name[4200];
	struct stat st;
	snprintf(name, sizeof name, "%s/t%ld", base, (long)arg);
	while (!atomic_load(&go))
		sched_yield();
	if (mkdir(name, 0700) != 0 || lstat(name, &st) != 0)
		atomic_fetch_add(&wrong, 1);
	rmdir(name);
	atomic_fetch_add(&done, 1);
	return 0;
}

int main(int argc, char **argv) {
	if (argc < 2)
		return 2;
	int callers = argc > 2 ? atoi(argv[2]) : 2000, half = callers / 2;
	snprintf(base, sizeof base, "%s/flood", argv[1]);
	mkdir(base, 0700);
	begin();
	pid_t *pids = calloc(half, sizeof *pids);
	for (int i = 0; i < half; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			char name[4200];
			for (;;) {
				snprintf(name, sizeof name, "%s/p%d", base, i);
				mkdir(name, 0700);
				rmdir(name);
			}
		}
		if (pids[i] < 0) {
			half = i;
			break;
		}
		if (i >= 16) /* at most so many run at a time; they die in the middle of a call */
			kill(pids[i - 16], SIGKILL);
	}
	guard(); /* not before the forks: a child would not have it */
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	pthread_t *threads = calloc(callers, sizeof *threads);
	int made = 0;
	for (; made < callers - half; made++)
		if (pthread_create(&threads[made], &small, make, (void *)(long)made) != 0)
			break;
	atomic_store(&go, 1);
	for (int i = 0; i < half; i++)
		kill(pids[i], SIGKILL);
	for (int i = 0; i < made; i++)
		pthread_join(threads[i], 0);
	for (int i = 0; i < half; i++)
		waitpid(pids[i], 0, 0);
	printf("%s flood: %d of %d answered, %d wrong, %d killed\n", atomic_load(&wrong) || atomic_load(&done) != made ? "WIN" : "LOST",
	       atomic_load(&done), made, atomic_load(&wrong), half);
	_exit(0);
}
