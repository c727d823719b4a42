/* Wrong arguments give errors, never a crash. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reknit.h"

static void expect(const char *text, int holds) {
    if (!holds || strcmp(reknit_error(), text)) {
        fprintf(stderr, "expected `%s`, the error is `%s`\n", text, reknit_error());
        exit(1);
    }
}

int main(void) {
    const char *addresses[] = {"10.0.0.2"}, *wrong[] = {"ten"};
    char buffer[10];
    reknit_info info;
    reknit_event event;
    expect("", 1);
    expect("a stack needs at least one address", !reknit_stack_new(NULL, 1, 1500, 0));
    expect("`ten` is not an IP address; write 10.0.0.2 or fd00::2", !reknit_stack_new(wrong, 1, 1500, 0));
    expect("mtu = 10: must be from 576 to 65535 bytes", !reknit_stack_new(addresses, 1, 10, 0));
    expect("length = 2305843009213693952 of the list: must be at most 1152921504606846975",
           !reknit_stack_new(addresses, (size_t)1 << 61, 1500, 0));
    expect("the stack is NULL", reknit_input(NULL, 0, buffer, 1) == REKNIT_INVALID);
    reknit_stack_free(NULL);

    reknit_stack *stack = reknit_stack_new(addresses, 1, 1500, 1);
    expect("length = 18446744073709551615 of the bytes: must be at most 9223372036854775807",
           reknit_input(stack, 1, buffer, (size_t)-1) == REKNIT_INVALID);
    expect("the bytes are NULL", reknit_input(stack, 1, NULL, 5) == REKNIT_INVALID);
    expect("the address is NULL", reknit_connect(stack, 1, NULL) == 0);
    expect("`10.0.0.1` is not an address with a port; write 10.0.0.2:80 or [fd00::2]:80",
           reknit_connect(stack, 1, "10.0.0.1") == 0);
    expect("10.0.0.9:80 is not an address of this stack; it has 10.0.0.2", reknit_listen(stack, "10.0.0.9:80", 1) == 0);
    expect("no such socket: it was closed", reknit_read(stack, 1, 77, buffer, sizeof buffer) == REKNIT_INVALID);
    expect("no such socket: it was closed", reknit_write(stack, 0, buffer, 1) == REKNIT_INVALID);
    expect("no such socket: it was closed", reknit_get_info(stack, 1, 77, &info) == REKNIT_INVALID);
    if (reknit_use_variant(stack, "rino") != REKNIT_INVALID || !strstr(reknit_error(), "unknown variant `rino`"))
        expect("unknown variant", 0);
    expect("options: min_rto = 0 ns: must be at least 10 us and at most max_rto",
           reknit_use_options(stack, "min_rto = '0 s'") == REKNIT_INVALID);
    if (reknit_use_options(stack, "nagel = false") != REKNIT_INVALID || !strstr(reknit_error(), "unknown field `nagel`"))
        expect("unknown field", 0);
    if (reknit_use_options(stack, "nagle = false\nmin_rto = '1 s'") != REKNIT_OK)
        expect("", 0);
    if (reknit_use_variant_toml(stack, "name = 'mine'\nbase = 'rack'\n[congestion_control]\nalgorithm = 'reno'\n") != REKNIT_OK)
        expect("", 0);

    char text[REKNIT_ADDRESS];
    reknit_listener listener = reknit_listen(stack, "10.0.0.2:80", 1);
    if (reknit_listening_on(stack, listener, text, sizeof text) || strcmp(text, "10.0.0.2:80"))
        expect("the listener's address", 0);
    expect("size = 11: the address needs 12 bytes", reknit_listening_on(stack, listener, text, 11) == REKNIT_INVALID);
    expect("the buffer is NULL", reknit_listening_on(stack, listener, NULL, 64) == REKNIT_INVALID);
    expect("no such socket: it was closed", reknit_remote(stack, 77, text, sizeof text) == REKNIT_INVALID);
    expect("no such socket: it was closed", reknit_set_linger(stack, 77, 0) == REKNIT_INVALID);
    expect("10.0.0.9:0 is not an address of this stack; it has 10.0.0.2",
           reknit_connect_from(stack, 1, "10.0.0.9:0", "10.0.0.1:80") == 0);

    reknit_socket sock = reknit_connect_from(stack, 1, "10.0.0.2:4000", "10.0.0.1:80");
    if (reknit_local(stack, sock, text, sizeof text) || strcmp(text, "10.0.0.2:4000"))
        expect("the local address", 0);
    if (reknit_remote(stack, sock, text, sizeof text) || strcmp(text, "10.0.0.1:80"))
        expect("the remote address", 0);
    if (reknit_set_linger(stack, sock, UINT64_MAX) || reknit_set_send_buffer(stack, sock, 100000))
        expect("options of an open socket", 0);
    if (reknit_get_info(stack, 1, sock, &info) || info.snd_nxt || info.busy)
        expect("nothing was sent", 0);
    unsigned char packet[1500];
    if (!sock || reknit_output(stack, 1, packet, sizeof packet) < 40 || reknit_output(stack, 1, packet, sizeof packet))
        expect("one SYN", 0);
    expect("would block", reknit_read(stack, 1, sock, buffer, sizeof buffer) == REKNIT_WOULD_BLOCK);
    if (reknit_next_event(stack, &event) || reknit_abort(stack, 2, sock) || reknit_output(stack, 2, packet, sizeof packet))
        expect("nothing is sent", 0);
    if (reknit_next_event(stack, &event) != 1 || event.id != sock)
        expect("it has ended", 0);
    expect("connection aborted", reknit_write(stack, sock, buffer, 1) == REKNIT_ENDED);
    expect("connection aborted", reknit_delivered(stack, sock) == REKNIT_ENDED);
    uint64_t connections, bytes;
    expect("", reknit_undelivered(stack, &connections, &bytes) == REKNIT_OK && connections == 0 && bytes == 0);
    expect("", reknit_is_delivering(stack) == 0);
    expect("no such socket: it was closed", reknit_delivered(stack, 77) == REKNIT_INVALID);
    expect("the place for the result is NULL", reknit_undelivered(stack, NULL, &bytes) == REKNIT_INVALID);
    expect("", reknit_finish_all(stack, 3) == REKNIT_OK);
    reknit_close(stack, 3, sock);
    reknit_output(stack, 3, packet, sizeof packet);
    expect("no such socket: it was closed", reknit_write(stack, sock, buffer, 1) == REKNIT_INVALID);
    reknit_stack_free(stack);
    return 0;
}
