//! Another form of the same step: how it is launched, divided, converted, padded and typed.

use super::Injection;
use crate::{
    Dtype, Error,
    program::{Change, OpName},
    run::Mode,
};

pub(super) const NO_GRAPH: Injection = Injection {
    name: "no_graph",
    arguments: "",
    what: "operators are launched one by one",
    is_timing: true,
    apply: |options, _| {
        if options.mode == Mode::Eager {
            return Err(Error::Request(
                "injection 'no_graph' changes nothing in this run: its operators are launched one by one; add --mode graph"
                    .to_owned(),
            ));
        }
        options.mode = Mode::Eager;
        Ok(())
    },
};

pub(super) const UNFUSE: Injection = Injection {
    name: "unfuse",
    arguments: "op=all",
    what: "an operator runs as several simpler ones",
    is_timing: false,
    apply: |options, arguments| {
        let changes: Vec<Change> = match arguments.op()? {
            None => Change::UNFUSABLE.iter().copied().map(Change::Unfuse).collect(),
            Some(op) if Change::UNFUSABLE.contains(&op) => vec![Change::Unfuse(op)],
            Some(op) => return Err(arguments.refuse(&format!("op={}", op.text()))),
        };
        options.changes.extend(changes);
        Ok(())
    },
};

pub(super) const LAYOUT_CAST: Injection = Injection {
    name: "layout_cast",
    arguments: "op=down_proj",
    what: "the input of an operator is turned into another layout and back",
    is_timing: false,
    apply: |options, arguments| {
        options.changes.push(Change::CastBefore(arguments.op()?.unwrap_or(OpName::DownProj)));
        Ok(())
    },
};

pub(super) const LOW_PRECISION_OFF: Injection = Injection {
    name: "low_precision_off",
    arguments: "",
    what: "weights are single precision",
    is_timing: false,
    apply: |options, _| {
        if options.dtype == Dtype::F32 {
            return Err(Error::Request(
                "injection 'low_precision_off' changes nothing in this run: its weights are single precision; choose another type"
                    .to_owned(),
            ));
        }
        options.dtype = Dtype::F32;
        Ok(())
    },
};

pub(super) const PADDING: Injection = Injection {
    name: "padding",
    arguments: "to=8",
    what: "more sequences are computed than are asked for",
    is_timing: false,
    apply: |options, arguments| {
        let to = arguments.take("to")?.unwrap_or(8);
        if to <= options.batch {
            return Err(Error::Request(format!("a batch of {} cannot be padded to {to}; choose more", options.batch)));
        }
        options.padded = Some(to);
        Ok(())
    },
};
