// SPDX-License-Identifier: Apache-2.0
/* The control channel seen from inside: a tool's end is a duplicate of the number in the page. */
#include "check.h"
#include "stub.h"

#include "diapause_control.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

static int (*init)(unsigned int);

/* The control memfd of this process: its number, -1 without one; there must not be two. */
static int find_page(void)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	int found = -1;

	while ((entry = readdir(folder))) {
		char target[256] = "";

		if (readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1) < 0 ||
		    !strstr(target, "memfd:" DIAPAUSE_PAGE_NAME))
			continue;
		CHECK(found < 0, "two pages");
		found = atoi(entry->d_name);
	}
	closedir(folder);
	return found;
}

static struct diapause_page read_page(void)
{
	struct diapause_page page;
	int fd = find_page();

	CHECK(fd >= 0, "no page");
	CHECK(pread(fd, &page, sizeof(page), 0) == sizeof(page), "a short page");
	CHECK(page.magic == DIAPAUSE_PAGE_MAGIC && page.major == DIAPAUSE_MAJOR, "magic");
	return page;
}

static int connect_tool(void)
{
	struct diapause_page page = read_page();

	CHECK(page.pid == getpid(), "pid");
	return fcntl(page.peer, F_DUPFD_CLOEXEC, 0);
}

struct reply {
	struct diapause_frame frame;
	union {
		struct diapause_hello hello;
		uint64_t counters[DIAPAUSE_COUNTERS];
	};
};

static struct diapause_frame request(int op, uint32_t epoch, uint32_t seq)
{
	return (struct diapause_frame){
		.magic = DIAPAUSE_FRAME_MAGIC,
		.major = DIAPAUSE_MAJOR,
		.op = op,
		.epoch = epoch,
		.seq = seq,
	};
}

static bool readable(int fd, int milliseconds)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };

	return poll(&wait, 1, milliseconds) == 1;
}

static struct reply call(int fd, struct diapause_frame frame)
{
	struct reply reply = { 0 };
	ssize_t n;

	CHECK(send(fd, &frame, sizeof(frame), 0) == sizeof(frame), "send");
	CHECK(readable(fd, 10000), "no answer to op %d", frame.op);
	n = recv(fd, &reply, sizeof(reply), 0);
	CHECK(n == (ssize_t)(sizeof(reply.frame) + reply.frame.len), "length %zd", n);
	CHECK(reply.frame.magic == DIAPAUSE_FRAME_MAGIC && reply.frame.epoch == frame.epoch &&
		      reply.frame.seq == frame.seq && reply.frame.op == frame.op,
	      "answer to something else");
	return reply;
}

static void check_hello(int fd)
{
	struct reply reply = call(fd, request(DIAPAUSE_OP_HELLO, 5, 1));
	uint8_t none[20] = { 0 };

	CHECK(reply.frame.status == DIAPAUSE_OK && reply.frame.len == sizeof(reply.hello), "hello");
	CHECK(reply.hello.pid == getpid() && reply.hello.driver == 13000, "pid and driver");
	CHECK(reply.hello.flags == 0 && reply.hello.functions == 9, "%u functions", reply.hello.functions);
	CHECK(memcmp(reply.hello.build_id, none, 20), "build id");
}

/* How many control threads there are. */
static unsigned int threads(void)
{
	DIR *folder = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned int n = 0;

	while ((entry = readdir(folder))) {
		char path[300], name[32] = "";
		int fd;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		n += fd >= 0 && read(fd, name, sizeof(name) - 1) > 0 && !strcmp(name, "diapause-ctl\n");
		close(fd);
	}
	closedir(folder);
	return n;
}

/* The line `field` of the control thread's status. */
static bool control_thread(const char *field, char *value, size_t size)
{
	DIR *folder = opendir("/proc/self/task");
	struct dirent *entry;
	bool found = false;

	while (!found && (entry = readdir(folder))) {
		char path[300], line[256];
		bool named = false;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		file = fopen(path, "re");
		while (file && fgets(line, sizeof(line), file)) {
			named |= !strcmp(line, "Name:\tdiapause-ctl\n");
			if (named && !strncmp(line, field, strlen(field))) {
				snprintf(value, size, "%s", line + strlen(field));
				found = true;
			}
		}
		if (file)
			fclose(file);
	}
	closedir(folder);
	return found;
}

static void once(void)
{
	static const int asynchronous[] = { SIGHUP,  SIGINT,  SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE,
					    SIGALRM, SIGTERM, SIGCHLD, SIGCONT, SIGTSTP, SIGURG,
					    SIGPROF, SIGIO,   40,      50,	64 };
	char blocked[64];
	struct reply reply;
	int fd;

	CHECK(find_page() < 0, "before cuInit");
	errno = 77;
	CHECK(init(0) == 0 && init(0) == 0 && init(0) == 0, "cuInit");
	CHECK(errno == 77, "errno");
	CHECK(find_page() >= 900 && read_page().peer >= 900, "high numbers");
	CHECK(fcntl(find_page(), F_GETFD) == FD_CLOEXEC && fcntl(read_page().peer, F_GETFD) == FD_CLOEXEC,
	      "cloexec");
	CHECK(fcntl(find_page(), F_GET_SEALS) & F_SEAL_SHRINK, "sealed");
	fd = connect_tool();
	check_hello(fd);
	check_hello(fd);
	CHECK(threads() == 1, "one thread");
	CHECK(control_thread("SigBlk:", blocked, sizeof(blocked)), "the thread has its name");
	for (unsigned int i = 0; i < sizeof(asynchronous) / sizeof(int); i++)
		CHECK(strtoull(blocked, NULL, 16) >> (asynchronous[i] - 1) & 1, "signal %d: %s",
		      asynchronous[i], blocked);
	reply = call(fd, request(DIAPAUSE_OP_COUNTERS, 5, 2));
	CHECK(reply.frame.status == DIAPAUSE_OK && reply.frame.len == sizeof(reply.counters), "counters");
	CHECK(reply.counters[DIAPAUSE_COUNT_INIT] == 3, "three calls");
	CHECK(reply.counters[DIAPAUSE_COUNT_ANSWERED] == 1 || reply.counters[DIAPAUSE_COUNT_ANSWERED] == 2,
	      "two hellos");
	CHECK(read_page().counters[DIAPAUSE_COUNT_INIT] == 3, "the page counts too");
}

static void failing(void)
{
	struct stub *stub = dlsym(dlopen(getenv("DIAPAUSE_REAL_LIBCUDA"), RTLD_NOW | RTLD_NOLOAD), "stub");

	stub->init_result = 100;
	CHECK(init(0) == 100 && find_page() < 0 && threads() == 0, "nothing is made");
	stub->init_result = 0;
	CHECK(init(0) == 0 && find_page() >= 0, "the first that succeeds makes it");
}

static void hostile(void)
{
	char big[DIAPAUSE_FRAME_MAX + 1000];
	struct diapause_frame frame;
	struct reply reply, again;
	int fd;

	init(0);
	fd = connect_tool();
	reply = call(fd, request(DIAPAUSE_OP_COUNTERS, 9, 1));
	CHECK(reply.frame.status == DIAPAUSE_BAD_EPOCH, "no hello yet");
	check_hello(fd);
	frame = request(DIAPAUSE_OP_HELLO, 5, 10);
	frame.major = DIAPAUSE_MAJOR + 1;
	reply = call(fd, frame);
	CHECK(reply.frame.status == DIAPAUSE_BAD_MAJOR && reply.frame.major == DIAPAUSE_MAJOR, "newer major");
	frame.major = DIAPAUSE_MAJOR_OLDEST - 1;
	CHECK(call(fd, frame).frame.status == DIAPAUSE_BAD_MAJOR, "older major");
	frame = request(DIAPAUSE_OP_HELLO, 5, 11);
	frame.minor = 77;
	CHECK(call(fd, frame).frame.status == DIAPAUSE_OK, "newer minor");
	CHECK(call(fd, request(99, 5, 12)).frame.status == DIAPAUSE_BAD_OP, "unknown op");
	frame = request(DIAPAUSE_OP_HELLO, 5, 13);
	frame.len = 0xffffffff;
	CHECK(call(fd, frame).frame.status == DIAPAUSE_BAD_FRAME, "absurd length");
	frame = request(DIAPAUSE_OP_HELLO, 5, 14);
	frame.nfds = 3;
	CHECK(call(fd, frame).frame.status == DIAPAUSE_BAD_FRAME, "fds that are not there");
	CHECK(call(fd, request(DIAPAUSE_OP_COUNTERS, 6, 15)).frame.status == DIAPAUSE_BAD_EPOCH,
	      "another epoch");

	memset(big, 0xff, sizeof(big));
	frame = request(DIAPAUSE_OP_HELLO, 5, 16);
	send(fd, "", 0, 0);
	send(fd, "x", 1, 0);
	send(fd, &frame, sizeof(frame) - 1, 0);
	send(fd, big, 1000, 0);
	send(fd, big, sizeof(big), 0);
	memcpy(big, &frame, sizeof(frame));
	send(fd, big, sizeof(big), 0);
	CHECK(!readable(fd, 100), "no request, no answer");
	check_hello(fd);

	/* the same request again gets the same answer, although something changed in between */
	reply = call(fd, request(DIAPAUSE_OP_COUNTERS, 5, 20));
	init(0);
	again = call(fd, request(DIAPAUSE_OP_COUNTERS, 5, 20));
	CHECK(!memcmp(&reply, &again, sizeof(reply)), "idempotent");
	again = call(fd, request(DIAPAUSE_OP_COUNTERS, 5, 21));
	CHECK(again.counters[DIAPAUSE_COUNT_INIT] == reply.counters[DIAPAUSE_COUNT_INIT] + 1,
	      "a new one does not");
}

static int open_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(folder))
		n++;
	closedir(folder);
	return n;
}

/* File descriptors that nobody asked for do not stay. */
static void gifts(void)
{
	int fd, before, fds[DIAPAUSE_FRAME_FDS + 4];
	char control[CMSG_SPACE(sizeof(fds))];
	struct diapause_frame frame = request(DIAPAUSE_OP_HELLO, 5, 1);
	struct iovec part = { &frame, sizeof(frame) };

	init(0);
	fd = connect_tool();
	before = open_files();
	for (int i = 1; i <= DIAPAUSE_FRAME_FDS + 4; i++) {
		struct msghdr header = { .msg_iov = &part,
					 .msg_iovlen = 1,
					 .msg_control = control,
					 .msg_controllen = CMSG_SPACE(i * sizeof(int)) };
		struct cmsghdr *c = CMSG_FIRSTHDR(&header);

		for (int k = 0; k < i; k++)
			fds[k] = 0;
		*c = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
				       .cmsg_type = SCM_RIGHTS,
				       .cmsg_len = CMSG_LEN(i * sizeof(int)) };
		memcpy(CMSG_DATA(c), fds, i * sizeof(int));
		CHECK(sendmsg(fd, &header, 0) == sizeof(frame), "send");
	}
	while (readable(fd, 200))
		recv(fd, control, sizeof(control), 0);
	CHECK(open_files() == before, "left behind: %d", open_files() - before);
	check_hello(fd);
}

/* A tool that sends and never reads does not stop the thread. */
static void flood(void)
{
	struct diapause_frame frame = request(DIAPAUSE_OP_HELLO, 5, 0);
	char rest[4096];
	int fd, sent = 0;

	init(0);
	fd = connect_tool();
	for (int i = 0; i < 20000; i++) {
		frame.seq = i;
		sent += send(fd, &frame, sizeof(frame), i < 10000 ? MSG_DONTWAIT : 0) == sizeof(frame);
	}
	CHECK(sent >= 10000, "the thread kept reading: %d", sent);
	while (readable(fd, 200))
		recv(fd, rest, sizeof(rest), 0);
	check_hello(fd);
}

static int wait_for(pid_t child)
{
	int status;

	CHECK(waitpid(child, &status, 0) == child, "wait");
	return status;
}

static void forked(void)
{
	struct diapause_page mine;
	uint64_t count;
	pid_t child;

	init(0);
	mine = read_page();
	child = fork();
	if (child == 0) {
		CHECK(find_page() < 0, "the child has no page");
		CHECK(fcntl(mine.peer, F_GETFD) < 0 && threads() == 0, "nor anything else of it");
		init(0);
		CHECK(read_page().pid == getpid(), "its own");
		check_hello(connect_tool());
		if (fork() == 0) {
			CHECK(find_page() < 0, "nor has the grandchild");
			_exit(0);
		}
		wait(NULL);
		_exit(0);
	}
	CHECK(wait_for(child) == 0, "the child");
	count = read_page().counters[DIAPAUSE_COUNT_INIT];
	CHECK(count == 1, "the child counts for itself");
	check_hello(connect_tool());

	/* a bare clone, of which libc knows nothing: the page tells another pid */
	child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (child == 0) {
		init(0);
		_exit(read_page().pid == mine.pid && read_page().pid != syscall(SYS_getpid) ? 0 : 1);
	}
	CHECK(wait_for(child) == 0, "the bare child");
	check_hello(connect_tool());
}

#define DEVICE "/dev/nvidia-diapause-test"

static bool maps_device(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	bool found = false;

	while (maps && fgets(line, sizeof(line), maps))
		found |= strstr(line, DEVICE) != NULL;
	if (maps)
		fclose(maps);
	return found;
}

/* A device file as the driver has it, open and mapped: both are gone in a child of fork, the parent keeps
 * them. */
static void inherited(void)
{
	struct stat file;
	void *memory;
	pid_t child;
	int fd;

	init(0);
	if (mknod(DEVICE, S_IFCHR | 0600, makedev(1, 5)) && errno != EEXIST) {
		printf("cannot make a device file here\n");
		return;
	}
	fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (fd < 0 || memory == MAP_FAILED) {
		printf("cannot use a device file here\n");
		unlink(DEVICE);
		return;
	}
	CHECK(maps_device(), "it is mapped");
	child = fork();
	if (child == 0) {
		CHECK(!maps_device(), "not in the child");
		CHECK(!fstat(fd, &file) && file.st_rdev == makedev(1, 3), "where /dev/null has its number");
		CHECK(mmap(memory, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
			   0) == MAP_FAILED,
		      "and the addresses stay taken");
		_exit(0);
	}
	CHECK(wait_for(child) == 0, "the child");
	CHECK(maps_device(), "the parent keeps it");
	unlink(DEVICE);
}

static void executed(void)
{
	pid_t child;

	init(0);
	child = vfork();
	if (child == 0) {
		execl("/proc/self/exe", "cuda_control", "probe", "after exec", NULL);
		_exit(127);
	}
	CHECK(wait_for(child) == 0, "after vfork and exec");
	check_hello(connect_tool());
	execl("/proc/self/exe", "cuda_control", "probe", "after exec", NULL);
	CHECK(false, "exec");
}

static void after_exec(void)
{
	CHECK(find_page() < 0, "nothing was inherited");
	init(0);
	check_hello(connect_tool());
}

static pthread_barrier_t barrier;

static void *init_now(void *argument)
{
	pthread_barrier_wait(&barrier);
	CHECK(init(0) == 0, "cuInit");
	return NULL;
}

static void racing(void)
{
	pthread_t all[64];

	pthread_barrier_init(&barrier, NULL, 64);
	for (int i = 0; i < 64; i++)
		pthread_create(&all[i], NULL, init_now, NULL);
	for (int i = 0; i < 64; i++)
		pthread_join(all[i], NULL);
	check_hello(connect_tool());
	CHECK(threads() == 1, "%u threads", threads());
}

/* Report 16: a program with handlers for all signals, and with all of them blocked. */
static void signalled(int number)
{
	char name[16] = "";

	pthread_getname_np(pthread_self(), name, sizeof(name));
	CHECK(strcmp(name, "diapause-ctl"), "signal %d in the control thread", number);
}

static void signals(void)
{
	sigset_t all, now;

	for (int i = 1; i < 32; i++)
		signal(i, signalled);
	sigemptyset(&all);
	sigaddset(&all, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	init(0);
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	CHECK(sigismember(&now, SIGUSR1) && !sigismember(&now, SIGUSR2), "the caller's mask is as it was");
	for (int i = 0; i < 100; i++)
		kill(getpid(), SIGUSR2);
	check_hello(connect_tool());
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	check_hello(connect_tool());
}

static void limit(rlim_t files)
{
	struct rlimit limit = { files, files };

	CHECK(!setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
	CHECK(init(0) == 0, "cuInit");
}

static void low_limit(void)
{
	limit(100);
	CHECK(find_page() >= 84 && find_page() < 100, "below the limit: %d", find_page());
	check_hello(connect_tool());
}

/* With `spare` file descriptors left: all of the channel or nothing of it. */
static void with_spare(int spare)
{
	struct rlimit files = { 64, 64 };
	int last, n = 0;

	CHECK(!setrlimit(RLIMIT_NOFILE, &files), "setrlimit");
	while ((last = dup(0)) >= 0)
		n = last;
	for (int i = 0; i < spare; i++)
		close(n--);
	CHECK(init(0) == 0, "cuInit");
	for (int i = 0; i < 8; i++)
		close(n--);
	if (spare >= 3) {
		check_hello(connect_tool());
		return;
	}
	CHECK(find_page() < 0 && threads() == 0, "with %d", spare);
	CHECK(init(0) == 0, "again");
}

static void no_files(void)
{
	for (int spare = 0; spare < 6; spare++) {
		pid_t child = fork();

		if (child == 0) {
			with_spare(spare);
			_exit(0);
		}
		CHECK(wait_for(child) == 0, "with %d", spare);
	}
}

/* A program that closes what it does not know, and uses the numbers itself. */
static void closed(void)
{
	int ends[2], files = 0;
	char byte;

	init(0);
	for (int fd = 3; fd < 2000; fd++)
		close(fd);
	while (threads() && files++ < 1000)
		usleep(1000);
	CHECK(threads() == 0, "the thread ended");
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), "pair");
	for (int fd = 900; fd < 904; fd++)
		dup2(ends[0], fd);
	CHECK(write(ends[1], "x", 1) == 1, "write");
	usleep(20000);
	CHECK(recv(903, &byte, 1, MSG_DONTWAIT) == 1, "nobody else read it");
	CHECK(init(0) == 0, "CUDA goes on");
}

/* The program uses the number of our end for a socket of its own while the thread waits. */
static void reused(void)
{
	struct diapause_frame frame = request(DIAPAUSE_OP_HELLO, 5, 1);
	int ends[2], fd, tries = 0;
	char byte;

	init(0);
	check_hello(fd = connect_tool());
	usleep(20000); /* it waits for the next one */
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), "pair");
	CHECK(write(ends[1], "x", 1) == 1, "write");
	dup2(ends[0], 901);
	CHECK(send(fd, &frame, sizeof(frame), 0) == sizeof(frame), "send");
	while (threads() && tries++ < 1000)
		usleep(1000);
	CHECK(threads() == 0 && read_page().peer == -1, "the thread ended, and says so");
	CHECK(!readable(ends[1], 50), "nothing was written to it");
	CHECK(recv(901, &byte, 1, MSG_DONTWAIT) == 1 && byte == 'x', "nor read from it");
}

static void *idle(void *argument)
{
	pause();
	return NULL;
}

static void leaving(void)
{
	pthread_t thread;

	init(0);
	pthread_create(&thread, NULL, idle, NULL);
	exit(0);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "once", once },	    { "failing", failing },
	{ "hostile", hostile },	    { "gifts", gifts },
	{ "flood", flood },	    { "forked", forked },
	{ "inherited", inherited }, { "executed", executed },
	{ "racing", racing },	    { "signals", signals },
	{ "low limit", low_limit }, { "no files", no_files },
	{ "closed", closed },	    { "reused", reused },
	{ "leaving", leaving },	    { "after exec", after_exec },
};

#define CASES (int)(sizeof(cases) / sizeof(cases[0]))

static int probe(const char *name)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW);

	check_case = name;
	CHECK(handle, "%s", dlerror());
	init = (int (*)(unsigned int))dlsym(handle, "cuInit");
	for (int i = 0; i < CASES; i++)
		if (!strcmp(name, cases[i].name))
			cases[i].run();
	return 0;
}

int main(int argc, char **argv)
{
	char *path, *preload, *real;

	if (argc > 2)
		return probe(argv[2]);
	CHECK(asprintf(&preload, "LD_PRELOAD=%s", out("lib/libdiapause-cuda.so")) > 0, "memory");
	CHECK(asprintf(&path, "LD_LIBRARY_PATH=%s", out("cuda-tests/replaced")) > 0, "memory");
	CHECK(asprintf(&real, "DIAPAUSE_REAL_LIBCUDA=%s", out("cuda-tests/stub/libcuda.so.1")) > 0, "memory");
	for (int i = 0; i < CASES; i++) {
		CHECK(start(cases[i].name, real, path, NULL) == 0, "%s", cases[i].name);
		CHECK(start(cases[i].name, real, preload, NULL) == 0, "%s, preloaded", cases[i].name);
	}
	return 0;
}
