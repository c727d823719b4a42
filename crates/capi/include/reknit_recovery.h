/* A loss detector that learns how late packets arrive, for QUIC, SCTP, SRT and other transports.
 *
 *   reknit_recovery_on_sent(r, number);                    a packet is sent that will be acknowledged
 *
 *   for each range of an ACK:                              an ACK arrives
 *       reknit_recovery_on_acked_range(r, now, first, last);
 *   for each packet that it newly acknowledges:
 *       reknit_recovery_on_acked(r, now, number);
 *   reknit_recovery_on_rtt(r, smoothed, latest);           if it gave a sample
 *
 *   for each outstanding packet, in order:                 then, and when a timer expires
 *       if ((t = reknit_recovery_loss_time(r, number, sent)) > now)
 *           break;                                         look again at t; the others are lost later
 *       reknit_recovery_on_lost(r, now, number);           send its content again
 *   reknit_recovery_decide(r, now, &decision);             reduce the window, or undo reductions
 *
 * A packet number is never used twice. Times are in nanoseconds since any origin, and never go back; UINT64_MAX is never. A
 * detector is used by one thread at a time, takes about 1 kB, and allocates nothing after reknit_recovery_new. Functions that
 * return an int return 0, or a negative number if a pointer is NULL. */
#ifndef REKNIT_RECOVERY_H
#define REKNIT_RECOVERY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct reknit_recovery reknit_recovery;

/* For a new connection or path. granularity is that of the timers: 1000000 (1 ms) in RFC 9002, less in data centers. */
reknit_recovery *reknit_recovery_new(uint64_t granularity);
void reknit_recovery_free(reknit_recovery *recovery);

int reknit_recovery_on_sent(reknit_recovery *recovery, uint64_t number);

/* All numbers from first to last, also those that were declared lost: they were only late. */
int reknit_recovery_on_acked_range(reknit_recovery *recovery, uint64_t now, uint64_t first, uint64_t last);
int reknit_recovery_on_acked(reknit_recovery *recovery, uint64_t now, uint64_t number);
int reknit_recovery_on_rtt(reknit_recovery *recovery, uint64_t smoothed, uint64_t latest);

/* When an outstanding packet will be lost: 0 if it is, UINT64_MAX if no higher one was acknowledged. Never earlier than in
 * RFC 9002, and the same until the first packet arrives late. */
uint64_t reknit_recovery_loss_time(const reknit_recovery *recovery, uint64_t number, uint64_t sent);
int reknit_recovery_on_lost(reknit_recovery *recovery, uint64_t now, uint64_t number);

/* A congestion event is named by the first packet that was lost in it. */
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

#ifdef __cplusplus
}
#endif

#endif
