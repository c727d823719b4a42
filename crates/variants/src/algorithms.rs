//! The algorithms that may fill each seam: one closed list for each, which files, help and schemas are made from; and the
//! composition of a variant, which has one algorithm for each seam, or several.
//!
//! A new algorithm is one entry. The comment of an entry is what users read about it; its name in files is that of the
//! entry in kebab case. Behind each list is what fills the seam in the base of all variants.

use reknit_tcp::Config;
use reknit_tcp::seams::{self, Plugins, ReceiverPlugins, Seam, SenderPlugins};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::{Algorithm, SeamAlgorithm, Unlisted};
use crate::base::spurious_response::Response;
use crate::base::{
    aimd, counted_pipe, cubic, delayed_ack, fixed_threshold, limited_transmit, newreno, no_timer, prr, reno,
    respond_at_once, rfc4015, rfc6298, sack, timeout, undo_limit,
};
use crate::bbr::{v1, v3};
use crate::limit::oracle;
use crate::linux::cubic::LinuxCubicConfig;
use crate::linux::fack::LinuxFackConfig;
use crate::linux::frto::LinuxFrtoConfig;
use crate::linux::prr::LinuxPrrConfig;
use crate::linux::rack::LinuxRackConfig;
use crate::linux::undo::{LinuxUndoConfig, LinuxUndoResponseConfig};
use crate::linux::{acks, receive_buffer, reduction, reordering, rto, send_buffer, transmit};
use crate::receiver::{juggler, lpc_receiver, paxson_rcv, yang};
use crate::reknit::detector;
use crate::requirement::Requirement;
use crate::slot::Slot;
use crate::threshold::rr::{self, dup_thresh, enhanced_sampling, rtt_histogram};
use crate::threshold::{ancr, blanton_allman, leung_ma, lpc_sender, ncr, rn};
use crate::time::{dcr, pr, pr_envelope, rack};
use crate::undo::{door, dsack_det, dsack_repeat, eifel, frto, retransmitted, rto_adaptk};
use crate::wait::{paxson_snd, time_delayed};

/// Defines the list of a seam: the algorithms with their parameters, and the `plain` ones, which have
/// neither parameters nor requirements, each with its plug-in. The plain ones are listed first.
macro_rules! algorithms {
    ($(#[$doc:meta])* $seam:ident {
        $($(#[$about:meta])* $name:ident($parameters:ty),)*
    } $(plain {
        $($(#[$plain_about:meta])* $plain:ident = $plugin:expr,)*
    })?) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum $seam {
            $($($(#[$plain_about])* $plain {},)*)?
            $($(#[$about])* $name($parameters),)*
            /// An algorithm that is not in this list.
            #[serde(skip)]
            Unlisted(Unlisted<dyn seams::$seam>),
        }

        impl SeamAlgorithm for $seam {
            type Plugin = dyn seams::$seam;

            fn build(&self) -> Box<Self::Plugin> {
                match self {
                    $($($seam::$plain {} => Box::new($plugin),)*)?
                    $($seam::$name(algorithm) => Algorithm::<Self::Plugin>::build(algorithm),)*
                    $seam::Unlisted(algorithm) => algorithm.build(),
                }
            }

            fn requirements(&self) -> &'static [Requirement] {
                match self {
                    $($($seam::$plain {} => &[],)*)?
                    $($seam::$name(algorithm) => Algorithm::<Self::Plugin>::requirements(algorithm),)*
                    $seam::Unlisted(algorithm) => algorithm.requirements,
                }
            }

            fn unlisted_name(&self) -> Option<&'static str> {
                if let $seam::Unlisted(algorithm) = self { Some(algorithm.name) } else { None }
            }
        }

        impl $seam {
            /// An algorithm that is not in this list: `build` creates the plug-in of each connection.
            pub fn unlisted(
                name: &'static str,
                build: impl Fn() -> Box<dyn seams::$seam> + Send + Sync + 'static,
            ) -> $seam {
                $seam::Unlisted(Unlisted::new(name, build))
            }
        }

        $(impl From<$parameters> for $seam {
            fn from(parameters: $parameters) -> $seam {
                $seam::$name(parameters)
            }
        })*
    };
}

/// The content of a seam that `one` algorithm fills, or any number of them; and the plug-ins for it.
macro_rules! content {
    (one $seam:ident) => { $seam };
    (many $seam:ident) => { Vec<$seam> };
    (build one $content:expr) => { $content.build() };
    (build many $content:expr) => { $content.iter().map(SeamAlgorithm::build).collect() };
}

/// Defines the list of each seam, and the [`Composition`].
macro_rules! composition {
    (
        sender { $($(#[$doc:meta])* $key:ident: $count:ident $seam:ident { $($list:tt)* } $(plain { $($plain:tt)* })? = $base:expr;)+ }
        receiver { $($(#[$rcv_doc:meta])* $rcv_key:ident: $rcv_count:ident $rcv_seam:ident { $($rcv_list:tt)* } = $rcv_base:expr;)+ }
    ) => {
        $(algorithms! { $(#[$doc])* $seam { $($list)* } $(plain { $($plain)* })? })+
        $(algorithms! { $(#[$rcv_doc])* $rcv_seam { $($rcv_list)* } })+

        /// An algorithm for each seam, and the options of the connection that the variant requires.
        #[derive(Clone, Debug)]
        pub struct Composition {
            $($(#[$doc])* pub $key: content!($count $seam),)+
            $($(#[$rcv_doc])* pub $rcv_key: content!($rcv_count $rcv_seam),)+
            /// False for variants that do not use SACK.
            pub sack: bool,
            /// Whether timestamps are offered, overriding the connection's options; `None` does not override them.
            pub timestamps: Option<bool>,
            /// Replaces the plug-ins that need SACK if the peer does not support it; `None` if no plug-in needs it.
            pub without_sack: Option<fn(&mut SenderPlugins)>,
            /// Sets options of the connection that belong to the variant; they override all other settings.
            pub options: Option<fn(&mut Config)>,
        }

        impl Default for Composition {
            /// The base of every variant: RFC 6675 on top of RFC 5681, RFC 3042 and RFC 6298.
            fn default() -> Composition {
                Composition {
                    $($key: $base,)+
                    $($rcv_key: $rcv_base,)+
                    sack: true,
                    timestamps: None,
                    without_sack: Some(newreno::without_sack),
                    options: None,
                }
            }
        }

        impl Composition {
            /// The plug-ins of one connection.
            pub fn build(&self) -> Plugins {
                Plugins {
                    sender: SenderPlugins { $($key: content!(build $count self.$key),)+ },
                    receiver: ReceiverPlugins { $($rcv_key: content!(build $rcv_count self.$rcv_key),)+ },
                    without_sack: self.without_sack.filter(|_| self.sack),
                }
            }

            pub(crate) fn slot(&self, seam: Seam) -> &dyn Slot {
                match seam {
                    $(Seam::$seam => &self.$key,)+
                    $(Seam::$rcv_seam => &self.$rcv_key,)+
                }
            }

            pub(crate) fn slot_mut(&mut self, seam: Seam) -> &mut dyn Slot {
                match seam {
                    $(Seam::$seam => &mut self.$key,)+
                    $(Seam::$rcv_seam => &mut self.$rcv_key,)+
                }
            }
        }
    };
}

composition! {
    sender {
        /// Which segments are lost.
        loss_detector: one LossDetector {
            /// Fast retransmit on the dupthresh-th duplicate ACK; a partial ACK shows another loss (RFC 6582).
            PartialAcks(newreno::PartialAcksConfig),
            /// Fast retransmit on the dupthresh-th duplicate ACK (RFC 5681 §3.2).
            CountedDuplicates(reno::CountedDuplicatesConfig),
            /// A segment is lost when enough data above it has been SACKed (RFC 6675 §4).
            SackedAbove(sack::SackedAboveConfig),
            /// A segment is lost if its hole is still open τ after the first duplicate ACK (TCP-DCR).
            DelayedResponse(dcr::DelayedResponseConfig),
            /// A segment is lost when it has been outstanding for `mxrtt` (TCP-PR).
            SegmentClocks(pr::SegmentClocksConfig),
            /// RACK-TLP.
            Rack(rack::RackConfig),
            /// Loss detection as implemented in Linux.
            LinuxRack(LinuxRackConfig),
            /// Loss detection as in Linux before RACK: FACK, early retransmit.
            LinuxFack(LinuxFackConfig),
            /// A segment is retransmitted when it is missing for longer than late segments usually are (reknit).
            LearnedLateness(detector::LearnedLatenessConfig),
            /// The simulator reports each loss.
            Oracle(oracle::OracleConfig),
        } = sack::SackedAboveConfig::default().into();

        /// How many duplicates mean loss.
        dup_thresh: one DupThresh {
            /// A dupthresh that never changes (RFC 5681 §3.2, RFC 6675 §2).
            Fixed(fixed_threshold::FixedConfig),
            /// Blanton and Allman's thresholds: INC, AVG, EWMA.
            BlantonAllman(blanton_allman::BlantonAllmanConfig),
            /// A moving average of reordering lengths plus their deviation (Leung and Ma).
            LeungMa(leung_ma::LeungMaConfig),
            /// Lee, Park and Choi at the sender: a threshold that depends on the number of paths.
            Paths(lpc_sender::PathsConfig),
            /// A threshold of a fraction of the outstanding data, and new data until it is reached (TCP-NCR).
            Ncr(ncr::NcrConfig),
            /// The largest relative extent of reordering so far, at most the threshold of TCP-NCR (TCP-aNCR).
            Ancr(ancr::AncrConfig),
            /// The threshold is larger while duplicate ACKs report reordering (RN-TCP).
            Notified(rn::NotifiedConfig),
            /// The duplicate threshold of RR-TCP.
            RrTcp(dup_thresh::RrTcpConfig),
            /// The threshold that the receiver advises (RR-TCP §6).
            Advised(rr::receiver::AdvisedConfig),
            /// The degree of reordering that Linux learns (`tcp_reordering`), in segments.
            LinuxReordering(reordering::LinuxReorderingConfig),
        } = fixed_threshold::FixedConfig::default().into();

        /// How much longer to wait.
        postponements: many Postponement {
            /// A fixed wait after the second duplicate ACK, at the sender.
            FixedWait(paxson_snd::FixedWaitConfig),
            /// Time-delayed fast retransmit: TIMEDEL, TIMEINC.
            TimeDelayed(time_delayed::TimeDelayedConfig),
        } = Vec::new();

        /// Whether the last reduction was spurious.
        spurious_detectors: many SpuriousDetector {
            /// Detects reordering, freezes the window, and undoes a recent reduction (TCP-DOOR).
            Door(door::DoorConfig),
            /// DSACK detection of spurious retransmissions.
            Dsack(dsack_det::DsackConfig),
            /// Detection by an echoed timestamp or retransmission bit (Eifel, RFC 3522).
            Eifel(eifel::EifelConfig),
            /// Detects a spurious reduction by DSACK, timestamps or F-RTO, as Linux does.
            LinuxUndo(LinuxUndoConfig),
        } = Vec::new();

        /// Which reductions may be undone.
        undo_limit: one UndoLimit {
            /// Every reduction may be undone.
            Unlimited(undo_limit::UnlimitedConfig),
            /// A reduction may be undone while there is no standing queue, and not too often.
            Bounded(undo_limit::BoundedConfig),
        } = undo_limit::UnlimitedConfig::default().into();

        /// The window after a spurious reduction.
        spurious_response: one SpuriousResponse {
            /// Restores cwnd and ssthresh, as Linux does.
            LinuxUndoResponse(LinuxUndoResponseConfig),
        } plain {
            /// Keep the reduced window.
            None = Response::None,
            /// Restore the old window at once.
            Instant = Response::Instant,
            /// Return to the old window by slow start.
            SlowStart = Response::SlowStart,
            /// The Eifel response (RFC 4015).
            Rfc4015 = Response::Rfc4015,
            /// Keep the halved window, and send at most three segments at once (F-RTO).
            Halve = Response::Halve,
            /// As `halve`, then return to the old window by slow start once DSACK proves the timeout spurious.
            HalveThenSlowStart = Response::HalveThenSlowStart,
            /// Restore the old window at once and continue fast recovery (TCP-DOOR).
            Restore = Response::Restore,
            /// Restore the old window if only the oldest segment was retransmitted (the original Eifel response).
            OldestOnly = Response::OldestOnly,
        } = SpuriousResponse::None {};

        /// The window after a loss.
        loss_response: one LossResponse {
            /// The window is reduced as soon as a loss is detected (RFC 5681 §3.1 and §3.2, RFC 6675 §5).
            AtOnce(respond_at_once::AtOnceConfig),
            /// The window is reduced from FlightSize before the disorder (TCP-NCR).
            FromBeforeDisorder(ncr::FromBeforeDisorderConfig),
            /// Half of the window with which the lost segment was sent (TCP-PR).
            WindowAtSending(pr::WindowAtSendingConfig),
            /// How Linux reduces the window after a loss.
            LinuxReduction(reduction::LinuxReductionConfig),
        } = respond_at_once::AtOnceConfig::default().into();

        /// How much fast recovery may send.
        fast_recovery: one FastRecovery {
            /// Sends while a count of transmissions less duplicate ACKs is below cwnd (Fall and Floyd).
            CountedPipe(counted_pipe::CountedPipeConfig),
            /// Inflates cwnd by a segment per duplicate ACK, and deflates it on partial ACKs (RFC 6582).
            Deflate(newreno::DeflateConfig),
            /// Proportional Rate Reduction (Mathis, Cardwell, Cheng, Dukkipati, RFC 9937, 2025).
            Prr(prr::PrrConfig),
            /// Inflates cwnd by a segment per duplicate ACK, until SND.UNA advances (RFC 5681 §3.2).
            Inflate(reno::InflateConfig),
            /// Sends while the estimated data in the network, the pipe, is below cwnd (RFC 6675 §5).
            Pipe(sack::PipeConfig),
            /// Sends while less is outstanding than cwnd allows, in every state (TCP-PR).
            Outstanding(pr::OutstandingConfig),
            /// Proportional rate reduction as implemented in Linux (Mathis, Cardwell, Cheng, Dukkipati, RFC 9937, 2025), counting in segments.
            LinuxPrr(LinuxPrrConfig),
        } = sack::PipeConfig::default().into();

        /// What to send after a timeout.
        timeout_recovery: one TimeoutRecovery {
            /// After a timeout everything outstanding is marked lost and retransmitted in slow start (RFC 5681 §3.1).
            Conventional(timeout::ConventionalConfig),
            /// Tests by sending new data whether a timeout was spurious (F-RTO).
            Frto(frto::FrtoConfig),
            /// What Linux sends after a timeout.
            LinuxFrto(LinuxFrtoConfig),
        } = timeout::ConventionalConfig::default().into();

        /// The retransmission timeout.
        rto_estimator: one RtoEstimator {
            /// The retransmission timeout of RFC 6298.
            Rfc6298(rfc6298::Rfc6298Config),
            /// The smoothed round-trip time of RFC 6298 without a retransmission timer, for detectors that have their own timer.
            NoTimer(no_timer::NoTimerConfig),
            /// The retransmission timeout of RFC 6298, made more conservative after a spurious timeout (Ludwig and Gurtov, RFC 4015, 2005, §3 steps 0 and 11).
            Rfc4015(rfc4015::Rfc4015Config),
            /// An RTO with an adaptive factor of the deviation.
            AdaptiveK(rto_adaptk::AdaptiveKConfig),
            /// Enhanced RTT sampling.
            EnhancedSampling(enhanced_sampling::EnhancedSamplingConfig),
            /// The retransmission timeout from a histogram of round-trip times.
            RttHistogram(rtt_histogram::RttHistogramConfig),
            /// The upper envelope of round-trip times of TCP-PR.
            RttEnvelope(pr_envelope::RttEnvelopeConfig),
            /// The retransmission timeout as computed by Linux.
            LinuxRto(rto::LinuxRtoConfig),
        } = rfc6298::Rfc6298Config::default().into();

        /// New data during disorder.
        limited_transmit: one LimitedTransmit {
            /// One new segment for each newly SACKed one, at most `windows` times cwnd beyond cwnd (RR-TCP).
            PerSack(limited_transmit::PerSackConfig),
            /// New data for everything that has left the network, until the pipe reaches cwnd.
            Pipe(limited_transmit::PipeLimitConfig),
            /// New data for everything that has left the network; while nothing arrives late, segments are sent in pairs, as Linux does.
            Pairs(limited_transmit::PairsConfig),
            /// A threshold of a fraction of the outstanding data, and new data until it is reached (TCP-NCR).
            Ncr(ncr::NcrConfig),
            /// New data for each SACKed segment, or for every second one, within cwnd (TCP-aNCR).
            Ancr(ancr::AncrTransmitConfig),
            /// Sends while less is outstanding than cwnd allows, in every state (TCP-PR).
            Outstanding(pr::OutstandingTransmitConfig),
            /// When Linux sends new data outside recovery.
            LinuxInFlight(transmit::LinuxInFlightConfig),
        } plain {
            /// No limited transmit.
            Off = limited_transmit::Off,
            /// One new segment for each of the first two duplicate ACKs (RFC 3042).
            Rfc3042 = limited_transmit::Rfc3042,
            /// As RFC 3042, but by RFC 6675 an ACK that advances SND.UNA and reports a hole is a duplicate too; here it is not,
            /// and the count starts again (ns-2).
            RepeatedAcks = limited_transmit::RepeatedAcks::default(),
            /// As RFC 3042, then one new segment for every second duplicate ACK (Blanton and Allman).
            EverySecond = limited_transmit::EverySecond,
            /// One new segment for each newly SACKed one, at most one window beyond cwnd (TCP-DCR).
            EverySack = limited_transmit::EverySack::default(),
        } = LimitedTransmit::Rfc3042 {};

        /// Growth and reduction of the window.
        congestion_control: one CongestionControl {
            /// Slow start, congestion avoidance and halving (RFC 5681 §3.1), by bytes acknowledged (RFC 3465) or by ACKs.
            Reno(aimd::RenoConfig),
            /// CUBIC (Xu, Ha, Rhee, Goel, Eggert; RFC 9438, 2023).
            Cubic(cubic::CubicConfig),
            /// Slow start and congestion avoidance, by segments acknowledged or SACKed (TCP-PR).
            PerSegment(pr::PerSegmentConfig),
            /// BBR version 1.
            Bbr1(v1::Bbr1Config),
            /// BBR version 3.
            Bbr(v3::BbrConfig),
            /// CUBIC as implemented in Linux (RFC 9438), counting in whole segments.
            LinuxCubic(LinuxCubicConfig),
        } = aimd::RenoConfig::default().into();

        /// How much of the written data is ready to be sent.
        send_buffers: many SendBuffer {
            /// The send buffer of Linux, which grows with the window (`ip-sysctl`).
            LinuxSendBuffer(send_buffer::LinuxSendBufferConfig),
        } = Vec::new();
    }

    receiver {
        /// When the receiver acknowledges.
        ack_policy: one AckPolicy {
            /// The receiver of RFC 5681 §4.2.
            Delayed(delayed_ack::DelayedConfig),
            /// When the Linux receiver sends ACKs.
            LinuxAcks(acks::LinuxAcksConfig),
            /// Delayed ACKs for out-of-order segments.
            DelayedDuplicates(lpc_receiver::DelayedDuplicatesConfig),
            /// A fixed wait before the second duplicate ACK, at the receiver.
            HeldDuplicates(paxson_rcv::HeldDuplicatesConfig),
            /// Segments above a gap are held below TCP (JUGGLER).
            Juggler(juggler::JugglerConfig),
            /// Withheld duplicate ACKs.
            Yang(yang::YangConfig),
        } = delayed_ack::DelayedConfig::default().into();

        /// How much of the receive buffer is used.
        receive_buffers: many ReceiveBuffer {
            /// How the receive window of Linux grows.
            LinuxReceiveBuffer(receive_buffer::LinuxReceiveBufferConfig),
        } = Vec::new();

        /// Header fields beyond the standard options.
        header_support: many HeaderSupport {
            /// TCP-DOOR: numbers for transmissions (TPSN) and for repeated ACKs (ADSN).
            Ordinals(door::OrdinalsConfig),
            /// Repeated DSACKs.
            DsackRepeat(dsack_repeat::DsackRepeatConfig),
            /// The retransmission bit.
            Retransmitted(retransmitted::RetransmittedConfig),
            /// Routers report drops in data segments, receivers report reordering in ACKs (RN-TCP).
            DropNotices(rn::DropNoticesConfig),
            /// The receiver measures reordering and advises a threshold (RR-TCP §6).
            AdviseDupThresh(rr::receiver::AdviseDupThreshConfig),
        } = Vec::new();
    }
}
