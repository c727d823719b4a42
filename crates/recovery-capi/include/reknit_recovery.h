/* A loss detector that learns how late packets arrive, for QUIC, SCTP, SRT and other transports.
 *
 *   reknit_recovery_init(&r, 1000000, 16);                 a new connection
 *   reknit_recovery_on_sent(&r, number);                   a packet is sent, whether it elicits an ACK or not
 *
 *   for each range of an ACK:                              an ACK arrives
 *       reknit_recovery_on_acked_range(&r, now, first, last);
 *   for each packet that it newly acknowledges:
 *       reknit_recovery_on_acked(&r, now, number);
 *   reknit_recovery_on_rtt(&r, smoothed, latest);          if it gave a sample
 *   if (reknit_recovery_on_marked(&r, largest))            if it reports new ECN-CE marks
 *       reduce the window;
 *
 *   for each outstanding packet, in order:                 then, and when a timer expires
 *       if ((t = reknit_recovery_loss_time(&r, number, sent)) > now)
 *           break;                                         look again at t; the others are lost later
 *       reknit_recovery_on_lost(&r, now, number);          if it elicits ACKs: send its content again
 *   reknit_recovery_settle(&r);                            in persistent congestion
 *   reknit_recovery_decide(&r, now, &decision);            reduce the window, or undo reductions
 *
 * ALGORITHM.md of the crate reknit-recovery has the rules for packet number spaces, paths and undo.
 *
 * A packet number is never used twice. Times are in nanoseconds since any origin, and never go back; UINT64_MAX is never. A
 * detector is used by one thread at a time. The caller owns its memory: nothing is allocated, and nothing must be freed. Functions
 * that return an int return a negative number if a pointer is NULL. */
#ifndef REKNIT_RECOVERY_H
#define REKNIT_RECOVERY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A detector, on the stack, in another struct, or from malloc. It contains no pointers: a copy by = or memcpy is a detector too. */
typedef struct {
    uint64_t opaque[128];
} reknit_recovery;

/* For a new connection. granularity is that of the timers: 1000000 (1 ms) in RFC 9002, less in data centers. A missing packet is
 * waited for during max_wait smoothed round-trip times at most: 16 if in doubt. */
int reknit_recovery_init(reknit_recovery *recovery, uint64_t granularity, uint32_t max_wait);

/* The connection sends on another path from now on. Packets sent before are lost as in RFC 9002, and cause no reduction. */
int reknit_recovery_on_new_path(reknit_recovery *recovery);

int reknit_recovery_on_sent(reknit_recovery *recovery, uint64_t number);

/* All numbers from first to last, also those that were declared lost: they were only late. */
int reknit_recovery_on_acked_range(reknit_recovery *recovery, uint64_t now, uint64_t first, uint64_t last);
int reknit_recovery_on_acked(reknit_recovery *recovery, uint64_t now, uint64_t number);
int reknit_recovery_on_rtt(reknit_recovery *recovery, uint64_t smoothed, uint64_t latest);

/* A queue has marked packets (ECN-CE); largest is the largest acknowledged number. 1 if the window is to be reduced for this event,
 * which is never undone; 0 if it was reduced for the same event: that reduction is not undone any more. */
int reknit_recovery_on_marked(reknit_recovery *recovery, uint64_t largest);

/* When an outstanding packet will be lost: 0 if it is, UINT64_MAX if no higher one was acknowledged. Never earlier than in
 * RFC 9002, and the same until the first packet arrives late. */
uint64_t reknit_recovery_loss_time(const reknit_recovery *recovery, uint64_t number, uint64_t sent);
int reknit_recovery_on_lost(reknit_recovery *recovery, uint64_t now, uint64_t number);

/* The transport restarts from its smallest window (persistent congestion): no reduction so far is undone any more, and losses of
 * packets that were sent cause none. */
int reknit_recovery_settle(reknit_recovery *recovery);

/* A congestion event is named by a packet that was lost in it. */
typedef struct {
    uint64_t next;         /* decide again at this time */
    uint64_t reduce;       /* reduce the window for this event, if reduces is 1 */
    uint64_t undone[4];    /* these events were spurious: undo the reduction of each, and only of these */
    uint32_t undone_count;
    int32_t reduces;
} reknit_decision;

int reknit_recovery_decide(reknit_recovery *recovery, uint64_t now, reknit_decision *decision);

/* How long packets are missing before they are lost; UINT64_MAX before the first late one. */
uint64_t reknit_recovery_wait(const reknit_recovery *recovery);

/* 1 while it is not known of some retransmissions whether they were needed: slow start should pause if the window has more than 32
 * packets. */
int reknit_recovery_is_undecided(const reknit_recovery *recovery);

#ifdef __cplusplus
}
#endif

#endif
