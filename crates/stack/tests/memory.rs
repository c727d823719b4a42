//! What sockets cost in memory: what the kernel says that the process has.

#[path = "../benches/scale/pair.rs"]
mod pair;

use std::sync::{Mutex, PoisonError};

use pair::Pair;
use reknit_units::Duration;

/// The tests share their process's memory.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Enough that what a stack itself keeps, about 3 MB, hardly counts.
const CONNECTIONS: usize = 10_000;
const SYNS: u32 = 1_000_000;

/// Bytes.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().split(' ').next().unwrap().parse::<usize>().unwrap() * 1024
}

#[test]
fn an_idle_connection_takes_less_than_4_kib() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // All pairs are kept, so that none uses what another has released.
    let mut pairs = Vec::new();
    for variant in ["linux", "reknit", "sack", "bbr1", "bbr"] {
        let before = memory();
        let mut pair = Pair::new(CONNECTIONS, variant);
        pair.idle(Duration::from_secs(5));
        let opened = (memory() - before) / (2 * CONNECTIONS);
        assert!((1000..4096).contains(&opened), "{variant}: {opened} bytes when just opened");
        pair.transfer(20_000);
        pair.idle(Duration::from_secs(5));
        let used = (memory() - before) / (2 * CONNECTIONS);
        assert!((1000..4096).contains(&used), "{variant}: {used} bytes after a transfer");
        pairs.push(pair);
    }
}

#[test]
fn a_flood_of_a_million_syns_takes_no_memory_and_keeps_nobody_out() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut pair = Pair::new(0, "reknit");
    let (mut before, mut honest) = (0, 0);
    for n in 0..SYNS {
        if n == SYNS / 10 {
            before = memory();
        }
        pair.take_syn(n);
        if n % (SYNS / 100) == 0 {
            honest += u32::from(pair.visit());
        }
    }
    let grown = memory().saturating_sub(before);
    assert!(grown < 256 << 10, "{grown} bytes");
    assert_eq!(honest, 100);
}
