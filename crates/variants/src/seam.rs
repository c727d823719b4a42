//! The seams: the decisions that algorithms make.

use std::fmt;

/// A decision that algorithms make, named as the trait of its plug-ins in [`reknit_tcp::seams`]. In a variant file each seam
/// is a table with its [key](Seam::key).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "the traits describe them, and `Seam::question` in a few words")]
pub enum Seam {
    LossDetector,
    DupThresh,
    Postponement,
    SpuriousDetector,
    UndoLimit,
    SpuriousResponse,
    LossResponse,
    FastRecovery,
    TimeoutRecovery,
    RtoEstimator,
    LimitedTransmit,
    CongestionControl,
    SendBuffer,
    AckPolicy,
    ReceiveBuffer,
    HeaderSupport,
}

/// Exactly one algorithm fills the seam.
const ONE: bool = false;
/// Any number of algorithms fills the seam.
const MANY: bool = true;

/// The key of each seam, what it decides, and how many algorithms fill it.
const SEAMS: [(Seam, &str, &str, bool); 16] = [
    (Seam::LossDetector, "loss_detector", "which segments are lost", ONE),
    (Seam::DupThresh, "dup_thresh", "how many duplicates mean loss", ONE),
    (Seam::Postponement, "postponements", "how much longer to wait", MANY),
    (Seam::SpuriousDetector, "spurious_detectors", "whether the last reduction was spurious", MANY),
    (Seam::UndoLimit, "undo_limit", "which reductions may be undone", ONE),
    (Seam::SpuriousResponse, "spurious_response", "the window after a spurious reduction", ONE),
    (Seam::LossResponse, "loss_response", "the window after a loss", ONE),
    (Seam::FastRecovery, "fast_recovery", "how much fast recovery may send", ONE),
    (Seam::TimeoutRecovery, "timeout_recovery", "what to send after a timeout", ONE),
    (Seam::RtoEstimator, "rto_estimator", "the retransmission timeout", ONE),
    (Seam::LimitedTransmit, "limited_transmit", "new data during disorder", ONE),
    (Seam::CongestionControl, "congestion_control", "growth and reduction of the window", ONE),
    (Seam::SendBuffer, "send_buffers", "how much of the written data is ready to be sent", MANY),
    (Seam::AckPolicy, "ack_policy", "when the receiver acknowledges", ONE),
    (Seam::ReceiveBuffer, "receive_buffers", "how much of the receive buffer is used", MANY),
    (Seam::HeaderSupport, "header_support", "header fields beyond the standard options", MANY),
];

impl Seam {
    /// All of them, the sender's first.
    pub const ALL: [Seam; SEAMS.len()] = {
        let mut all = [Seam::LossDetector; SEAMS.len()];
        let mut i = 0;
        while i < all.len() {
            all[i] = SEAMS[i].0;
            assert!(all[i] as usize == i, "the table has the order of the enum");
            i += 1;
        }
        all
    };

    /// Its name in variant files.
    pub const fn key(self) -> &'static str {
        SEAMS[self as usize].1
    }

    /// What it decides.
    pub const fn question(self) -> &'static str {
        SEAMS[self as usize].2
    }

    /// True if any number of algorithms may fill it, including none.
    pub const fn takes_many(self) -> bool {
        SEAMS[self as usize].3
    }
}

impl fmt::Display for Seam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.key())
    }
}
