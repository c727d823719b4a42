//! The table of sockets, by index and by flow. Used only by [`crate::sockets`].

use hashbrown::HashTable;

use crate::flow::{FourTuple, HashDomain, Secret};
use crate::socket::Socket;
use crate::socket_id::SocketId;
use crate::time_wait::Waiting;

#[derive(Debug)]
pub(crate) enum Slot {
    Vacant,
    Live(Box<Socket>),
    /// It is in TIME-WAIT, or in FIN-WAIT-2, and no application uses it any more.
    TimeWait(Box<Waiting>),
}

impl Slot {
    pub(crate) fn flow(&self) -> Option<&FourTuple> {
        match self {
            Slot::Vacant => None,
            Slot::Live(socket) => Some(socket.flow()),
            Slot::TimeWait(waiting) => Some(waiting.flow()),
        }
    }
}

#[derive(Debug)]
struct Entry {
    generation: u32,
    slot: Slot,
}

/// A socket in the table of flows. Part of the hash is kept here, so that most mismatches are found without access to the socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Bucket {
    hash: u32,
    index: u32,
}

/// All sockets.
#[derive(Debug)]
pub(crate) struct Table {
    entries: Vec<Entry>,
    vacant: Vec<u32>,
    by_flow: HashTable<Bucket>,
    secret: Secret,
}

impl Table {
    pub(crate) fn new(secret: Secret) -> Table {
        Table { entries: Vec::new(), vacant: Vec::new(), by_flow: HashTable::new(), secret }
    }

    /// Sockets of all kinds.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.vacant.len()
    }

    /// True if all are in TIME-WAIT. Visits all.
    pub(crate) fn is_idle(&self) -> bool {
        self.entries.iter().all(|entry| match &entry.slot {
            Slot::Vacant => true,
            Slot::Live(_) => false,
            Slot::TimeWait(waiting) => !waiting.expects_fin(),
        })
    }

    pub(crate) fn hash(&self, flow: &FourTuple) -> u64 {
        self.secret.hash(flow, HashDomain::Bucket)
    }

    /// The socket with this flow.
    pub(crate) fn find(&self, flow: &FourTuple) -> Option<u32> {
        let hash = self.hash(flow);
        let is_it = |bucket: &Bucket| {
            bucket.hash == hash as u32 && self.entries[bucket.index as usize].slot.flow() == Some(flow)
        };
        self.by_flow.find(hash, is_it).map(|bucket| bucket.index)
    }

    /// The socket that most likely has the flow with this hash; does not look at sockets.
    pub(crate) fn guess(&self, hash: u64) -> Option<u32> {
        self.by_flow.find(hash, |bucket| bucket.hash == hash as u32).map(|bucket| bucket.index)
    }

    /// Adds a socket, whose flow must be free.
    pub(crate) fn insert(&mut self, socket: Box<Socket>) -> SocketId {
        let hash = self.hash(socket.flow());
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(Entry { generation: 0, slot: Slot::Vacant });
            (self.entries.len() - 1) as u32
        });
        let entry = &mut self.entries[index as usize];
        entry.slot = Slot::Live(socket);
        let generation = entry.generation;
        let Table { entries, by_flow, secret, .. } = self;
        by_flow.insert_unique(hash, Bucket { hash: hash as u32, index }, |bucket| {
            let flow = entries[bucket.index as usize].slot.flow();
            flow.map_or(0, |flow| secret.hash(flow, HashDomain::Bucket))
        });
        SocketId::new(index, generation)
    }

    /// Frees the flow of a socket: its segments belong to no socket from now on.
    pub(crate) fn forget_flow(&mut self, index: u32) {
        let Some(flow) = self.entries[index as usize].slot.flow() else { return };
        let hash = self.hash(flow);
        if let Ok(found) = self.by_flow.find_entry(hash, |bucket| bucket.index == index) {
            found.remove();
        }
    }

    /// Removes a socket.
    pub(crate) fn remove(&mut self, index: u32) {
        self.forget_flow(index);
        let entry = &mut self.entries[index as usize];
        entry.slot = Slot::Vacant;
        entry.generation = entry.generation.wrapping_add(1);
        self.vacant.push(index);
    }

    /// Replaces a closed connection by the state that FIN-WAIT-2 and TIME-WAIT keep. Its id becomes invalid.
    pub(crate) fn wait(&mut self, index: u32, waiting: Waiting) {
        let entry = &mut self.entries[index as usize];
        entry.slot = Slot::TimeWait(Box::new(waiting));
        entry.generation = entry.generation.wrapping_add(1);
    }

    /// The sockets that are not in TIME-WAIT, with their indices.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Socket)> {
        (0..).zip(&self.entries).filter_map(|(index, entry)| match &entry.slot {
            Slot::Live(socket) => Some((index, &**socket)),
            _ => None,
        })
    }

    pub(crate) fn slot(&mut self, index: u32) -> &mut Slot {
        &mut self.entries[index as usize].slot
    }

    /// The socket at `index`, read-only.
    pub(crate) fn peek(&self, index: u32) -> Option<&Socket> {
        match &self.entries.get(index as usize)?.slot {
            Slot::Live(socket) => Some(socket),
            _ => None,
        }
    }

    pub(crate) fn live(&mut self, index: u32) -> Option<&mut Socket> {
        match &mut self.entries.get_mut(index as usize)?.slot {
            Slot::Live(socket) => Some(socket),
            _ => None,
        }
    }

    /// The id of the socket at `index`.
    pub(crate) fn id(&self, index: u32) -> SocketId {
        SocketId::new(index, self.entries[index as usize].generation)
    }

    /// True if the socket is no longer needed: it is in TIME-WAIT, or in FIN-WAIT-2 and its application has closed it.
    pub(crate) fn is_evictable(&self, id: SocketId) -> bool {
        let entry = self.entries.get(id.index()).filter(|entry| entry.generation == id.generation());
        entry.is_some_and(|entry| matches!(entry.slot, Slot::TimeWait(_)))
    }

    pub(crate) fn get(&self, id: SocketId) -> Option<&Socket> {
        let entry = self.entries.get(id.index()).filter(|entry| entry.generation == id.generation())?;
        match &entry.slot {
            Slot::Live(socket) => Some(socket),
            _ => None,
        }
    }

    pub(crate) fn get_mut(&mut self, id: SocketId) -> Option<&mut Socket> {
        let entry = self.entries.get_mut(id.index()).filter(|entry| entry.generation == id.generation())?;
        match &mut entry.slot {
            Slot::Live(socket) => Some(socket),
            _ => None,
        }
    }
}
