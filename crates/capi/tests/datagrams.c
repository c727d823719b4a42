/* Datagrams between two stacks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reknit.h"

static reknit_stack *stacks[2];

static void expect(const char *what, int holds) {
    if (!holds) {
        fprintf(stderr, "%s; the error is `%s`\n", what, reknit_error());
        exit(1);
    }
}

static reknit_stack *host(const char *address) {
    reknit_stack *stack = reknit_stack_new(&address, 1, 1500, 1);
    expect("a stack", stack != NULL);
    return stack;
}

/* Carries all packets there and back. */
static void carry(void) {
    unsigned char packet[1500];
    ptrdiff_t len;
    for (int round = 0; round < 4; round++)
        while ((len = reknit_output(stacks[round % 2], 1, packet, sizeof packet)) > 0)
            expect("a packet arrives", reknit_input(stacks[1 - round % 2], 1, packet, (size_t)len) == REKNIT_OK);
}

static int has_event(reknit_stack *stack, int kind, uint64_t id) {
    reknit_event event;
    return reknit_next_event(stack, &event) == 1 && event.kind == kind && event.id == id;
}

int main(void) {
    char into[100], from[REKNIT_ADDRESS];
    reknit_stack *client = stacks[0] = host("10.0.0.1"), *server = stacks[1] = host("10.0.0.2");
    reknit_udp there = reknit_udp_bind(server, "0.0.0.0:53");
    reknit_udp here = reknit_udp_bind(client, "10.0.0.1:4000");
    expect("sockets", there && here);
    expect("the port is in use", !reknit_udp_bind(client, "10.0.0.1:4000"));
    expect("no address", reknit_udp_send(client, here, NULL, "x", 1) == REKNIT_INVALID);

    expect("sent", reknit_udp_send(client, here, "10.0.0.2:53", "question", 8) == REKNIT_OK);
    carry();
    expect("readable", has_event(server, REKNIT_UDP_READABLE, there));
    expect("received", reknit_udp_receive(server, there, into, sizeof into, from, sizeof from) == 8);
    expect("as it was sent", !memcmp(into, "question", 8) && !strcmp(from, "10.0.0.1:4000"));
    expect("no more", reknit_udp_receive(server, there, into, sizeof into, NULL, 0) == REKNIT_WOULD_BLOCK);

    expect("connected", reknit_udp_connect(client, here, "10.0.0.2:53") == REKNIT_OK);
    expect("answered", reknit_udp_send(server, there, from, "answer", 6) == REKNIT_OK);
    carry();
    expect("the answer", reknit_udp_receive(client, here, into, 3, from, sizeof from) == 6);
    expect("its sender", !memcmp(into, "ans", 3) && !strcmp(from, "10.0.0.2:53"));
    expect("its own address", reknit_udp_local(client, here, from, sizeof from) == REKNIT_OK && !strcmp(from, "10.0.0.1:4000"));

    expect("closed", reknit_udp_close(server, there) == REKNIT_OK && reknit_udp_close(server, there) == REKNIT_INVALID);
    expect("sent to the peer", reknit_udp_send(client, here, NULL, "x", 1) == REKNIT_OK);
    carry();
    expect("refused", reknit_udp_receive(client, here, into, sizeof into, NULL, 0) == REKNIT_ENDED);
    expect("why", !strcmp(reknit_error(), "connection refused: nobody listens at the destination"));

    int taken = 0;
    while (reknit_udp_send(client, here, NULL, into, sizeof into) == REKNIT_OK)
        taken++;
    expect("the send buffer is full", taken > 100 && !strcmp(reknit_error(), "would block"));
    carry();
    while (!has_event(client, REKNIT_UDP_WRITABLE, here))
        expect("writable", --taken > 0);
    reknit_stack_free(client);
    reknit_stack_free(server);
    return 0;
}
