//! How far the computing is from what the device can do: rates of its operators, and the floor of its step.
//!
//! | module | owns |
//! | --- | --- |
//! | [`work`] | arithmetic and bytes of an operator, by its shapes |
//! | [`tile`] | what a product's tiles leave unused |
//! | [`rates`] | achieved rates beside peaks, and what binds |
//! | `slots` | products of replayed layers, by the shape of the model |
//! | `experts` | products of experts, by the shape of the model |
//! | [`links`] | the same of collectives |
//! | [`floor`] | the least that a step takes |
//!
//! Peaks are measured where probes are at hand, else published; a published one is an upper bound of what is possible.

pub(super) mod experts;
pub mod floor;
pub mod links;
pub mod rates;
mod slots;
pub mod tile;
pub mod work;

pub use floor::{Basis, Floor};
pub use rates::{Bound, PeakSource, Rate, RateUnit};

use super::{rule::Context, signals::ceilings::Ceilings};

/// What is said of one capture's rates.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Limits {
    /// Operators of the class with the most time, the longest first.
    pub rates: Vec<Rate>,
    /// Key of that class, and its rank.
    pub class: Option<(u32, String)>,
    /// The least that its steps take.
    pub floor: Option<Floor>,
    /// What is published of the links of the device that the run names.
    pub link: Option<PublishedLink>,
}

/// What is published of the links of a device.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct PublishedLink {
    /// The product.
    pub chip: String,
    /// Of all its links to other devices together, in one direction, GB/s.
    pub gb_per_s: f64,
}

impl PublishedLink {
    /// Of the device that a capture's facts name.
    pub fn of(trace: &model::Trace, packs: &crate::platform::Packs) -> Option<Self> {
        let chip = packs.chip(trace.manifest.value("hardware.device")?)?;
        Some(Self { chip: chip.name.clone(), gb_per_s: f64::from(chip.link_gb_per_s?) })
    }
}

/// The limits of the main class with the most time.
pub(super) fn of(cx: &Context<'_>) -> Limits {
    let most = cx.main_classes().max_by_key(|(rank, class)| (class.total, std::cmp::Reverse(rank.rank)));
    let link = PublishedLink::of(cx.trace, cx.packs);
    let Some((rank, class)) = most else { return Limits { link, ..Limits::default() } };
    let ceilings = Ceilings::of(cx, rank);
    let mut rates = rates::of(cx, rank, class, &ceilings);
    if !rates.iter().any(floor::is_product) {
        rates.extend(slots::of(cx, rank, class, &ceilings));
    }
    let floor = floor::of(cx, rank, class, &ceilings, &rates);
    let experts = experts::Experts::of(cx, rank, class);
    rates.extend(experts.and_then(|experts| experts.rate(cx, rank, class, &ceilings)));
    rates.extend(links::of(cx, rank, class, &ceilings));
    rates.sort_by_key(|rate| std::cmp::Reverse(rate.per_step));
    rates.truncate(rates::MOST);
    Limits { rates, class: Some((rank.rank, class.key.clone())), floor, link }
}
