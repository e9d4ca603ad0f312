/* A library of MPI between an engine and the real one: messages are delayed, and so reordered, or
   dropped, as the environment says. Built by tests/python/wires.py as a library of the name of the
   real one, which it is linked with: what is not defined here is found there.

   WIRES_SEED      what is delayed; each rank has its own choice
   WIRES_DELAYED   percent of messages that wait for a while
   WIRES_DROP      "RANK:NUMBER": this message of this rank, counted from 0, never arrives
   WIRES_HANDLES   defined when it is compiled where handles are addresses, as in Open MPI

   Messages of one tag between two ranks keep their order, as MPI promises; one that was dropped is
   gone.
   SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef WIRES_HANDLES
typedef void* Handle;
#else
typedef int Handle;
#endif

struct Message {
  int is_used, turns; /* how often it is asked for before it is sent */
  const void* bytes;
  int count, to, tag;
  Handle type, communicator, request;
  int is_sent;
  long number;
};
enum { most = 4096 };
static struct Message messages[most];
static long num_messages, drop = -1;
static int percent, is_started;
static unsigned seed;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int (*real_isend)(const void*, int, Handle, int, int, Handle, Handle*);
static int (*real_test)(Handle*, int*, void*);

static void start(void) {
  if (is_started) return;
  is_started = 1;
  real_isend = dlsym(RTLD_NEXT, "MPI_Isend");
  real_test = dlsym(RTLD_NEXT, "MPI_Test");
  const char* text = getenv("OMPI_COMM_WORLD_RANK");
  if (!text) text = getenv("PMI_RANK");
  const int rank = text ? atoi(text) : 0;
  text = getenv("WIRES_DELAYED");
  percent = text ? atoi(text) : 0;
  text = getenv("WIRES_SEED");
  seed = (text ? (unsigned)atoi(text) : 0) * 1009u + (unsigned)rank;
  int victim = -1;
  long number = -1;
  text = getenv("WIRES_DROP");
  if (text && sscanf(text, "%d:%ld", &victim, &number) == 2 && victim == rank) drop = number;
}

/* Requests of messages that are held back are numbers or addresses that MPI does not have. */
static Handle own_handle(struct Message* message) {
#ifdef WIRES_HANDLES
  return message;
#else
  return (Handle)(0x7e000000 + (message - messages));
#endif
}
static struct Message* own_message(Handle request) {
#ifdef WIRES_HANDLES
  struct Message* message = request;
  return message >= messages && message < messages + most ? message : NULL;
#else
  return request >= 0x7e000000 && request < 0x7e000000 + most ? messages + (request - 0x7e000000)
                                                              : NULL;
#endif
}

static int waits_behind(const struct Message* one) {
  for (int i = 0; i < most; ++i)
    if (messages[i].is_used && !messages[i].is_sent && messages[i].number < one->number &&
        messages[i].to == one->to && messages[i].tag == one->tag &&
        messages[i].communicator == one->communicator)
      return 1;
  return 0;
}

static int send_what_is_due(void) {
  int sent = 1;
  while (sent) { /* one that goes may let another go */
    sent = 0;
    for (int i = 0; i < most; ++i) {
      struct Message* one = messages + i;
      if (!one->is_used || one->is_sent || one->turns > 0 || waits_behind(one)) continue;
      const int code = real_isend(one->bytes, one->count, one->type, one->to, one->tag,
                                  one->communicator, &one->request);
      if (code) return code;
      one->is_sent = sent = 1;
    }
  }
  return 0;
}

int MPI_Isend(const void* bytes, int count, Handle type, int to, int tag, Handle communicator,
              Handle* request) {
  pthread_mutex_lock(&mutex);
  start();
  const long number = num_messages++;
  int code = 0, i = 0;
  while (i < most && messages[i].is_used) ++i;
  if (i == most) abort();
  const int turns = (int)(rand_r(&seed) % 100) < percent ? 1 + (int)(rand_r(&seed) % 40) : 0;
  messages[i] = (struct Message){1, turns, bytes, count, to, tag, type, communicator, 0, 0, number};
  *request = own_handle(messages + i);
  if (number == drop)
    messages[i].is_sent = 2;
  else
    code = send_what_is_due();
  pthread_mutex_unlock(&mutex);
  return code;
}

int MPI_Test(Handle* request, int* is_done, void* status) {
  pthread_mutex_lock(&mutex);
  start();
  for (int i = 0; i < most; ++i)
    if (messages[i].is_used && messages[i].turns > 0) --messages[i].turns;
  int code = send_what_is_due();
  struct Message* message = own_message(*request);
  if (!message) {
    if (!code) code = real_test(request, is_done, status);
  } else if (message->is_sent == 2) {
    *is_done = 1;
  } else if (message->is_sent == 1) {
    if (!code) code = real_test(&message->request, is_done, status);
  } else {
    *is_done = 0;
  }
  if (message && *is_done) message->is_used = 0;
  pthread_mutex_unlock(&mutex);
  return code;
}
