//! Operators of the engine by the ids that are pushed for them: the step in the upper half, the place in its program in the lower.

use engine::record::Launches;

use super::Session;

/// The id of an operator of a step.
fn id(step: u32, op: u32) -> u64 {
    u64::from(step) << 32 | u64::from(op)
}

/// The step and the place in its program that an id says.
pub fn launched(id: u64) -> (u32, u32) {
    let half = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    (half(id >> 32), half(id))
}

impl Launches for Session {
    fn enter(&self, step: u32, op: u32) {
        self.enter(id(step, op));
    }

    fn leave(&self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_step_and_operator() {
        for of in [(0, 0), (0, u32::MAX), (u32::MAX, 0), (7, 40), (u32::MAX, u32::MAX)] {
            assert_eq!(launched(id(of.0, of.1)), of);
        }
    }
}
