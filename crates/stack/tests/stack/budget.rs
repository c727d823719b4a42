//! Transfers with hardly any memory.

use reknit_stack::{ListenOptions, Options, Stack};
use reknit_units::{Bytes, Duration};

use crate::pair::{CLIENT, Echo, Pair, SERVER, WILD, addresses};

/// A pair whose stacks may have so much memory.
fn with_memory(most: u64) -> Pair {
    let mut pair = Pair::new(WILD, 3);
    for end in [CLIENT, SERVER] {
        let addresses = vec![addresses(end, false)];
        let options = Options { addresses, max_memory: Bytes(most), ..Options::default() };
        pair.stacks[end] = Stack::new(pair.now, options, [end as u8 + 1; 32]);
    }
    pair
}

#[test]
fn transfers_work_however_little_memory_there_is() {
    for most in [0, 20_000, 100_000, 1_000_000] {
        let mut pair = with_memory(most);
        pair.listen(&ListenOptions::default());
        let mut echo = Echo::new(50_000);
        for _ in 0..10 {
            let id = pair.connect();
            echo.add(id);
        }
        let until = pair.now + Duration::from_secs(3600);
        while echo.done() < 10 && pair.step(until) {
            echo.react(&mut pair);
            let used = pair.server().memory().0.max(pair.client().memory().0);
            assert!(used <= most + 10 * 16_384, "{used} bytes of {most}");
        }
        // Sockets that were closed before everything was acknowledged may have given way.
        let resets = pair.server().counters().memory_resets + pair.client().counters().memory_resets;
        assert!(echo.done() as u64 + resets >= 10, "{most} bytes, {resets} resets: {:?}", echo.failures);
        assert!(resets == 0 || most == 100_000, "{most} bytes: {resets} resets");
        pair.run_for(Duration::from_secs(300));
        assert_eq!((pair.server().memory(), pair.client().memory()), (Bytes::ZERO, Bytes::ZERO));
    }
}
