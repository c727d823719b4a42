//! What plug-ins keep from one connection for the next one to the same peer.

use std::any::Any;

/// What the plug-ins of a host's earlier connections to a peer have kept for later ones: one value of each type. The
/// owner of the connections has one memory for each peer.
///
/// Each plug-in keeps a value of a type that only it uses, so it never gets the value of another algorithm.
#[derive(Debug, Default)]
pub struct Memory {
    values: Vec<Box<dyn Any + Send>>,
}

impl Memory {
    /// Keeps `value` and forgets the earlier value of its type.
    pub fn keep<T: Any + Send>(&mut self, value: T) {
        match self.values.iter_mut().find_map(|kept| kept.downcast_mut::<T>()) {
            Some(kept) => *kept = value,
            None => self.values.push(Box::new(value)),
        }
    }

    /// The latest value of this type; none if there was none.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.values.iter().find_map(|kept| kept.downcast_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_value_of_each_type_is_kept() {
        #[derive(PartialEq, Debug)]
        struct Length(u32);
        let mut memory = Memory::default();
        assert_eq!(memory.get::<Length>(), None);
        memory.keep(Length(1));
        memory.keep(3u32);
        memory.keep(Length(2));
        assert_eq!((memory.get::<Length>(), memory.get::<u32>()), (Some(&Length(2)), Some(&3)));
        assert_eq!(memory.values.len(), 2);
    }
}
