/* The example of reknit-recovery's documentation, packet 4 is 30 ms late, and what it does not show. */
#include <stdio.h>
#include <stdlib.h>

#include "reknit_recovery.h"

#define MS 1000000ull

static void expect(const char *what, int holds) {
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

static reknit_decision decide(reknit_recovery *r, uint64_t now) {
    reknit_decision decision;
    expect("decide", reknit_recovery_decide(r, now, &decision) == 0);
    return decision;
}

static reknit_decision ack(reknit_recovery *r, uint64_t now, uint64_t number) {
    reknit_recovery_on_acked_range(r, now, number, number);
    if (number != 4)
        reknit_recovery_on_acked(r, now, number);
    reknit_recovery_on_rtt(r, 20 * MS, 20 * MS);
    if (number == 7)
        reknit_recovery_on_lost(r, now, 4);
    return decide(r, now);
}

/* Packet 4 has been declared lost, and the window reduced. */
static reknit_recovery reduced(void) {
    reknit_recovery r;
    reknit_decision decision = {0};
    expect("init", reknit_recovery_init(&r, MS, 16) == 0);
    for (uint64_t n = 0; n < 30; n++)
        reknit_recovery_on_sent(&r, n);
    for (uint64_t n = 0; n < 4; n++)
        decision = ack(&r, (20 + n) * MS, n);
    expect("nothing is missing", !decision.reduces && reknit_recovery_loss_time(&r, 4, 4 * MS) == UINT64_MAX);
    ack(&r, 25 * MS, 5);
    expect("9/8 of the round trip", reknit_recovery_loss_time(&r, 4, 4 * MS) == 26 * MS + MS / 2);
    ack(&r, 26 * MS, 6);
    decision = ack(&r, 27 * MS, 7);
    expect("three packets above", reknit_recovery_loss_time(&r, 4, 4 * MS) == 0);
    expect("reduced", decision.reduces && decision.reduce == 4 && decision.undone_count == 0);
    expect("undecided", reknit_recovery_is_undecided(&r) == 1 && reknit_recovery_wait(&r) == UINT64_MAX);
    return r;
}

int main(void) {
    const reknit_recovery start = reduced();

    reknit_recovery r = start;
    reknit_decision decision = ack(&r, 54 * MS, 4);
    expect("undone", !decision.reduces && decision.undone_count == 1 && decision.undone[0] == 4);
    expect("learned", reknit_recovery_wait(&r) == 65536 * 1000ull && reknit_recovery_is_undecided(&r) == 0);
    expect("not in the copy", reknit_recovery_wait(&start) == UINT64_MAX);

    r = start;
    expect("the same event", reknit_recovery_on_marked(&r, 7) == 0);
    expect("marked: not undone", ack(&r, 54 * MS, 4).undone_count == 0);
    expect("the next event", reknit_recovery_on_marked(&r, 30) == 1);

    r = start;
    expect("settle", reknit_recovery_settle(&r) == 0);
    expect("settled: not undone", ack(&r, 54 * MS, 4).undone_count == 0);

    r = start;
    expect("new path", reknit_recovery_on_new_path(&r) == 0);
    reknit_recovery_on_lost(&r, 60 * MS, 8);
    expect("an old packet", !decide(&r, 60 * MS).reduces);

    expect("NULL", reknit_recovery_decide(&r, 60 * MS, NULL) < 0 && reknit_recovery_init(NULL, MS, 16) < 0);
    expect("no detector", reknit_recovery_on_sent(NULL, 1) < 0 && reknit_recovery_wait(NULL) == UINT64_MAX);
    return 0;
}
