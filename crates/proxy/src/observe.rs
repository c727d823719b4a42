//! A thread that sees the packets of compared connections.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use reknit_host::{ANY, PacketSocket};

use crate::goodput::{By, Comparison, Total, filter};
use crate::settings::{BadLeg, Listener, Settings};
use crate::steering::PortClasses;
use reknit_host::service::Line;

/// What the thread shares.
struct State {
    comparison: Comparison,
    /// Those whose clients are on the bad leg.
    listeners: Vec<Listener>,
}

/// Compares connections until it is dropped; none if nothing is left to the kernel.
pub(crate) struct Observer {
    state: Option<Arc<Mutex<State>>>,
    stop: Arc<AtomicBool>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn of_clients(settings: &Settings) -> Vec<Listener> {
    settings.listeners.iter().filter(|listener| listener.bad_leg == BadLeg::Clients).cloned().collect()
}

impl Observer {
    /// Starts the thread. If packets cannot be seen, nothing is compared, and the log says why.
    pub(crate) fn start(settings: &Settings) -> Observer {
        let stop = Arc::new(AtomicBool::new(false));
        let Some(classes) = PortClasses::for_settings(settings) else { return Observer { state: None, stop } };
        let socket = match PacketSocket::open_filtered(ANY, &mut filter(classes)) {
            Ok(socket) => socket,
            Err(error) => {
                Line::new("comparison").with("error", error).write();
                return Observer { state: None, stop };
            }
        };
        let state = State { comparison: Comparison::new(classes), listeners: of_clients(settings) };
        let state = Arc::new(Mutex::new(state));
        let (shared, is_over) = (state.clone(), stop.clone());
        thread::spawn(move || {
            let ended = socket.run(&mut |packets| {
                let State { comparison, listeners } = &mut *lock(&shared);
                let takes = |address: SocketAddr| listeners.iter().any(|listener| listener.takes(address));
                for packet in packets {
                    comparison.on_packet(packet.at.unwrap_or(0), packet.bytes, packet.original_len, takes);
                }
                !is_over.load(Ordering::Relaxed)
            });
            if let Err(error) = ended {
                Line::new("comparison").with("error", error).write();
            }
        });
        Observer { state: Some(state), stop }
    }

    /// The listeners have changed.
    pub(crate) fn follow(&self, settings: &Settings) {
        if let Some(state) = &self.state {
            lock(state).listeners = of_clients(settings);
        }
    }

    /// What the kernel's senders have reached for clients of this listener, and what ours have.
    pub(crate) fn compare(&self, listener: &Listener) -> [(&'static str, Total); 2] {
        [("kernel", By::Kernel), ("proxy", By::Proxy)].map(|(name, by)| {
            let total = self.state.as_ref().map(|state| lock(state).comparison.total(by, |to| listener.takes(to)));
            (name, total.unwrap_or_default())
        })
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
