/* Sends a file to a server, or receives one from it, over reknit's TCP.
 *
 *   transfer send FILE ADDRESS:PORT      transfer receive FILE ADDRESS:PORT
 *
 * It is a host with the address 10.78.0.2 behind a TUN device, on which the kernel is 10.78.0.1. Needs root.
 * Build: cc -o transfer transfer.c -I../include -L../../../target/release -lreknit_c */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "reknit.h"

#define MTU 1500

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void set_address(int sock, struct ifreq *request, unsigned long what, const char *address) {
    struct sockaddr_in *in = (struct sockaddr_in *)&request->ifr_addr;
    memset(in, 0, sizeof *in);
    in->sin_family = AF_INET;
    inet_pton(AF_INET, address, &in->sin_addr);
    if (ioctl(sock, what, request) < 0)
        fail(address, strerror(errno));
}

/* A TUN device with the kernel's address. */
static int open_tun(void) {
    struct ifreq request;
    memset(&request, 0, sizeof request);
    strcpy(request.ifr_name, "reknit-c");
    int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    if (tun < 0)
        fail("/dev/net/tun (it needs root; `modprobe tun` loads it)", strerror(errno));
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    if (ioctl(tun, TUNSETIFF, &request) < 0)
        fail("device reknit-c (it needs root, and no other program may use it)", strerror(errno));
    int sock = socket(AF_INET, SOCK_DGRAM, 0);
    set_address(sock, &request, SIOCSIFADDR, "10.78.0.1");
    set_address(sock, &request, SIOCSIFNETMASK, "255.255.255.0");
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    if (ioctl(sock, SIOCSIFFLAGS, &request) < 0)
        fail("reknit-c", strerror(errno));
    close(sock);
    return tun;
}

/* The other end, for messages. */
static const char *peer;

/* What is left of a chunk of the file that was not written yet. */
static char chunk[65536];
static size_t chunk_at, chunk_len;

/* Writes as much of the file as fits; true at its end. */
static int send_file(reknit_stack *stack, reknit_socket sock, FILE *file) {
    for (;;) {
        if (chunk_at == chunk_len) {
            chunk_at = 0;
            chunk_len = fread(chunk, 1, sizeof chunk, file);
            if (chunk_len == 0) {
                reknit_finish(stack, now(), sock);
                return 1;
            }
        }
        ptrdiff_t n = reknit_write(stack, sock, chunk + chunk_at, chunk_len - chunk_at);
        if (n == REKNIT_WOULD_BLOCK)
            return 0;
        if (n < 0)
            fail(peer, reknit_error());
        chunk_at += (size_t)n;
    }
}

/* Reads what has arrived; true at the end of the stream. */
static int receive_file(reknit_stack *stack, reknit_socket sock, FILE *file) {
    for (;;) {
        ptrdiff_t n = reknit_read(stack, now(), sock, chunk, sizeof chunk);
        if (n == REKNIT_WOULD_BLOCK)
            return 0;
        if (n < 0)
            fail(peer, reknit_error());
        if (n == 0)
            return 1;
        if (fwrite(chunk, 1, (size_t)n, file) != (size_t)n)
            fail("file", strerror(errno));
    }
}

/* Waits for packets, or for the stack's next timer. */
static void wait_for(int tun, uint64_t deadline) {
    uint64_t time = now();
    struct pollfd descriptor = {tun, POLLIN, 0};
    uint64_t ms = deadline <= time ? 0 : (deadline - time) / 1000000 + 1;
    poll(&descriptor, 1, ms > 1000 ? 1000 : (int)ms);
}

int main(int argc, char **argv) {
    static unsigned char packet[65536];
    if (argc != 4 || (strcmp(argv[1], "send") && strcmp(argv[1], "receive")))
        fail("usage", "transfer send|receive FILE ADDRESS:PORT");
    int sends = !strcmp(argv[1], "send");
    FILE *file = fopen(argv[2], sends ? "rb" : "wb");
    if (!file)
        fail(argv[2], strerror(errno));
    int tun = open_tun();
    peer = argv[3];

    const char *addresses[] = {"10.78.0.2"};
    reknit_stack *stack = reknit_stack_new(addresses, 1, MTU, now());
    if (!stack)
        fail("stack", reknit_error());
    if (reknit_use_variant(stack, "linux") < 0 || reknit_use_options(stack, "nagle = false") < 0)
        fail("options", reknit_error());
    reknit_socket sock = reknit_connect(stack, now(), peer);
    if (!sock)
        fail(peer, reknit_error());

    int file_done = 0, peer_done = 0, closed = 0;
    while (!closed) {
        ptrdiff_t n;
        reknit_event event;
        wait_for(tun, reknit_deadline(stack));
        while ((n = read(tun, packet, sizeof packet)) > 0)
            reknit_input(stack, now(), packet, (size_t)n);
        reknit_timer(stack, now());
        do {
            while ((n = reknit_output(stack, now(), packet, sizeof packet)) > 0)
                if (write(tun, packet, (size_t)n) < 0 && errno != EINTR)
                    perror("tun"); /* as if the network had lost it */
            if (reknit_next_event(stack, &event) <= 0)
                break;
            if (sends && !file_done && (event.kind == REKNIT_CONNECTED || event.kind == REKNIT_WRITABLE))
                file_done = send_file(stack, sock, file);
            if (event.kind == REKNIT_READABLE && !peer_done)
                peer_done = receive_file(stack, sock, file);
            if (event.kind == REKNIT_CLOSED && !(peer_done && (file_done || !sends))) {
                reknit_read(stack, now(), sock, chunk, sizeof chunk);
                fail(peer, reknit_error());
            }
            if (peer_done && (file_done || !sends) && !closed) {
                reknit_info info;
                if (reknit_get_info(stack, now(), sock, &info) == REKNIT_OK)
                    printf("rtt %.3f ms, %llu retransmissions\n", (double)info.srtt / 1e6,
                           (unsigned long long)info.retransmissions);
                reknit_close(stack, now(), sock);
                closed = 1;
            }
        } while (1);
    }
    /* Everything must arrive before the program ends, within 10 s. */
    uint64_t until = now() + 10000000000u, connections, bytes;
    reknit_finish_all(stack, now());
    do {
        ptrdiff_t n;
        reknit_timer(stack, now());
        while ((n = reknit_output(stack, now(), packet, sizeof packet)) > 0)
            if (write(tun, packet, (size_t)n) < 0)
                break;
        if (reknit_is_delivering(stack) <= 0)
            break;
        wait_for(tun, reknit_deadline(stack));
        while ((n = read(tun, packet, sizeof packet)) > 0)
            reknit_input(stack, now(), packet, (size_t)n);
    } while (now() < until);
    if (reknit_undelivered(stack, &connections, &bytes) == REKNIT_OK && connections > 0) {
        fprintf(stderr, "%s: %llu bytes were not acknowledged\n", peer, (unsigned long long)bytes);
        return 1;
    }
    reknit_stack_free(stack);
    return fclose(file) ? 1 : 0;
}
