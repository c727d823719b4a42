/* The example of reknit-recovery's documentation: packet 4 is 30 ms late. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reknit.h"
#include "reknit_recovery.h"

#define MS 1000000ull

static void expect(const char *what, int holds) {
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

static reknit_decision ack(reknit_recovery *r, uint64_t now, uint64_t number) {
    reknit_decision decision;
    reknit_recovery_on_acked_range(r, now, number, number);
    if (number != 4)
        reknit_recovery_on_acked(r, now, number);
    reknit_recovery_on_rtt(r, 20 * MS, 20 * MS);
    if (number == 7)
        reknit_recovery_on_lost(r, now, 4);
    expect("decide", reknit_recovery_decide(r, now, &decision) == 0);
    return decision;
}

int main(void) {
    reknit_recovery *r = reknit_recovery_new(MS);
    reknit_decision decision = {0};
    for (uint64_t n = 0; n < 30; n++)
        reknit_recovery_on_sent(r, n);
    for (uint64_t n = 0; n < 4; n++)
        decision = ack(r, (20 + n) * MS, n);
    expect("nothing is missing", !decision.reduces && reknit_recovery_loss_time(r, 4, 4 * MS) == UINT64_MAX);
    ack(r, 25 * MS, 5);
    expect("9/8 of the round trip", reknit_recovery_loss_time(r, 4, 4 * MS) == 26 * MS + MS / 2);
    ack(r, 26 * MS, 6);
    decision = ack(r, 27 * MS, 7);
    expect("three packets above", reknit_recovery_loss_time(r, 4, 4 * MS) == 0);
    expect("reduced", decision.reduces && decision.reduce == 4 && decision.undone_count == 0);
    expect("nothing learned", reknit_recovery_wait(r) == UINT64_MAX);
    decision = ack(r, 54 * MS, 4);
    expect("undone", !decision.reduces && decision.undone_count == 1 && decision.undone[0] == 4);
    expect("learned", reknit_recovery_wait(r) == 65536 * 1000ull);
    expect("NULL", reknit_recovery_decide(r, 60 * MS, NULL) == REKNIT_INVALID);
    expect("its reason", !strcmp(reknit_error(), "the decision is NULL"));
    expect("no detector", reknit_recovery_on_sent(NULL, 1) == REKNIT_INVALID);
    reknit_recovery_free(r);
    reknit_recovery_free(NULL);
    return 0;
}
