//! The task that moves packets between the device and the stack.
//!
//! It takes the lock once per batch of packets, not per packet: packets are read before it and written after it.

use std::sync::Arc;
use std::task::Waker;

use reknit_units::Duration;

use crate::alarm::Alarm;
use crate::device::Device;
use crate::frame::Frames;
use crate::network::Shared;
use crate::receive::receive;

/// The most packets that are written in one batch.
const BATCH: usize = 32;
/// The most packets that are read in one batch if the device joins segments to packets of up to 64 KiB.
const JOINED: usize = 32;
/// The most packets that are read in one batch otherwise: as many as stay in the first-level cache until their checksums are
/// verified and their payloads copied.
const PLAIN: usize = 24;
/// The least room for a packet: the MTU that IPv6 asks of each device.
const LEAST_MTU: usize = 1280;
/// The longest packet of a device with offload, with its virtio header.
const LARGEST: usize = (64 << 10) + 16;
/// After this many batches in a row, other tasks of the thread run.
const TURN: u32 = 8;
/// Until a deadline that is closer than this, the driver does not sleep: being woken takes about as long. Pacing has such
/// deadlines above 5 Gbit/s.
const NEAR: Duration = Duration::from_micros(100);
/// When the network is dropped, open connections have this long to send what is left and close.
const FAREWELL: Duration = Duration::from_secs(5);

/// Runs until the network and all of its sockets are dropped.
pub(crate) async fn run(shared: Arc<Shared>, device: Device, alarm: Alarm) {
    let mut end = End { shared, reason: "the runtime in which the network was started has ended".to_owned() };
    if let Err(error) = drive(&end.shared, &device, alarm).await {
        end.reason = crate::device::lost(&error);
    }
}

/// Wakes all waiting tasks when the driver ends, even if its runtime drops it.
struct End {
    shared: Arc<Shared>,
    reason: String,
}

impl Drop for End {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.failure = Some(std::mem::take(&mut self.reason));
        let accepting = std::mem::take(&mut state.accepting).into_values().flatten();
        let waiting = state.waiting.iter_mut().flat_map(|waiting| [waiting.read.take(), waiting.write.take()]);
        let wakers: Vec<Waker> = waiting.flatten().chain(accepting).collect();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}

async fn drive(shared: &Shared, device: &Device, mut alarm: Alarm) -> std::io::Result<()> {
    let mut arrived = Batch::new(device);
    let mut frames = Frames::default();
    let mut batches = 0;
    let mut ends = None;
    loop {
        let drained = arrived.read(device)?;
        let (more, wake_at) = {
            let mut state = shared.lock();
            let now = shared.now();
            receive(&mut state.stack, now, device.offload, arrived.packets());
            state.stack.on_timer(now);
            let more = frames.fill(&mut state.stack, now, device.offload, BATCH);
            state.dispatch();
            if state.is_abandoned {
                let ends = *ends.get_or_insert(now + FAREWELL);
                if state.stack.is_finished() && !more || now >= ends {
                    return Ok(());
                }
            }
            (more, state.stack.deadline())
        };
        for frame in frames.ready() {
            device.put(frame.bytes())?;
        }
        batches += 1;
        if more || !drained {
            if batches % TURN == 0 {
                tokio::task::yield_now().await;
            }
            continue;
        }
        let wake_at = ends.map_or(wake_at, |ends| wake_at.min(ends));
        let now = shared.now();
        if wake_at < now + NEAR {
            tokio::task::yield_now().await;
            continue;
        }
        tokio::select! {
            result = device.readable() => result?,
            () = shared.work.notified() => {}
            result = alarm.wait(now, wake_at) => result?,
        }
    }
}

/// Packets that were read together.
struct Batch {
    bytes: Vec<u8>,
    /// The room for each packet.
    largest: usize,
    lens: Vec<usize>,
}

impl Batch {
    fn new(device: &Device) -> Batch {
        let (largest, count) =
            if device.offload { (LARGEST, JOINED) } else { (usize::from(device.mtu).max(LEAST_MTU), PLAIN) };
        Batch { bytes: vec![0; count * largest], largest, lens: Vec::with_capacity(count) }
    }

    /// Reads what there is now. False if there may be more.
    fn read(&mut self, device: &Device) -> std::io::Result<bool> {
        self.lens.clear();
        for into in self.bytes.chunks_exact_mut(self.largest) {
            match device.take(into)? {
                Some(n) => self.lens.push(n),
                None => return Ok(true),
            }
        }
        Ok(false)
    }

    fn packets(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.largest).zip(&self.lens).map(|(bytes, len)| &bytes[..*len])
    }
}
