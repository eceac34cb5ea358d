//! Elementary changes to a recorded run, in terms of its own operations and calls (method §2.11). A replay carries them
//! out; a rule composes them.
//!
//! A change is replayed twice: cautiously, with what is certain, and hopefully, with what may come along with it. The
//! estimate of a gain is the interval between the two.

use model::{Ns, Span, TrackId};

/// One change to the run of one rank. Operations and calls are indices into the rank's timeline.
#[derive(Clone, Debug)]
pub enum Edit {
    /// Operations are not done, and what the host did only to launch them is not done either.
    Remove(Vec<u32>),
    /// Operations take another time on the device, ns.
    Resize(Vec<(u32, Ns)>),
    /// The operations of each group become one that takes so many ns; it is launched where the first of them was.
    Fuse(Vec<(Vec<u32>, Ns)>),
    /// The operations of each group are launched together by one graph launch. Cautiously the launch and the gaps between
    /// nodes cost what is usual, hopefully what the best drivers reach.
    Graph(Vec<Vec<u32>>),
    /// Operations start at most so many ns after the one before them on their queue, if nothing else holds them up.
    Gap(Vec<(u32, Ns)>),
    /// Operations start so many ns after the one before them on their queue, be that earlier or later than they did.
    Pace(Vec<(u32, Ns)>),
    /// Operations start at most so many ns after what they waited for on another queue, if nothing else holds them up.
    Lag(Vec<(u32, Ns)>),
    /// Blocking calls no longer wait for the device. Hopefully the host's work after each is no longer than usual, too.
    Unblock(Vec<u32>),
    /// Stretches of a host thread's time take so many ns instead.
    Host(TrackId, Vec<(Span, Ns)>),
    /// The host prepares the next step while the device works on this one, beside the thread that launches. Cautiously so many
    /// percent of its work between the steps need the token first.
    OverlapSteps(Ns),
    /// Collectives transfer for so many ns once all ranks are there.
    Transfer(Vec<(u32, Ns)>),
    /// Collectives take so many ns and wait for no other rank. Ranks that meet are changed together.
    Alone(Vec<(u32, Ns)>),
    /// Operations leave their queue and run beside it as soon as what they read is there. Cautiously half of their time is
    /// lost again because both share the device.
    Aside(Vec<u32>),
    /// A change that only the hopeful variant brings.
    Hoped(Box<Edit>),
}

impl Edit {
    /// The operations whose own time on the device it takes away or shortens.
    pub fn operations(&self) -> Vec<u32> {
        match self {
            Self::Remove(ops) => ops.clone(),
            Self::Resize(ops) => ops.iter().map(|(op, _)| *op).collect(),
            Self::Fuse(groups) => groups.iter().flat_map(|(ops, _)| ops).copied().collect(),
            Self::Hoped(edit) => edit.operations(),
            _ => Vec::new(),
        }
    }
}
