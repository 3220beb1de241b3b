/* The `tmux` that `crux tmux --install` builds where there is a C compiler: one question to cruxd, one answer.
 *
 * An interpreter alone takes five times as long to start as tmux takes for a whole call. This program does what
 * `fast.py` does; whatever it does not know how to do it leaves to that one. Given when it is compiled: SOCKET, TOKEN,
 * CHOSEN (the MCP socket that both belong to), USUAL_HOME and USUAL_DARI_HOME (the variables that CHOSEN follows from,
 * empty when only CRUX_SOCKET chooses it), FALLBACK (the words of a command, each ended by \n), and MARK.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

__attribute__((used)) static const char mark[] = MARK;

struct text {
    char *data;
    size_t size, room;
};

static void add(struct text *text, const char *data, size_t size) {
    if (text->size + size + 1 > text->room) {
        text->room = (text->size + size + 1) * 2;
        text->data = realloc(text->data, text->room);
        if (text->data == NULL)
            exit(1);
    }
    memcpy(text->data + text->size, data, size);
    text->size += size;
    text->data[text->size] = '\0';
}

static void add_string(struct text *text, const char *value) {
    char escaped[8];
    add(text, "\"", 1);
    for (const unsigned char *at = (const unsigned char *)value; *at; at++) {
        if (*at == '"' || *at == '\\' || *at < 0x20) {
            int size = snprintf(escaped, sizeof escaped, "\\u%04x", *at);
            add(text, escaped, (size_t)size);
        } else {
            add(text, (const char *)at, 1);
        }
    }
    add(text, "\"", 1);
}

static void add_field(struct text *text, const char *name, const char *value) {
    add(text, ",\"", 2);
    add(text, name, strlen(name));
    add(text, "\":", 2);
    add_string(text, value);
}

/* Nothing has been asked yet: let the interpreter do all of it. */
static int fall_back(int count, char **words) {
    static char fallback[] = FALLBACK;
    char **all = calloc((size_t)count + 16, sizeof *all);
    int used = 0;
    for (char *word = strtok(fallback, "\n"); word != NULL && used < 15; word = strtok(NULL, "\n"))
        all[used++] = word;
    for (int at = 1; at < count; at++)
        all[used++] = words[at];
    execv(all[0], all);
    fprintf(stderr, "cannot run %s: %s\n", all[0], strerror(errno));
    return 1;
}

static int is_ours(int connection) {
#ifdef SO_PEERCRED
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
#else
    uid_t user;
    gid_t group;
    return getpeereid(connection, &user, &group) == 0 && user == geteuid();
#endif
}

static int connect_to_daemon(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(SOCKET) >= sizeof address.sun_path)
        return -1;
    strcpy(address.sun_path, SOCKET);
    int connection = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connection < 0 || connect(connection, (struct sockaddr *)&address, sizeof address) != 0 || !is_ours(connection))
        return -1;
    return connection;
}

static int read_token(char *token, size_t room) {
    int file = open(TOKEN, O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? -1 : read(file, token, room - 1);
    if (size <= 0)
        return 0;
    token[size] = '\0';
    token[strcspn(token, "\r\n ")] = '\0';
    close(file);
    return 1;
}

/* Four hexadecimal digits; -1 when they are not. */
static long hexadecimal(const char *at) {
    char digits[5] = {0};
    strncpy(digits, at, 4);
    char *end;
    long value = strtol(digits, &end, 16);
    return end == digits + 4 ? value : -1;
}

static size_t encode_utf8(unsigned long point, char *out) {
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    if (point < 0x800) {
        out[0] = (char)(0xc0 | point >> 6);
        out[1] = (char)(0x80 | (point & 0x3f));
        return 2;
    }
    if (point < 0x10000) {
        out[0] = (char)(0xe0 | point >> 12);
        out[1] = (char)(0x80 | (point >> 6 & 0x3f));
        out[2] = (char)(0x80 | (point & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | point >> 18);
    out[1] = (char)(0x80 | (point >> 12 & 0x3f));
    out[2] = (char)(0x80 | (point >> 6 & 0x3f));
    out[3] = (char)(0x80 | (point & 0x3f));
    return 4;
}

/* The string member `name`, written to a stream; 0 when the answer has none. */
static int print_member(const char *answer, const char *name, FILE *stream) {
    const char *at = strstr(answer, name);
    if (at == NULL)
        return 0;
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    for (at += strlen(name); *at && *at != '"'; at++) {
        if (*at != '\\') {
            fputc(*at, stream);
            continue;
        }
        at++;
        const char *letter = *at ? strchr(letters, *at) : NULL;
        if (letter != NULL) {
            fputc(meant[letter - letters], stream);
            continue;
        }
        long point = *at == 'u' ? hexadecimal(at + 1) : -1;
        if (point < 0)
            return 0;
        at += 4;
        if (point >= 0xd800 && point < 0xdc00 && at[1] == '\\' && at[2] == 'u') {
            long low = hexadecimal(at + 3);
            if (low >= 0xdc00 && low < 0xe000) {
                point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
                at += 6;
            }
        }
        char encoded[4];
        fwrite(encoded, 1, encode_utf8((unsigned long)point, encoded), stream);
    }
    return *at == '"';
}

static const char *environment(const char *first, const char *second, const char *missing) {
    const char *value = getenv(first);
    if ((value == NULL || !*value) && second != NULL)
        value = getenv(second);
    return value != NULL && *value ? value : missing;
}

/* Whether the caller means the daemon that this was compiled for. */
static int is_meant(void) {
    const char *chosen = environment("CRUX_SOCKET", NULL, "");
    if (*chosen)
        return strcmp(chosen, CHOSEN) == 0;
    return *USUAL_HOME && strcmp(environment("HOME", NULL, ""), USUAL_HOME) == 0 &&
           strcmp(environment("DARI_HOME", NULL, ""), USUAL_DARI_HOME) == 0;
}

int main(int count, char **words) {
    char token[1024], folder[4096];
    if (!is_meant() || getcwd(folder, sizeof folder) == NULL)
        return fall_back(count, words);
    int connection = connect_to_daemon();
    if (connection < 0 || !read_token(token, sizeof token))
        return fall_back(count, words);

    struct text asked = {0}, answer = {0};
    const char hello[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"system.handshake\",\"params\":{\"protocol_version\":1";
    const char run[] = "}}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"crux:tmux/run\",\"params\":{\"words\":[";
    add(&asked, hello, sizeof hello - 1);
    add_field(&asked, "token", token);
    add_field(&asked, "client_type", "cli");
    add(&asked, run, sizeof run - 1);
    for (int at = 1; at < count; at++) {
        if (at > 1)
            add(&asked, ",", 1);
        add_string(&asked, words[at]);
    }
    add(&asked, "]", 1);
    add_field(&asked, "pane", environment("CRUX_PANE", "TMUX_PANE", ""));
    add_field(&asked, "cwd", folder);
    add_field(&asked, "shell", environment("SHELL", NULL, "/bin/sh"));
    add(&asked, "}}\n", 3);
    for (size_t sent = 0; sent < asked.size;) {
        ssize_t size = send(connection, asked.data + sent, asked.size - sent, MSG_NOSIGNAL);
        if (size <= 0)
            return fall_back(count, words);
        sent += (size_t)size;
    }

    char piece[65536];
    char *second = NULL;
    for (ssize_t size; (size = read(connection, piece, sizeof piece)) > 0;) {
        add(&answer, piece, (size_t)size);
        if (second == NULL && (second = strchr(answer.data, '\n')) == NULL)
            continue;
        if (answer.data[answer.size - 1] == '\n' && strchr(strchr(answer.data, '\n') + 1, '\n') != NULL)
            break;
    }
    second = answer.size ? strchr(answer.data, '\n') : NULL;
    /* Refused before anything was done: an older daemon, a token that was renewed, words that are not UTF-8. */
    if (second == NULL || strstr(second, "\"result\":") == NULL || strstr(second, "\"is_for_caller\":true") != NULL) {
        if (second == NULL || *++second)
            return fall_back(count, words);
        fputs("the terminal server hung up\n", stderr);
        return 1;
    }
    const char *code = strstr(second, "\"exit_code\":");
    if (!print_member(second, "\"output\":\"", stdout) || fflush(stdout) != 0 ||
        !print_member(second, "\"complaint\":\"", stderr) || code == NULL)
        return 1;
    return atoi(code + strlen("\"exit_code\":"));
}
