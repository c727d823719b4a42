/* reknit's TCP for C: many connections without I/O, clock or threads.
 *
 * A stack is a host. Your program carries its packets (IP, without a link layer) and tells it the time:
 *
 *   reknit_input(stack, now, packet, len);                              a packet arrives
 *   reknit_timer(stack, now);                                           reknit_deadline(stack) has come
 *   while ((n = reknit_output(stack, now, packet, sizeof packet)) > 0)  after every call that changes something
 *       send packet;
 *   while (reknit_next_event(stack, &event))                            then
 *       read, write, accept, close;
 *
 * Time is in nanoseconds since any origin, and never goes back. A stack is used by one thread at a time. Functions that
 * fail return a negative number, 0 or NULL as stated, and reknit_error() says why. No function ends the program. */
#ifndef REKNIT_H
#define REKNIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct reknit_stack reknit_stack;
/* Names of sockets and listeners. 0 is none, and a name is not used again. */
typedef uint64_t reknit_socket;
typedef uint64_t reknit_listener;
typedef uint64_t reknit_udp;

enum {
    REKNIT_OK = 0,
    REKNIT_WOULD_BLOCK = -1, /* an event follows when it would not */
    REKNIT_ENDED = -2,       /* the connection was refused, reset, aborted, or timed out; UDP: nobody listens there */
    REKNIT_SHUT_DOWN = -3,   /* this direction was shut down before */
    REKNIT_INVALID = -4,     /* an argument: NULL, not UTF-8, no such socket, address or option */
    REKNIT_PANIC = -5        /* internal error in reknit; free the stack */
};

/* Why the last call of this thread failed: one line, valid until the next call. Empty if it did not fail; never NULL. */
const char *reknit_error(void);

/* ---- the stack ---- */

/* A host with these addresses ("10.0.0.2", "fd00::2"), on an interface that carries packets of up to mtu bytes. NULL on
 * failure. Sockets use the variant "reknit". */
reknit_stack *reknit_stack_new(const char *const *addresses, size_t count, uint16_t mtu, uint64_t now);
void reknit_stack_free(reknit_stack *stack);

/* A packet arrives. What is damaged, or of no concern, is ignored. */
int reknit_input(reknit_stack *stack, uint64_t now, const void *packet, size_t len);
/* The next packet to send: its length, 0 if there is none, or negative. size should be at least the mtu; a packet that
 * does not fit is lost. */
ptrdiff_t reknit_output(reknit_stack *stack, uint64_t now, void *packet, size_t size);
/* When to call reknit_timer: UINT64_MAX is never, and a time in the past means that there is something to send. */
uint64_t reknit_deadline(const reknit_stack *stack);
int reknit_timer(reknit_stack *stack, uint64_t now);

typedef enum {
    REKNIT_ACCEPTABLE = 1, /* id is a listener: call reknit_accept until it returns 0 */
    REKNIT_CONNECTED = 2,
    REKNIT_READABLE = 3, /* data, the end, or an error: call reknit_read until it would block */
    REKNIT_WRITABLE = 4, /* comes after reknit_write has not taken everything */
    REKNIT_CLOSED = 5,   /* the connection has ended; reknit_close is still needed */
    REKNIT_DELIVERED = 6, /* comes after reknit_delivered would have blocked: call it again */
    REKNIT_UDP_READABLE = 7, /* id is a UDP socket: call reknit_udp_receive until it would block */
    REKNIT_UDP_WRITABLE = 8  /* comes after reknit_udp_send would have blocked */
} reknit_event_kind;

typedef struct {
    int32_t kind;
    uint64_t id;
} reknit_event;

/* 1 and the next event, 0 if there is none. */
int reknit_next_event(reknit_stack *stack, reknit_event *event);

/* ---- the end ---- */

/* What was written is only delivered while the program carries packets. Before it ends: reknit_finish_all, then packets and
 * timers as before while reknit_is_delivering(stack) > 0, as long as the program is willing to wait; reknit_undelivered then says
 * what was lost. A program that just ends leaves its peers without the rest, and without a FIN or RST. */

/* Nobody can connect any more, and every connection sends what was written and then its end. */
int reknit_finish_all(reknit_stack *stack, uint64_t now);
/* 1 if something that was written, or the end of a stream, can still be delivered and is not. 0 if not. */
int reknit_is_delivering(reknit_stack *stack);
/* What the peers have not acknowledged: of the connections that there are now, and of those that have failed after
 * reknit_close. */
int reknit_undelivered(reknit_stack *stack, uint64_t *connections, uint64_t *bytes);

/* ---- options ---- */

/* The algorithms, and the engine's options, of sockets and listeners that are made from now on. A variant has a name
 * ("reknit variants" lists all), or is the text of a variant file. Options are TOML: "nagle = false\nmin_rto = '1 s'". */
int reknit_use_variant(reknit_stack *stack, const char *name);
int reknit_use_variant_toml(reknit_stack *stack, const char *toml);
int reknit_use_options(reknit_stack *stack, const char *toml);
/* The same for an open socket. The sending algorithms change when nothing is outstanding, about a round trip later. */
int reknit_set_variant(reknit_stack *stack, uint64_t now, reknit_socket socket, const char *name);
int reknit_set_variant_toml(reknit_stack *stack, uint64_t now, reknit_socket socket, const char *toml);
int reknit_set_options(reknit_stack *stack, uint64_t now, reknit_socket socket, const char *toml);

/* ---- sockets ---- */

/* Addresses are written "10.0.0.2:80" and "[fd00::2]:80". 0 on failure. */
reknit_listener reknit_listen(reknit_stack *stack, const char *address, size_t backlog);
int reknit_unlisten(reknit_stack *stack, uint64_t now, reknit_listener listener);
reknit_socket reknit_accept(reknit_stack *stack, reknit_listener listener);
reknit_socket reknit_connect(reknit_stack *stack, uint64_t now, const char *address);
/* From this address of the stack; port 0 is any free one. */
reknit_socket reknit_connect_from(reknit_stack *stack, uint64_t now, const char *local, const char *address);

/* Addresses as text, with NUL at the end. REKNIT_ADDRESS bytes are enough. */
#define REKNIT_ADDRESS 64
int reknit_listening_on(const reknit_stack *stack, reknit_listener listener, char *into, size_t size);
int reknit_local(const reknit_stack *stack, reknit_socket socket, char *into, size_t size);
int reknit_remote(const reknit_stack *stack, reknit_socket socket, char *into, size_t size);

/* The number of bytes, 0 at the end of the stream (if len is not 0), or negative. */
ptrdiff_t reknit_read(reknit_stack *stack, uint64_t now, reknit_socket socket, void *into, size_t len);
/* The number of bytes taken, or negative. */
ptrdiff_t reknit_write(reknit_stack *stack, reknit_socket socket, const void *bytes, size_t len);
/* No more data will be written: the peer reads the end after everything else. */
int reknit_finish(reknit_stack *stack, uint64_t now, reknit_socket socket);
/* REKNIT_OK if the peer has acknowledged everything that was written, and the end if reknit_finish was called.
 * REKNIT_WOULD_BLOCK if not yet, REKNIT_ENDED if the connection has failed before. */
int reknit_delivered(reknit_stack *stack, reknit_socket socket);
/* What was written is still sent: as long as the program carries packets and the peer answers, or as reknit_set_linger says. */
int reknit_close(reknit_stack *stack, uint64_t now, reknit_socket socket);
/* After reknit_close, what is not acknowledged in this time (nanoseconds) is given up, and the peer gets a RST; with 0 at
 * once. UINT64_MAX is as without this call. */
int reknit_set_linger(reknit_stack *stack, reknit_socket socket, uint64_t time);
/* The most bytes that reknit_write takes ahead of the peer's acknowledgments. */
int reknit_set_send_buffer(reknit_stack *stack, reknit_socket socket, size_t most);
/* The peer gets a RST. reknit_close is still needed. */
int reknit_abort(reknit_stack *stack, uint64_t now, reknit_socket socket);

typedef struct {
    uint64_t acknowledged;     /* bytes that the peer has acknowledged */
    uint64_t unacknowledged;   /* bytes written and not acknowledged */
    uint64_t readable;         /* bytes that can be read */
    uint64_t cwnd;             /* congestion window, bytes */
    uint64_t ssthresh;         /* UINT64_MAX: none yet */
    uint64_t flight_size;      /* bytes outstanding */
    uint64_t snd_wnd;          /* the peer's window, bytes */
    uint64_t srtt;             /* nanoseconds; 0: not measured */
    uint64_t min_rtt;          /* nanoseconds; 0: not measured */
    uint64_t rto;              /* nanoseconds; UINT64_MAX: no retransmission timer */
    uint64_t segments_sent;    /* with data */
    uint64_t retransmissions;
    uint64_t spurious_retransmissions; /* of these, those that the peer had received already */
    uint64_t timeouts;
    uint32_t sacked;           /* outstanding segments */
    uint32_t lost;             /* outstanding segments */
    uint32_t backoff;          /* doublings of the rto */
    uint32_t segment_size;     /* largest segment, options included */
    uint64_t snd_una;          /* position in the stream of the first byte that is not acknowledged */
    uint64_t snd_nxt;          /* position in the stream of the next byte to send */
    uint64_t rttvar;           /* nanoseconds; 0: not measured */
    uint64_t reordered;        /* segments that arrived late, as far as this end has noticed */
    uint64_t busy;             /* nanoseconds in which something was written and not acknowledged */
    uint64_t by_peer_window;   /* of these, the peer's window was full */
    uint64_t by_send_buffer;   /* of these, everything was sent, and more did not fit the send buffer */
} reknit_info;

int reknit_get_info(const reknit_stack *stack, uint64_t now, reknit_socket socket, reknit_info *info);

/* ---- UDP ---- */

/* A socket on an address of the stack, or on "0.0.0.0:53" or "[::]:53" for all of them; port 0 is any free one. 0 on failure. */
reknit_udp reknit_udp_bind(reknit_stack *stack, const char *address);
/* From now on the socket gets only datagrams from this address. If nobody listens there, and an ICMP message says so, the next
 * reknit_udp_send without an address, or reknit_udp_receive, returns REKNIT_ENDED, once. */
int reknit_udp_connect(reknit_stack *stack, reknit_udp socket, const char *address);
int reknit_udp_local(const reknit_stack *stack, reknit_udp socket, char *into, size_t size);
/* Sends a datagram; with NULL as address to where the socket is connected. Datagrams are not fragmented. REKNIT_WOULD_BLOCK if
 * the send buffer is full. */
int reknit_udp_send(reknit_stack *stack, reknit_udp socket, const char *address, const void *bytes, size_t len);
/* The length of the next datagram, or negative; what does not fit is lost. from, which may be NULL, gets the sender's address. */
ptrdiff_t reknit_udp_receive(reknit_stack *stack, reknit_udp socket, void *into, size_t len, char *from, size_t from_size);
/* What was sent is still sent. */
int reknit_udp_close(reknit_stack *stack, reknit_udp socket);

#ifdef __cplusplus
}
#endif

#endif
