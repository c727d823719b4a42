//! The algorithms of a variant, one for each seam.

use std::sync::LazyLock;

use reknit_config::KeyError;
use reknit_tcp::Config;
use reknit_tcp::seams::{Plugins, ReceiverPlugins, SenderPlugins};
use toml::Value;

use crate::algorithms::{
    AckPolicy, Choice, CongestionControl, DupThresh, FastRecovery, HeaderSupport, LimitedTransmit, LossDetector,
    LossResponse, Postponement, ReceiveBuffer, RtoEstimator, SendBuffer, SpuriousDetector, SpuriousResponse,
    TimeoutRecovery, UndoLimit,
};
use crate::base::{aimd, delayed_ack, fixed_threshold, newreno, respond_at_once, rfc6298, sack, timeout, undo_limit};
use crate::parameter::Description;
use crate::rule::{Need, Rule};
use crate::seam::Seam;
use crate::slot::{Part, Slot};

/// An algorithm for each seam, and the options of the connection that the variant requires. [`Seam::question`] says what
/// each decides.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields of the seams are described by their types")]
pub struct Composition {
    pub loss_detector: LossDetector,
    pub dup_thresh: DupThresh,
    pub postponements: Vec<Postponement>,
    pub spurious_detectors: Vec<SpuriousDetector>,
    pub undo_limit: UndoLimit,
    pub spurious_response: SpuriousResponse,
    pub loss_response: LossResponse,
    pub fast_recovery: FastRecovery,
    pub timeout_recovery: TimeoutRecovery,
    pub rto_estimator: RtoEstimator,
    pub limited_transmit: LimitedTransmit,
    pub congestion_control: CongestionControl,
    pub send_buffers: Vec<SendBuffer>,
    pub ack_policy: AckPolicy,
    pub receive_buffers: Vec<ReceiveBuffer>,
    pub header_support: Vec<HeaderSupport>,
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
            loss_detector: sack::SackedAboveConfig::default().into(),
            dup_thresh: fixed_threshold::FixedConfig::default().into(),
            postponements: Vec::new(),
            spurious_detectors: Vec::new(),
            undo_limit: undo_limit::UnlimitedConfig::default().into(),
            spurious_response: SpuriousResponse::None {},
            loss_response: respond_at_once::AtOnceConfig::default().into(),
            fast_recovery: sack::PipeConfig::default().into(),
            timeout_recovery: timeout::ConventionalConfig::default().into(),
            rto_estimator: rfc6298::Rfc6298Config::default().into(),
            limited_transmit: LimitedTransmit::Rfc3042 {},
            congestion_control: aimd::RenoConfig::default().into(),
            send_buffers: Vec::new(),
            ack_policy: delayed_ack::DelayedConfig::default().into(),
            receive_buffers: Vec::new(),
            header_support: Vec::new(),
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
            sender: SenderPlugins {
                loss_detector: self.loss_detector.build(),
                dup_thresh: self.dup_thresh.build(),
                postponements: self.postponements.iter().map(Choice::build).collect(),
                spurious_detectors: self.spurious_detectors.iter().map(Choice::build).collect(),
                undo_limit: self.undo_limit.build(),
                spurious_response: self.spurious_response.build(),
                loss_response: self.loss_response.build(),
                fast_recovery: self.fast_recovery.build(),
                timeout_recovery: self.timeout_recovery.build(),
                rto_estimator: self.rto_estimator.build(),
                limited_transmit: self.limited_transmit.build(),
                congestion_control: self.congestion_control.build(),
                send_buffers: self.send_buffers.iter().map(Choice::build).collect(),
            },
            receiver: ReceiverPlugins {
                ack_policy: self.ack_policy.build(),
                receive_buffers: self.receive_buffers.iter().map(Choice::build).collect(),
                header_support: self.header_support.iter().map(Choice::build).collect(),
            },
            without_sack: self.without_sack.filter(|_| self.sack),
        }
    }

    fn slot(&self, seam: Seam) -> &dyn Slot {
        match seam {
            Seam::LossDetector => &self.loss_detector,
            Seam::DupThresh => &self.dup_thresh,
            Seam::Postponement => &self.postponements,
            Seam::SpuriousDetector => &self.spurious_detectors,
            Seam::UndoLimit => &self.undo_limit,
            Seam::SpuriousResponse => &self.spurious_response,
            Seam::LossResponse => &self.loss_response,
            Seam::FastRecovery => &self.fast_recovery,
            Seam::TimeoutRecovery => &self.timeout_recovery,
            Seam::RtoEstimator => &self.rto_estimator,
            Seam::LimitedTransmit => &self.limited_transmit,
            Seam::CongestionControl => &self.congestion_control,
            Seam::SendBuffer => &self.send_buffers,
            Seam::AckPolicy => &self.ack_policy,
            Seam::ReceiveBuffer => &self.receive_buffers,
            Seam::HeaderSupport => &self.header_support,
        }
    }

    fn slot_mut(&mut self, seam: Seam) -> &mut dyn Slot {
        match seam {
            Seam::LossDetector => &mut self.loss_detector,
            Seam::DupThresh => &mut self.dup_thresh,
            Seam::Postponement => &mut self.postponements,
            Seam::SpuriousDetector => &mut self.spurious_detectors,
            Seam::UndoLimit => &mut self.undo_limit,
            Seam::SpuriousResponse => &mut self.spurious_response,
            Seam::LossResponse => &mut self.loss_response,
            Seam::FastRecovery => &mut self.fast_recovery,
            Seam::TimeoutRecovery => &mut self.timeout_recovery,
            Seam::RtoEstimator => &mut self.rto_estimator,
            Seam::LimitedTransmit => &mut self.limited_transmit,
            Seam::CongestionControl => &mut self.congestion_control,
            Seam::SendBuffer => &mut self.send_buffers,
            Seam::AckPolicy => &mut self.ack_policy,
            Seam::ReceiveBuffer => &mut self.receive_buffers,
            Seam::HeaderSupport => &mut self.header_support,
        }
    }

    /// The algorithms that fill `seam`, as users see them.
    pub fn parts(&self, seam: Seam) -> Vec<Part> {
        self.slot(seam).parts()
    }

    /// The algorithms of all seams, as users see them.
    pub fn all_parts(&self) -> impl Iterator<Item = (Seam, Part)> {
        Seam::ALL.into_iter().flat_map(|seam| self.parts(seam).into_iter().map(move |part| (seam, part)))
    }

    /// Replaces what fills `seam` by what `value` describes, as in a variant file.
    ///
    /// # Errors
    /// If `value` is invalid; the error names the key and what is allowed.
    pub fn fill(&mut self, seam: Seam, value: Value) -> Result<(), KeyError> {
        self.slot_mut(seam).fill(seam, value)
    }

    /// The options of the connection with the changes that this variant requires.
    #[must_use]
    pub fn configure(&self, mut config: Config) -> Config {
        if let Some(set) = self.options {
            set(&mut config);
        }
        config.sack &= self.sack;
        config.timestamps = self.timestamps.unwrap_or(config.timestamps);
        config.dsack &= config.sack;
        config
    }

    /// Chooses again which plug-ins replace those that need SACK; call it after algorithms were changed. A detector that works
    /// without SACK stays: it may have the only timer. If it is replaced, so is an estimator that leaves the timer to it.
    pub fn settle(&mut self) {
        let needs_sack = |rules: &[Rule]| rules.iter().any(|rule| rule.needs(Need::Sack));
        let depends_on = |rule: &Rule| matches!(rule, Rule::Only(Seam::LossDetector, _));
        let has_timer = !self.rto_estimator.rules().iter().any(depends_on);
        self.without_sack = match (needs_sack(self.loss_detector.rules()), needs_sack(self.fast_recovery.rules())) {
            (true, _) if !has_timer => Some(newreno::with_its_timer),
            (true, _) => self.without_sack.or(Some(newreno::without_sack)),
            (false, true) => Some(newreno::recovery_without_sack),
            (false, false) => None,
        };
    }
}

/// The algorithms that may fill `seam`.
pub fn algorithms(seam: Seam) -> &'static [Description] {
    static ALGORITHMS: LazyLock<[Vec<Description>; Seam::ALL.len()]> = LazyLock::new(|| {
        let composition = Composition::default();
        Seam::ALL.map(|seam| composition.slot(seam).descriptions())
    });
    &ALGORITHMS[seam as usize]
}

/// What users read about the algorithm with this name; none if it is not in the list of `seam`.
pub fn algorithm(seam: Seam, name: &str) -> Option<&'static Description> {
    algorithms(seam).iter().find(|known| known.name == name)
}
