/* The load of the proxy benchmark: one thread, epoll, OpenSSL. Every response is parsed and checked.
 *
 *   loadgen MODE PORT ORIGIN_PORT PATH LENGTH CONNECTIONS SECONDS REQUESTS IS_NEW
 *
 * MODE         direct       GET /path at ORIGIN_PORT, no proxy
 *              direct-tls   the same over TLS 1.3
 *              forward      GET http://127.0.0.1:ORIGIN_PORT/path at the proxy
 *              connect      CONNECT 127.0.0.1:ORIGIN_PORT, then TLS 1.3 inside
 * LENGTH       bytes that the body of every response must have
 * SECONDS      when to stop; REQUESTS stops earlier, 0 is no limit
 * IS_NEW       1: a new connection (and handshake) for each request
 *
 * Without IS_NEW all connections are made first, handshakes included; then the clock starts. Prints `ready` at that
 * moment, and at the end one line of JSON. Times are in microseconds, from the first byte of the request (with IS_NEW from the
 * connect) to the last byte of the body.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HEAD_BYTES 16384
#define BLOCK_BYTES (256 * 1024)
#define MAX_CONNECTIONS 4096
#define MAX_ERRORS 200
#define SET_UP_NS 20000000000u

enum state { CONNECTING, ASKING, TUNNELLING, SHAKING, READY, SENDING, HEAD, BODY };
enum chunk { SIZE, DATA, DATA_END, TRAILER };

struct connection {
  int fd, is_writing, is_closing, is_chunked;
  SSL *ssl;
  enum state state;
  enum chunk chunk;
  const char *out;
  size_t out_bytes, sent, head_bytes, line_bytes;
  int64_t left, body_bytes;
  uint64_t started_ns, first_ns;
  char head[HEAD_BYTES];
};

static int is_tls, is_proxied_tls, is_new, is_started, ready_count, wanted, port, poll_fd;
static uint64_t began_ns, length_ns;
static int64_t wanted_length;
static uint64_t stop_ns, max_requests, started_requests;
static char request[2048], opening[512];
static size_t request_bytes, opening_bytes;
static SSL_CTX *context;
static struct connection *connections;
static uint32_t *samples;
static size_t sample_count, sample_room;
static uint64_t errors, reconnects, received_bytes, first_byte_ns;
static char why[256];
static char block[BLOCK_BYTES];

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void die(const char *what) {
  fprintf(stderr, "loadgen: %s: %s\n", what, strerror(errno));
  exit(2);
}

static void watch(struct connection *c, int is_writing) {
  if (c->is_writing == is_writing) return;
  c->is_writing = is_writing;
  struct epoll_event event = {.events = is_writing ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = c};
  if (epoll_ctl(poll_fd, EPOLL_CTL_MOD, c->fd, &event) < 0) die("epoll_ctl");
}

static void hang_up(struct connection *c) {
  if (c->ssl != NULL) {
    SSL_shutdown(c->ssl);
    SSL_free(c->ssl);
    c->ssl = NULL;
  }
  if (c->fd >= 0) close(c->fd);
  c->fd = -1;
}

static void dial(struct connection *c) {
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (c->fd < 0) die("socket");
  int one = 1;
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  c->state = CONNECTING;
  c->is_closing = 0;
  c->started_ns = now_ns();
  if (connect(c->fd, (struct sockaddr *)&address, sizeof address) < 0 && errno != EINPROGRESS) die("connect");
  c->is_writing = 1;
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.ptr = c};
  if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, c->fd, &event) < 0) die("epoll_ctl");
}

static void advance(struct connection *c);

/* Another request may begin: there is time and the count allows it. */
static int may_begin(void) {
  if (max_requests && started_requests >= max_requests) return 0;
  return now_ns() < stop_ns;
}

static void fail(struct connection *c, const char *reason) {
  errors++;
  if (c->state == READY) ready_count--;
  if (!why[0]) snprintf(why, sizeof why, "%s", reason);
  hang_up(c);
  if (errors < MAX_ERRORS && may_begin()) dial(c);
}

static void send_out(struct connection *c, enum state state, const char *data, size_t bytes) {
  c->state = state;
  c->out = data;
  c->out_bytes = bytes;
  c->sent = 0;
  advance(c);
}

static void start(void);

static void begin(struct connection *c) {
  if (!is_started) {
    c->state = READY;
    if (++ready_count == wanted) start();
    return;
  }
  if (!may_begin()) {
    hang_up(c);
    return;
  }
  started_requests++;
  c->head_bytes = 0;
  c->first_ns = 0;
  c->body_bytes = 0;
  if (!is_new) c->started_ns = now_ns();
  send_out(c, SENDING, request, request_bytes);
}

static void start(void) {
  is_started = 1;
  began_ns = now_ns();
  stop_ns = began_ns + length_ns;
  puts("ready");
  fflush(stdout);
  for (int at = 0; at < wanted; at++)
    if (connections[at].state == READY) begin(&connections[at]);
}

static void shake_hands(struct connection *c) {
  if (c->ssl == NULL) {
    c->ssl = SSL_new(context);
    if (c->ssl == NULL || !SSL_set_fd(c->ssl, c->fd)) die("SSL_new");
    SSL_set_connect_state(c->ssl);
  }
  c->state = SHAKING;
  int done = SSL_do_handshake(c->ssl);
  if (done == 1) {
    watch(c, 0);
    begin(c);
    return;
  }
  int error = SSL_get_error(c->ssl, done);
  if (error == SSL_ERROR_WANT_READ) watch(c, 0);
  else if (error == SSL_ERROR_WANT_WRITE) watch(c, 1);
  else fail(c, "the TLS handshake failed");
}

/* Bytes written, 0 when it would block, -1 for an error. */
static ssize_t push(struct connection *c, const char *data, size_t bytes) {
  if (c->ssl != NULL && c->state == SENDING) {
    int done = SSL_write(c->ssl, data, (int)bytes);
    if (done > 0) return done;
    int error = SSL_get_error(c->ssl, done);
    return error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ ? 0 : -1;
  }
  ssize_t done = send(c->fd, data, bytes, MSG_NOSIGNAL);
  if (done >= 0) return done;
  return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

/* Bytes read, 0 at the end, -1 when it would block, -2 for an error. */
static ssize_t pull(struct connection *c) {
  if (c->ssl != NULL) {
    ERR_clear_error();
    int done = SSL_read(c->ssl, block, BLOCK_BYTES);
    if (done > 0) return done;
    int error = SSL_get_error(c->ssl, done);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return -1;
    return error == SSL_ERROR_ZERO_RETURN ? 0 : -2;
  }
  ssize_t done = recv(c->fd, block, BLOCK_BYTES, 0);
  if (done >= 0) return done;
  return errno == EAGAIN || errno == EINTR ? -1 : -2;
}

static void finished(struct connection *c) {
  if (c->body_bytes != wanted_length) {
    char reason[128];
    snprintf(reason, sizeof reason, "a body of %lld bytes instead of %lld", (long long)c->body_bytes,
             (long long)wanted_length);
    fail(c, reason);
    return;
  }
  uint64_t end = now_ns();
  if (end <= stop_ns) {
    if (sample_count == sample_room) {
      sample_room = sample_room ? sample_room * 2 : 65536;
      samples = realloc(samples, sample_room * sizeof *samples);
      if (samples == NULL) die("realloc");
    }
    samples[sample_count++] = (uint32_t)((end - c->started_ns) / 100); /* tenths of a microsecond */
    first_byte_ns += c->first_ns - c->started_ns;
  }
  if (is_new || c->is_closing) {
    if (!is_new) reconnects++;
    hang_up(c);
    if (may_begin()) dial(c);
  } else {
    begin(c);
  }
}

/* The value of a header in c->head, or NULL. */
static const char *header(const char *head, const char *name) {
  size_t bytes = strlen(name);
  for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
    line += 2;
    if (strncasecmp(line, name, bytes) == 0 && line[bytes] == ':') {
      line += bytes + 1;
      while (*line == ' ') line++;
      return line;
    }
  }
  return NULL;
}

/* Reads the head that is complete in c->head; 0 when it is not what was asked for. */
static int read_head(struct connection *c) {
  if (strncmp(c->head, "HTTP/1.1 200", 12) != 0 && strncmp(c->head, "HTTP/1.0 200", 12) != 0) {
    char reason[128];
    snprintf(reason, sizeof reason, "answered '%.60s'", c->head);
    for (char *at = reason; *at; at++)
      if (*at == '\r' || *at == '\n' || *at == '"' || *at == '\\') *at = ' ';
    fail(c, reason);
    return 0;
  }
  const char *value = header(c->head, "connection");
  c->is_closing = value != NULL && strncasecmp(value, "close", 5) == 0;
  value = header(c->head, "transfer-encoding");
  c->is_chunked = value != NULL && strncasecmp(value, "chunked", 7) == 0;
  value = header(c->head, "content-length");
  if (!c->is_chunked && value == NULL) {
    fail(c, "a response without Content-Length and without chunks");
    return 0;
  }
  c->left = c->is_chunked ? 0 : strtoll(value, NULL, 10);
  c->chunk = SIZE;
  c->line_bytes = 0;
  return 1;
}

/* Counts chunked payload; 1 at its end. */
static int read_chunks(struct connection *c, const char *data, size_t bytes) {
  for (size_t at = 0; at < bytes;) {
    if (c->chunk == DATA) {
      size_t part = bytes - at < (size_t)c->left ? bytes - at : (size_t)c->left;
      c->left -= (int64_t)part;
      c->body_bytes += (int64_t)part;
      at += part;
      if (c->left == 0) c->chunk = DATA_END;
      continue;
    }
    char byte = data[at++];
    if (c->chunk == DATA_END) {
      if (byte == '\n') c->chunk = SIZE, c->line_bytes = 0, c->left = 0;
    } else if (byte == '\n') {
      if (c->chunk == TRAILER) {
        if (c->line_bytes == 0) return 1;
      } else {
        c->chunk = c->left ? DATA : TRAILER;
      }
      c->line_bytes = 0;
    } else if (byte != '\r') {
      c->line_bytes++;
      int digit = byte >= '0' && byte <= '9' ? byte - '0' : (byte | 32) >= 'a' && (byte | 32) <= 'f' ? (byte | 32) - 87 : -1;
      if (c->chunk == SIZE && digit >= 0) c->left = c->left * 16 + digit;
    }
  }
  return 0;
}

static int read_body(struct connection *c, const char *data, size_t bytes) {
  if (c->is_chunked) return read_chunks(c, data, bytes);
  c->body_bytes += (int64_t)bytes;
  c->left -= (int64_t)bytes;
  return c->left <= 0;
}

/* A block of a response (or of the answer to CONNECT) arrived. 0 when the connection went on to something else. */
static int take(struct connection *c, size_t bytes) {
  if (c->state == BODY) {
    if (!read_body(c, block, bytes)) return 1;
    finished(c);
    return 0;
  }
  if (c->state == HEAD && c->first_ns == 0) c->first_ns = now_ns();
  size_t room = HEAD_BYTES - 1 - c->head_bytes, part = bytes < room ? bytes : room;
  memcpy(c->head + c->head_bytes, block, part);
  size_t before = c->head_bytes;
  c->head_bytes += part;
  c->head[c->head_bytes] = 0;
  char *end = memmem(c->head, c->head_bytes, "\r\n\r\n", 4);
  if (end == NULL) {
    if (room <= bytes) {
      fail(c, "a head above 16 KiB");
      return 0;
    }
    return 1;
  }
  size_t head_bytes = (size_t)(end - c->head) + 4, used = head_bytes - before;
  if (c->state == TUNNELLING) {
    if (strncmp(c->head + 8, " 200", 4) != 0) fail(c, "CONNECT was refused");
    else c->head_bytes = 0, shake_hands(c);
    return 0;
  }
  end[2] = 0;
  if (!read_head(c)) return 0;
  c->state = BODY;
  if (used == bytes && (c->is_chunked || c->left > 0)) return 1;
  if (read_body(c, block + used, bytes - used)) {
    finished(c);
    return 0;
  }
  return 1;
}

static void advance(struct connection *c) {
  if (c->state == CONNECTING) {
    int error = 0;
    socklen_t bytes = sizeof error;
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
    if (error) {
      fail(c, strerror(error));
      return;
    }
    watch(c, 0);
    if (is_proxied_tls) send_out(c, ASKING, opening, opening_bytes);
    else if (is_tls) shake_hands(c);
    else begin(c);
    return;
  }
  if (c->state == SHAKING) {
    shake_hands(c);
    return;
  }
  if (c->state == ASKING || c->state == SENDING) {
    ssize_t done = push(c, c->out + c->sent, c->out_bytes - c->sent);
    if (done < 0) {
      fail(c, "the connection broke while a request was written");
      return;
    }
    c->sent += (size_t)done;
    if (c->sent < c->out_bytes) {
      watch(c, 1);
      return;
    }
    watch(c, 0);
    c->head_bytes = 0;
    c->state = c->state == ASKING ? TUNNELLING : HEAD;
    return;
  }
  /* With TLS until it would block: decrypted bytes that wait inside OpenSSL wake no epoll. */
  do {
    ssize_t bytes = pull(c);
    if (bytes == -1) return;
    if (bytes <= 0) {
      fail(c, bytes == 0 ? "the connection ended before the response did" : "the connection broke");
      return;
    }
    if (c->state == READY) {
      fail(c, "something was sent before a request was");
      return;
    }
    received_bytes += (uint64_t)bytes;
    if (!take(c, (size_t)bytes)) return;
  } while (c->ssl != NULL);
}

static int by_size(const void *one, const void *other) {
  uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
  return a < b ? -1 : a > b;
}

static double percentile(double part) {
  return sample_count ? samples[(size_t)(part * (double)(sample_count - 1))] / 10.0 : 0;
}

int main(int count, char **given) {
  if (count != 10) {
    fprintf(stderr, "usage: loadgen MODE PORT ORIGIN_PORT PATH LENGTH CONNECTIONS SECONDS REQUESTS IS_NEW\n");
    return 2;
  }
  const char *mode = given[1], *path = given[4];
  port = atoi(given[2]);
  int origin = atoi(given[3]);
  wanted = atoi(given[6]);
  wanted_length = atoll(given[5]);
  max_requests = strtoull(given[8], NULL, 10);
  is_new = atoi(given[9]);
  if (wanted < 1 || wanted > MAX_CONNECTIONS) return 2;
  is_proxied_tls = strcmp(mode, "connect") == 0;
  is_tls = is_proxied_tls || strcmp(mode, "direct-tls") == 0;
  if (strncmp(mode, "direct", 6) == 0) port = origin;
  char target[1024];
  if (strcmp(mode, "forward") == 0) snprintf(target, sizeof target, "http://127.0.0.1:%d%s", origin, path);
  else snprintf(target, sizeof target, "%s", path);
  request_bytes = (size_t)snprintf(request, sizeof request,
                                   "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: dari-bench/1\r\n"
                                   "Accept: application/json\r\nAccept-Encoding: identity\r\n\r\n",
                                   target, origin);
  opening_bytes = (size_t)snprintf(opening, sizeof opening, "CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n",
                                   origin, origin);
  signal(SIGPIPE, SIG_IGN);
  context = SSL_CTX_new(TLS_client_method());
  if (context == NULL || !SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION)) die("SSL_CTX_new");
  /* Who the proxy claims to be is not what is measured; each connection is a full handshake. */
  SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  poll_fd = epoll_create1(EPOLL_CLOEXEC);
  connections = calloc((size_t)wanted, sizeof *connections);
  if (poll_fd < 0 || connections == NULL) die("start");
  length_ns = (uint64_t)(atof(given[7]) * 1e9);
  stop_ns = now_ns() + SET_UP_NS;
  if (is_new) start();
  for (int at = 0; at < wanted; at++) dial(&connections[at]);
  struct epoll_event events[256];
  for (;;) {
    uint64_t now = now_ns();
    int is_busy = 0;
    for (int at = 0; at < wanted; at++) is_busy |= connections[at].fd >= 0;
    if (now >= stop_ns || !is_busy || errors >= MAX_ERRORS) break;
    int ready = epoll_wait(poll_fd, events, 256, (int)((stop_ns - now) / 1000000) + 1);
    if (ready < 0 && errno != EINTR) die("epoll_wait");
    for (int at = 0; at < ready; at++) {
      struct connection *c = events[at].data.ptr;
      if (c->fd >= 0) advance(c);
    }
  }
  uint64_t end = now_ns();
  double seconds = is_started ? (double)((end < stop_ns ? end : stop_ns) - began_ns) / 1e9 : 0;
  if (!is_started && !why[0]) snprintf(why, sizeof why, "only %d connections were made in time", ready_count);
  for (int at = 0; at < wanted; at++) hang_up(&connections[at]);
  qsort(samples, sample_count, sizeof *samples, by_size);
  printf("{\"requests\":%zu,\"errors\":%llu,\"why\":\"%s\",\"reconnects\":%llu,\"seconds\":%.6f,\"received_bytes\":%llu,"
         "\"p50_us\":%.1f,\"p99_us\":%.1f,\"first_byte_us\":%.1f}\n",
         sample_count, (unsigned long long)errors, why, (unsigned long long)reconnects, seconds,
         (unsigned long long)received_bytes, percentile(0.5), percentile(0.99),
         sample_count ? (double)first_byte_ns / 1000.0 / (double)sample_count : 0.0);
  return 0;
}
