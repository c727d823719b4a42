//! A variant's insides: one part for each seam.

use std::fmt::Debug;
use std::sync::Arc;

use reknit_tcp::Config;
use reknit_tcp::seams::{
    AckPolicy, CongestionControl, DupThresh, FastRecovery, HeaderSupport, LimitedTransmit, LossDetector, LossResponse,
    Plugins, Postponement, RtoEstimator, SenderPlugins, SpuriousDetector, SpuriousResponse, TimeoutRecovery,
};

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};

use crate::base::{
    aimd, delayed_ack, fixed_threshold, limited_transmit, respond_at_once, rfc6298, spurious_response, timeout,
};
use crate::base::{newreno, sack};
use crate::parts::{Described, Face, Seam, Slot};
use crate::rules::{Need, Rule};

/// The parameters of an algorithm as people see and set them.
pub trait Algorithm: Serialize + DeserializeOwned + JsonSchema {
    /// What it is called where its seam is filled, in a variant file say.
    const NAME: &'static str;
    /// The file that implements it; its header says what it does.
    const SOURCE: &'static str;
    /// What does not go with it, and what it needs of the peer.
    const RULES: &'static [Rule] = &[];
}

/// The parameters of a plug-in, from which a connection's own instance is built.
pub trait Part<Seam: ?Sized>: Described<Seam> + Debug + Send + Sync {
    /// A fresh instance.
    fn build(&self) -> Box<Seam>;
}

/// A part that is shared by all connections of a variant.
pub type Shared<Seam> = Arc<dyn Part<Seam>>;

/// One part for each seam, and what the variant demands of the connection's options.
#[derive(Clone, Debug)]
pub struct Composition {
    /// Which segments are lost.
    pub loss_detector: Shared<dyn LossDetector>,
    /// How many duplicates mean loss.
    pub dup_thresh: Shared<dyn DupThresh>,
    /// How much longer to wait.
    pub postponements: Vec<Shared<dyn Postponement>>,
    /// Whether the last reduction was spurious.
    pub spurious_detectors: Vec<Shared<dyn SpuriousDetector>>,
    /// The window after such news.
    pub spurious_response: Shared<dyn SpuriousResponse>,
    /// The window after a loss.
    pub loss_response: Shared<dyn LossResponse>,
    /// How fast recovery spends the window.
    pub fast_recovery: Shared<dyn FastRecovery>,
    /// What to send after a timeout.
    pub timeout_recovery: Shared<dyn TimeoutRecovery>,
    /// The retransmission timeout.
    pub rto_estimator: Shared<dyn RtoEstimator>,
    /// New data during disorder.
    pub limited_transmit: Shared<dyn LimitedTransmit>,
    /// Growth and reduction of the window.
    pub congestion_control: Shared<dyn CongestionControl>,
    /// When the receiver acknowledges.
    pub ack_policy: Shared<dyn AckPolicy>,
    /// What travels beyond the standard options.
    pub header_support: Vec<Shared<dyn HeaderSupport>>,
    /// True if what a connection has learned about reordering serves the next one to the same peer.
    pub shares_reordering: bool,
    /// False for the variants from before SACK.
    pub sack: bool,
    /// Whether timestamps are offered, whatever the connection's options say; none leaves it to them.
    pub timestamps: Option<bool>,
    /// Replaces the plug-ins that need SACK, if the variant wants it and does not get it; none if none needs it.
    pub without_sack: Option<fn(&mut SenderPlugins)>,
}

impl Default for Composition {
    /// The base of every variant: RFC 6675 over RFC 5681, RFC 3042 and RFC 6298.
    fn default() -> Composition {
        Composition {
            loss_detector: Arc::new(sack::Config::default()),
            dup_thresh: Arc::new(fixed_threshold::Config::default()),
            postponements: Vec::new(),
            spurious_detectors: Vec::new(),
            spurious_response: Arc::new(spurious_response::Config::None),
            loss_response: Arc::new(respond_at_once::Config::default()),
            fast_recovery: Arc::new(sack::PipeConfig::default()),
            timeout_recovery: Arc::new(timeout::Config::default()),
            rto_estimator: Arc::new(rfc6298::Config::default()),
            limited_transmit: Arc::new(limited_transmit::Config::Rfc3042),
            congestion_control: Arc::new(aimd::Config::default()),
            ack_policy: Arc::new(delayed_ack::Config::default()),
            header_support: Vec::new(),
            shares_reordering: false,
            sack: true,
            timestamps: None,
            without_sack: Some(newreno::without_sack),
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
                postponements: self.postponements.iter().map(|part| part.build()).collect(),
                spurious_detectors: self.spurious_detectors.iter().map(|part| part.build()).collect(),
                spurious_response: self.spurious_response.build(),
                loss_response: self.loss_response.build(),
                fast_recovery: self.fast_recovery.build(),
                timeout_recovery: self.timeout_recovery.build(),
                rto_estimator: self.rto_estimator.build(),
                limited_transmit: self.limited_transmit.build(),
                congestion_control: self.congestion_control.build(),
            },
            ack_policy: self.ack_policy.build(),
            header_support: self.header_support.iter().map(|part| part.build()).collect(),
            without_sack: self.without_sack.filter(|_| self.sack),
        }
    }

    /// Chooses anew what takes the place of the parts that need SACK, once others have come into it. A detector that does
    /// without SACK stays: it may have the only clock.
    pub fn settle(&mut self) {
        let needs_sack =
            |face: Option<Face>| face.is_some_and(|face| face.kind.rules.iter().any(|rule| rule.needs(Need::Sack)));
        self.without_sack = match (needs_sack(self.loss_detector.face()), needs_sack(self.fast_recovery.face())) {
            (true, _) => self.without_sack.or(Some(newreno::without_sack)),
            (false, true) => Some(newreno::recovery_without_sack),
            (false, false) => None,
        };
    }

    /// The connection's options as this variant needs them.
    #[must_use]
    pub fn configure(&self, mut config: Config) -> Config {
        config.sack &= self.sack;
        config.timestamps = self.timestamps.unwrap_or(config.timestamps);
        config.dsack &= config.sack;
        config
    }

    /// Every seam with what fills it, in the order of [`Seam::ALL`].
    pub fn slots(&self) -> [(Seam, &dyn Slot); Seam::ALL.len()] {
        [
            (Seam::LossDetector, &self.loss_detector),
            (Seam::DupThresh, &self.dup_thresh),
            (Seam::Postponements, &self.postponements),
            (Seam::SpuriousDetectors, &self.spurious_detectors),
            (Seam::SpuriousResponse, &self.spurious_response),
            (Seam::LossResponse, &self.loss_response),
            (Seam::FastRecovery, &self.fast_recovery),
            (Seam::TimeoutRecovery, &self.timeout_recovery),
            (Seam::RtoEstimator, &self.rto_estimator),
            (Seam::LimitedTransmit, &self.limited_transmit),
            (Seam::CongestionControl, &self.congestion_control),
            (Seam::AckPolicy, &self.ack_policy),
            (Seam::HeaderSupport, &self.header_support),
        ]
    }

    /// What fills `seam`, to be replaced.
    pub fn slot_mut(&mut self, seam: Seam) -> &mut dyn Slot {
        match seam {
            Seam::LossDetector => &mut self.loss_detector,
            Seam::DupThresh => &mut self.dup_thresh,
            Seam::Postponements => &mut self.postponements,
            Seam::SpuriousDetectors => &mut self.spurious_detectors,
            Seam::SpuriousResponse => &mut self.spurious_response,
            Seam::LossResponse => &mut self.loss_response,
            Seam::FastRecovery => &mut self.fast_recovery,
            Seam::TimeoutRecovery => &mut self.timeout_recovery,
            Seam::RtoEstimator => &mut self.rto_estimator,
            Seam::LimitedTransmit => &mut self.limited_transmit,
            Seam::CongestionControl => &mut self.congestion_control,
            Seam::AckPolicy => &mut self.ack_policy,
            Seam::HeaderSupport => &mut self.header_support,
        }
    }

    /// What fills `seam`, as people see it. Parts without a name are left out.
    pub fn faces(&self, seam: Seam) -> Vec<Face> {
        self.slots()[seam as usize].1.faces()
    }
}
