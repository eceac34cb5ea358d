//! The work of both sides, held against each other before any number: what their steps do, read from the traces and from
//! nothing that was declared. Two captures of different work are refused whatever somebody says of them; what both show to be
//! equal nobody needs to declare.
//!
//! | module | owns |
//! | --- | --- |
//! | [`profile`] | what the steps of one side do |
//! | `kernels` | the kernels of a step: operators, launches, formats |
//! | `measure` | how far two sides are apart in each |
//! | [`part`] | the sides of work that are compared, and how far two may be apart |

mod kernels;
mod measure;
pub mod part;
mod profile;
#[cfg(test)]
mod tests;

use model::manifest::Field;

pub(super) use kernels::{copied, table};
pub use part::{Part, Parted};
pub use profile::Profile;

/// How far the work of two sides is apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distance {
    /// Part by part, in the order of [`Part::ALL`]; what neither side shows is left out.
    pub parts: Vec<Parted>,
}

impl Distance {
    /// Between two profiles.
    pub fn of(a: &Profile, b: &Profile) -> Self {
        Self { parts: Part::ALL.iter().filter_map(|part| Parted::of(*part, a, b)).collect() }
    }

    /// A part, if either side shows it.
    pub fn part(&self, part: Part) -> Option<&Parted> {
        self.parts.iter().find(|own| own.part == part)
    }

    /// Whether both sides show a part to be the same.
    pub fn equal(&self, part: Part) -> bool {
        self.part(part).is_some_and(|own| own.distance.is_some() && !own.differs())
    }

    /// Parts by which the two do different work.
    pub fn differing(&self) -> impl Iterator<Item = &Parted> {
        self.parts.iter().filter(|own| own.differs())
    }

    /// How comparable the work is, from 0 to 1: what is left after each part that both show has taken its distance, or all
    /// where that is more than the part may have. `None` where no part is shown by both.
    pub fn comparability(&self) -> Option<f64> {
        let known = || self.parts.iter().filter(|own| own.distance.is_some());
        let left = |own: &Parted| if own.differs() { 0.0 } else { 1.0 - own.distance.unwrap_or(0.0).clamp(0.0, 1.0) };
        known().next()?;
        Some(known().map(left).product())
    }

    /// Whether both show anything of how much work they do.
    pub fn is_seen(&self) -> bool {
        self.parts.iter().any(|own| own.part.is_structure() && own.distance.is_some())
    }

    /// Share of the parts that both show, in 0..=1.
    pub fn shown(&self) -> f64 {
        let known = self.parts.iter().filter(|own| own.distance.is_some()).count();
        known as f64 / self.parts.len().max(1) as f64
    }

    /// Whether the work of both sides shows that a field is the same on both, although its value is not known.
    pub fn shows(&self, field: &Field) -> bool {
        Part::ALL.iter().any(|part| part.proves().contains(&field.key) && self.equal(*part))
    }

    /// Whether a field means anything for this work: a network without attention has no cache and no prompts.
    pub fn asks(&self, field: &Field) -> bool {
        !(ATTENDING.contains(&field.key)
            && (self.part(Part::Attention).is_some_and(|own| own.is_nothing()) || self.sees()))
    }

    /// Whether both convolve as large inputs and neither writes a cache or chooses a token: a network for images, which has no
    /// prompts however it attends.
    fn sees(&self) -> bool {
        let none = [Part::Cache, Part::CacheWidth, Part::Context, Part::Sampling]
            .iter()
            .all(|part| self.part(*part).is_none());
        none && self.equal(Part::Images)
    }
}

/// Fields of models that attend to what came before.
const ATTENDING: &[&str] = &["precision.kv", "workload.prompt_len", "workload.speculative"];
