/* SPDX-License-Identifier: Apache-2.0
 *
 * See dies.h.
 */
#include "tests/harness/dies.h"

#include <check.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void
child(void (*call)(void), int to)
{
	const struct rlimit none = {0, 0};

	(void)setrlimit(RLIMIT_CORE, &none);
	if (dup2(to, STDERR_FILENO) < 0)
		_exit(1);
	call();
	_exit(0);
}

void
must_die(void (*call)(void), const char *text)
{
	char said[4096];
	size_t count = 0;
	ssize_t n;
	int ends[2], status;
	pid_t pid;

	ck_assert_int_eq(pipe(ends), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		child(call, ends[1]);
	close(ends[1]);
	while (count < sizeof said - 1 &&
	       (n = read(ends[0], said + count, sizeof said - 1 - count)) > 0)
		count += (size_t)n;
	said[count] = 0;
	close(ends[0]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
		      "ended with %d and said: %s", status, said);
	ck_assert_msg(strstr(said, text), "said: %s", said);
}
