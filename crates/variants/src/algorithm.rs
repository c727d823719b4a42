//! An algorithm with its parameters, which builds the plug-in of each connection; and a choice among algorithms.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::requirement::Requirement;

/// The parameters of an algorithm that fills the seam with the plug-in trait `S`.
pub trait Algorithm<S: ?Sized> {
    /// What it cannot be combined with, and what it needs from the peer.
    fn requirements(&self) -> &'static [Requirement] {
        &[]
    }

    /// The plug-in of a new connection.
    fn build(&self) -> Box<S>;
}

/// The algorithms of a seam.
pub trait SeamAlgorithm: Clone + PartialEq + Serialize + DeserializeOwned + JsonSchema {
    /// The trait of its plug-ins.
    type Plugin: ?Sized;

    /// A fresh plug-in.
    fn build(&self) -> Box<Self::Plugin>;

    /// What the algorithm cannot be combined with, and what it needs from the peer.
    fn requirements(&self) -> &'static [Requirement];

    /// The name of an algorithm that is in no list.
    fn unlisted_name(&self) -> Option<&'static str>;
}

/// An algorithm that is in no list: a user of the library, or a test, provides its plug-ins. It cannot be named in files.
pub struct Unlisted<S: ?Sized> {
    /// Its name in lists.
    pub name: &'static str,
    /// What it cannot be combined with, and what it needs from the peer.
    pub requirements: &'static [Requirement],
    build: Arc<dyn Fn() -> Box<S> + Send + Sync>,
}

impl<S: ?Sized> Unlisted<S> {
    /// An algorithm without requirements; `build` creates the plug-in of each connection.
    pub fn new(name: &'static str, build: impl Fn() -> Box<S> + Send + Sync + 'static) -> Unlisted<S> {
        Unlisted { name, requirements: &[], build: Arc::new(build) }
    }

    /// The same with requirements.
    #[must_use]
    pub fn with_requirements(self, requirements: &'static [Requirement]) -> Unlisted<S> {
        Unlisted { requirements, ..self }
    }
}

impl<S: ?Sized> Algorithm<S> for Unlisted<S> {
    fn requirements(&self) -> &'static [Requirement] {
        self.requirements
    }

    fn build(&self) -> Box<S> {
        (self.build)()
    }
}

impl<S: ?Sized> Clone for Unlisted<S> {
    fn clone(&self) -> Unlisted<S> {
        Unlisted { name: self.name, requirements: self.requirements, build: Arc::clone(&self.build) }
    }
}

impl<S: ?Sized> PartialEq for Unlisted<S> {
    /// True for copies of the same value.
    fn eq(&self, other: &Unlisted<S>) -> bool {
        Arc::ptr_eq(&self.build, &other.build)
    }
}

impl<S: ?Sized> fmt::Debug for Unlisted<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Unlisted").field(&self.name).finish()
    }
}
