//! The smallest change that would make a pair comparable. What is only unknown has to be said, what differs has to be run
//! again on one side, and what was recorded badly has to be recorded again.

use model::manifest::Field;

use super::{
    super::Side,
    Contract,
    claim::{Claim, may_be_studied},
    code::{About, Code, Reason},
    rule::Status,
};

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Say these fields of this side (of both: `None`) in a declaration file.
    Declare {
        /// The side.
        side: Option<Side>,
        /// The fields.
        fields: Vec<&'static Field>,
    },
    /// Run this side again with the other side's values.
    Rerun {
        /// The side.
        side: Side,
        /// The fields and what they have to be.
        settings: Vec<(&'static Field, String)>,
    },
    /// Or say that these fields are what the pair was made to find out.
    Study {
        /// The fields.
        fields: Vec<&'static Field>,
    },
    /// Record this side again, so that this no longer holds.
    Record {
        /// The side.
        side: Side,
        /// What must no longer hold.
        about: About,
    },
}

/// What would make the pair comparable for a claim.
pub(super) fn smallest(contract: &Contract, claim: Claim) -> Vec<Change> {
    let refusals: Vec<&Reason> = contract.refusals(claim).collect();
    let fields = || refusals.iter().filter_map(|reason| field_of(reason));
    let mut changes = Vec::new();
    for side in [None, Some(Side::A), Some(Side::B)] {
        let silent = |field: &&'static Field| {
            let control = contract.control(field.key).filter(|control| control.status == Status::Unknown);
            control.is_some_and(|control| match control.silent().as_slice() {
                [one] => side == Some(*one),
                _ => side.is_none(),
            })
        };
        let fields: Vec<&'static Field> = fields().filter(silent).collect();
        if !fields.is_empty() {
            changes.push(Change::Declare { side, fields });
        }
    }
    let different: Vec<&'static Field> = fields().filter(|field| is_different(contract, field)).collect();
    for side in [Side::B, Side::A] {
        let settings: Vec<(&'static Field, String)> = different
            .iter()
            .filter(|field| side_to_run(contract, field) == side)
            .filter_map(|field| Some((*field, contract.control(field.key)?.entry(side.other())?.value.clone())))
            .collect();
        if !settings.is_empty() {
            changes.push(Change::Rerun { side, settings });
        }
    }
    let study: Vec<&'static Field> = different.iter().copied().filter(|field| may_be_studied(field)).collect();
    // That everything else would be equal is the condition under which a difference can be studied.
    if !study.is_empty() && study.len() == different.len() {
        changes.push(Change::Study { fields: study });
    }
    for reason in &refusals {
        if let (None, Some(side)) = (field_of(reason), reason.side) {
            changes.push(Change::Record { side, about: reason.about });
        }
    }
    changes
}

fn field_of(reason: &Reason) -> Option<&'static Field> {
    match reason.about {
        About::Field(field) => Some(field),
        _ => None,
    }
}

fn is_different(contract: &Contract, field: &Field) -> bool {
    contract.control(field.key).is_some_and(|control| control.status == Status::Different)
}

/// The side that has to run again. A batch that one side's memory does not hold is no use to it: the larger one gives way.
fn side_to_run(contract: &Contract, field: &Field) -> Side {
    let batch = |side| contract.control(field.key)?.entry(side)?.value.trim().parse::<u64>().ok();
    match (Code::of_difference(field), batch(Side::A), batch(Side::B)) {
        (Code::BatchCap, Some(a), Some(b)) if a > b => Side::A,
        _ => Side::B,
    }
}
