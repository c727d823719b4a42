//! What the SYNs of both ends agree on: segment size, window scale, timestamps, SACK, ECN, experimental features (RFC 9293
//! §3.7.1, RFC 7323 §2 and §3.2, RFC 2018 §2, RFC 3168 §6.1.1).

use crate::config::Config;
use crate::experiment::Features;
use crate::segment::{Flags, Segment};

/// Maximum segment size of a peer that announces none (RFC 9293 §3.7.1).
const DEFAULT_MSS: u16 = 536;
/// Largest window shift (RFC 7323 §2.3).
const MAX_SHIFT: u8 = 14;

/// What we offer; once the peer's SYN has arrived, what both ends support.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Negotiation {
    /// The MSS that the peer's SYN announced.
    peer_mss: u16,
    /// The largest segment that the path is known to carry.
    path_mss: u16,
    peer_shift: Option<u8>,
    /// Snd.Wind.Shift (RFC 7323 §2.3), of the window in segments of the peer.
    snd_shift: u8,
    timestamps: bool,
    sack: bool,
    ecn: bool,
    features: Features,
}

impl Negotiation {
    pub(super) fn new(config: &Config, offered: Features) -> Negotiation {
        Negotiation {
            peer_mss: DEFAULT_MSS,
            path_mss: u16::MAX,
            peer_shift: None,
            snd_shift: 0,
            timestamps: config.timestamps,
            sack: config.sack,
            ecn: config.ecn,
            features: offered,
        }
    }

    /// Notes the options of the peer's SYN; options that it does not offer are off.
    pub(super) fn on_syn(&mut self, segment: &Segment, min_mss: u16) {
        let options = &segment.options;
        self.peer_mss = options.mss.unwrap_or(DEFAULT_MSS).max(min_mss);
        self.peer_shift = options.window_scale.map(|shift| shift.min(MAX_SHIFT));
        self.timestamps &= options.timestamps.is_some();
        self.sack &= options.sack_permitted;
        self.features = self.features.and(options.experiment.features.unwrap_or(Features::NONE));
        self.agree_on_ecn(segment);
    }

    /// An active opener sets ECE and CWR, and its peer answers with ECE alone. Any SYN with other flags, even a
    /// retransmitted one, turns ECN off (RFC 3168 §6.1.1).
    pub(super) fn agree_on_ecn(&mut self, syn: &Segment) {
        self.ecn &= syn.flags.has(Flags::ECE) && (syn.flags.has(Flags::CWR) != syn.flags.has(Flags::ACK));
    }

    /// The handshake is complete: windows are scaled from now on, if both ends have offered it (RFC 7323 §2.2).
    pub(super) fn begin_to_scale(&mut self) {
        self.snd_shift = self.peer_shift.unwrap_or(0);
    }

    /// The path does not carry larger segments than `mss`, options included; or it does carry these.
    pub(super) fn set_path_mss(&mut self, mss: u16) {
        self.path_mss = mss;
    }

    /// The largest segment, options included, that both ends and the path accept.
    pub(super) fn mss(&self, config: &Config) -> u16 {
        config.mss.min(self.peer_mss).min(self.path_mss)
    }

    /// The MSS that the peer's SYN announced.
    pub(super) fn peer_mss(&self) -> u16 {
        self.peer_mss
    }

    /// The largest segment that the path is known to carry; [`u16::MAX`] if no limit is known.
    pub(super) fn path_mss(&self) -> u16 {
        self.path_mss
    }

    /// True if the peer's SYN had a window shift, so that ours may have one, too.
    pub(super) fn scales(&self) -> bool {
        self.peer_shift.is_some()
    }

    /// Snd.Wind.Shift.
    pub(super) fn snd_shift(&self) -> u8 {
        self.snd_shift
    }

    pub(super) fn timestamps(&self) -> bool {
        self.timestamps
    }

    pub(super) fn sack(&self) -> bool {
        self.sack
    }

    pub(super) fn ecn(&self) -> bool {
        self.ecn
    }

    pub(super) fn features(&self) -> Features {
        self.features
    }
}
